"""Loaded databases for the engine's tests, and copies of them."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.workspace import Workspace
from tests.conftest import ANSWERS, require_engine, require_server, running_clusters
from tests.engine.recordings import (
    HINT,
    RECORDED,
    Key,
    Recordings,
    digest_of_inputs,
    digest_of_program,
    mode_of_the_run,
    plain,
)

pytest.register_assert_rewrite("tests.engine.programs", "tests.engine.corpora", "tests.engine.cases")

from tests.engine.corpora import Database  # noqa: E402
from tests.engine.programs import Program, original, original_path, ours  # noqa: E402
from tests.engine.sessions import wait_until_left  # noqa: E402

Act = Callable[[Program], object]
Both = Callable[..., tuple[Any, Any]]

_TROUBLE = ("ERROR:", "FATAL:", "LOG:  could not", "LOG:  unexpected")

_SETTINGS = {
    "autovacuum": "off",
    # clients that connect anew for each transaction leave backends that are about to end, some dozens of them where
    # processors are scarce
    "max_connections": "140",
    # loads that last for a time wait at each commit where `_create` says so, and leave processors to other tests
    "commit_siblings": "0",
}


@pytest.fixture(scope="session")
def clusters(workspace: Workspace) -> Iterator[Callable[[int], Cluster]]:
    """Running clusters for the engine's tests, on whose tables only those work who are asked to: `clusters(17)`."""
    with running_clusters(workspace, _SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def peers() -> tuple[Program, Program]:
    """Returns pgbench, which is the original, and our engine."""
    return original(), ours()


@pytest.fixture(scope="session")
def recordings(pytestconfig: pytest.Config) -> Iterator[Recordings]:
    """Yields the recorded answers of the originals; with `PGTRIAL_RECORD=1` they are written at the end."""
    stored = Recordings(RECORDED, mode_of_the_run(), pytestconfig.stash[ANSWERS])
    yield stored
    stored.write()


@pytest.fixture
def both(
    request: pytest.FixtureRequest,
    recordings: Recordings,
    state_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Both:
    """Returns a function: `theirs, mine = both(act)` are the results of `act(program)` for the original and for ours,
    as plain data.

    The original's result comes from its recording, if a valid one exists. `major` is the version of the server, and
    `file` names the file of recordings.
    """
    names = places(state_root, tmp_path_factory)
    calls = itertools.count(1)

    def ask(act: Act, *, major: int = 18, file: str | None = None) -> tuple[Any, Any]:
        print(HINT)
        number = next(calls)
        key = Key(
            original=digest_of_program(original_path()),
            server=require_server(major).version,
            inputs=inputs_of(request, number),
        )
        case = (request.node.callspec.id if file else request.node.name) + (f" {number}" if number > 1 else "")
        place = file or request.path.relative_to(Path(__file__).parent).with_suffix("").as_posix()
        theirs = recordings.answer(place, case, key, lambda: plain(act(original()), names))
        return theirs, plain(act(ours()), names)

    return ask


@pytest.fixture(scope="session")
def pristine(clusters: Callable[[int], Cluster]) -> Callable[[int], Target]:
    """Returns a function that returns a database of scale 2 made by the original, one for each server version:
    `pristine(17)`. Tests only copy it.
    """
    made: dict[int, Target] = {}

    def target(major: int) -> Target:
        if major not in made:
            made[major] = _create(clusters(major).target, "pristine", "template0")
            original().load(made[major], "-s", "2")
        return made[major]

    return target


@pytest.fixture(scope="session")
def loaded(pristine: Callable[[int], Target]) -> Callable[[int], Target]:
    """Returns a function that returns a loaded database for runs that may change its balances: `loaded(17)`."""
    made: dict[int, Target] = {}

    def target(major: int) -> Target:
        if major not in made:
            made[major] = _create(pristine(major), "loaded", "pristine")
        return made[major]

    return target


@pytest.fixture(scope="session")
def corpus_database(pristine: Callable[[int], Target]) -> Iterator[Database]:
    """Yields a loaded database and a session of it. Its search path begins with the schema that each corpus run makes
    anew.
    """
    target = _create(pristine(18), "corpus", "pristine")
    with target.connect_as_user() as connection:
        connection.execute("ALTER DATABASE corpus SET search_path = bench, public")
    with target.connect_as_user(prepare_threshold=None) as connection:
        yield target, connection


@pytest.fixture
def fresh(pristine: Callable[[int], Target]) -> Iterator[Callable[..., Target]]:
    """Yields a function that returns a new loaded database for one test: `fresh(18)`; or an empty one: `fresh(18,
    empty=True)`.
    """
    copies: list[Target] = []

    def copy(major: int = 18, *, empty: bool = False) -> Target:
        # the same name in each run of a test: programs name a database that has no tables
        name, template = f"copy{len(copies)}", "template0" if empty else "pristine"
        copies.append(_create(pristine(major), name, template))
        return copies[-1]

    yield copy
    for made in copies:
        with replace(made, dbname="postgres").connect_as_user() as connection:
            connection.execute(f"DROP DATABASE {made.dbname} WITH (FORCE)")


@pytest.fixture
def logged(
    clusters: Callable[[int], Cluster], fresh: Callable[..., Target]
) -> Callable[[Callable[[Target], Any]], tuple[Any, list[str]]]:
    """Returns a function: `done, trouble = logged(act)`. It calls `act(target)` with a loaded database, and returns its
    result and the errors that the server logged meanwhile.
    """

    def during(act: Callable[[Target], Any]) -> tuple[Any, list[str]]:
        log, target = clusters(18).data_directory.with_suffix(".log"), fresh()
        before = log.stat().st_size
        done = act(target)
        wait_until_left(target)
        lines = log.read_bytes()[before:].decode().splitlines()
        return done, [line for line in lines if any(word in line for word in _TROUBLE)]

    return during


@pytest.fixture(scope="session")
def replay() -> Program:
    """Returns the front end for replays."""
    return Program("replay", (str(require_engine()), "replay"))


@pytest.fixture
def null_server(tmp_path: Path) -> Iterator[Target]:
    """Yields a null server with two threads, which answers statements without executing them."""
    command = [str(require_engine()), "null-server", "--socket-dir", str(tmp_path), "--threads", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("null-server: listening on ")
        yield Target(str(tmp_path), 5432, "somebody", "anything")
        process.terminate()


def inputs_of(request: pytest.FixtureRequest, content: object) -> str:
    """Returns a digest of a test's code, its parameters and this content."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return digest_of_inputs(request.function, {"params": params, "content": content})


def places(state_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Patterns of the directories of this run of the tests, and names for them: those of a server, and of a test."""
    state, temporary = (re.escape(str(path)) for path in (state_root, tmp_path_factory.getbasetemp()))
    return {rf"{state}/runs/[\w-]+/(?:s/\d+|\d+-[\w-]+)": "%SERVER%", temporary: "%TMP%"}


def _create(server: Target, name: str, template: str) -> Target:
    with replace(server, dbname="postgres").connect_as_user() as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        if template == "pristine":
            connection.execute(f"ALTER DATABASE {name} SET commit_delay = 1000")
    return replace(server, dbname=name)
