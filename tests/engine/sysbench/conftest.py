"""A server for the comparison with sysbench, and pairs of databases on it: one for the original, one for ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.workspace import Workspace
from tests.engine.conftest import Both, inputs_of, places
from tests.engine.guarded import serving
from tests.engine.recordings import HINT, Key, Recordings, digest_of_program, plain
from tests.engine.sessions import wait_until_left
from tests.engine.sysbench.sides import SYSBENCH, Side, original, ours

PASSWORD_RULE = "host all asked 127.0.0.1/32 scram-sha-256\n"
_SETTINGS = {
    "max_connections": "400",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "fsync": "on",  # else no commit waits, as those of loads that last for a time do
    "synchronous_commit": "off",
    "autovacuum": "off",
    "deadlock_timeout": "20ms",
}
_numbers = itertools.count()

Databases = Callable[[], tuple[Target, Target]]
Act = Callable[[Side, Target], object]


@pytest.fixture(scope="session")
def sides() -> tuple[Side, Side]:
    """Returns sysbench, which is the original, and our engine."""
    return original(), ours()


@pytest.fixture(scope="session")
def server(workspace: Workspace) -> Iterator[Cluster]:
    """Yields a server that only this comparison uses. It has pg_stat_statements, and the role `asked` needs a
    password.
    """
    with serving(workspace, 18, PASSWORD_RULE, _SETTINGS) as cluster:
        with cluster.target.connect_as_user() as connection:
            connection.execute("CREATE ROLE asked SUPERUSER LOGIN PASSWORD 'correct horse'")
            connection.execute("CREATE EXTENSION pg_stat_statements")
        yield cluster


@pytest.fixture(scope="session")
def new_databases(server: Cluster) -> Databases:
    """Two new empty databases with names of the same length."""

    def create() -> tuple[Target, Target]:
        number = next(_numbers)
        names = (f"theirs_{number:03}", f"ours_{number:03}xx")
        with server.target.connect_as_user() as connection:
            for name in names:
                connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        first, second = (replace(server.target, dbname=name) for name in names)
        return first, second

    return create


@pytest.fixture(scope="session")
def _shared(new_databases: Databases) -> tuple[Target, Target]:
    return new_databases()


@pytest.fixture
def databases(_shared: tuple[Target, Target]) -> tuple[Target, Target]:
    """Two empty databases: for the original and for ours.

    A run that was cut off may have left statements under way: one that came late would wait for the schema that is
    dropped, and that for it.
    """
    for target in _shared:
        wait_until_left(target)
        with target.connect_as_user() as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return _shared


@pytest.fixture
def both(
    request: pytest.FixtureRequest,
    recordings: Recordings,
    server: Cluster,
    state_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Both:
    """Returns a function: `theirs, mine = both(act, databases)` are the results of `act(side, target)` for each side,
    as plain data.

    The original's result comes from its recording, if a valid one exists. `content` is what the result depends on
    besides the test's code, such as scripts.
    """
    names = places(state_root, tmp_path_factory)

    def ask(act: Act, pair: tuple[Target, Target], content: object = None) -> tuple[Any, Any]:
        print(HINT)
        first, second = pair
        key = Key(digest_of_program(SYSBENCH), server.server.version, inputs_of(request, content))
        file = f"sysbench/{request.path.stem}"
        theirs = recordings.answer(file, request.node.name, key, lambda: plain(act(original(), first), names))
        return theirs, plain(act(ours(), second), names)

    return ask
