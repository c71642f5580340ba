"""Loaded databases for the engine's tests, and copies of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.workspace import Workspace
from tests.conftest import running_clusters

pytest.register_assert_rewrite("tests.engine.programs", "tests.engine.corpora", "tests.engine.cases")

from tests.engine.programs import Program, original, ours  # noqa: E402

_SETTINGS = {
    "autovacuum": "off",
    # clients that connect anew for each transaction leave backends that are about to end, some dozens of them where
    # processors are scarce
    "max_connections": "140",
}
_numbers = itertools.count()


@pytest.fixture(scope="session")
def clusters(workspace: Workspace) -> Iterator[Callable[[int], Cluster]]:
    """Running clusters for the engine's tests, on whose tables only those work who are asked to: `clusters(17)`."""
    with running_clusters(workspace, _SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def peers() -> tuple[Program, Program]:
    """The original and ours."""
    return original(), ours()


@pytest.fixture(scope="session")
def pristine(clusters: Callable[[int], Cluster]) -> Callable[[int], Target]:
    """A database of scale 2 made by the original, one for each server version: `pristine(17)`. Only to be copied."""
    made: dict[int, Target] = {}

    def target(major: int) -> Target:
        if major not in made:
            made[major] = _create(clusters(major).target, "pristine", "template0")
            original().load(made[major], "-s", "2")
        return made[major]

    return target


@pytest.fixture(scope="session")
def loaded(pristine: Callable[[int], Target]) -> Callable[[int], Target]:
    """A loaded database for runs that may change its balances: `loaded(17)`."""
    made: dict[int, Target] = {}

    def target(major: int) -> Target:
        if major not in made:
            made[major] = _create(pristine(major), "loaded", "pristine")
        return made[major]

    return target


@pytest.fixture(scope="session")
def corpus_database(pristine: Callable[[int], Target]) -> Target:
    """A loaded database in which the schema that each run of the corpus makes anew comes first."""
    target = _create(pristine(18), "corpus", "pristine")
    with target.connect() as connection:
        connection.execute("ALTER DATABASE corpus SET search_path = bench, public")
    return target


@pytest.fixture
def fresh(pristine: Callable[[int], Target]) -> Iterator[Callable[..., Target]]:
    """A new loaded database for one test: `fresh(18)`; or an empty one: `fresh(18, empty=True)`."""
    copies: list[Target] = []

    def copy(major: int = 18, *, empty: bool = False) -> Target:
        name, template = f"copy{next(_numbers)}", "template0" if empty else "pristine"
        copies.append(_create(pristine(major), name, template))
        return copies[-1]

    yield copy
    for made in copies:
        with replace(made, dbname="postgres").connect() as connection:
            connection.execute(f"DROP DATABASE {made.dbname} WITH (FORCE)")


def _create(server: Target, name: str, template: str) -> Target:
    with replace(server, dbname="postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return replace(server, dbname=name)
