"""Queries of the suites that come along: PostgreSQL returns what DuckDB returns for rows made by the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pgtrial.loads.target import Target
from pgtrial.model.study.suites import GENERATORS
from pgtrial.servers.cluster import Cluster
from pgtrial.store.suites import find_suite
from tests.conftest import VERSIONS
from tests.engine.programs import Program
from tests.engine.suites.conftest import tables_by_rules

pytestmark = pytest.mark.server

SERVERS = (VERSIONS[0], VERSIONS[-1])
COUNTS = {"joins": 12, "reports": 22}

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module", params=GENERATORS)
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def queries(suite: str) -> dict[str, str]:
    """Returns the texts of a suite's queries by name."""
    found = find_suite(f"suite:{suite}", Path(), "test")
    assert len(found.queries) == COUNTS[suite]
    return {name: found.files[f"{name}.sql"] for name in found.queries}


@pytest.fixture(scope="module")
def answers(suite: str, queries: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """Returns the answers of DuckDB. Dates are texts, as the lab's sessions read them."""
    folder = tmp_path_factory.mktemp(suite)
    with duckdb.connect() as database:
        for name, frame in tables_by_rules(suite).items():
            frame.write_parquet(folder / f"{name}.parquet")
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM '{folder / name}.parquet'")
        return {name: list(map(_dates_as_text, database.execute(text).fetchall())) for name, text in queries.items()}


def _dates_as_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(str(value) if isinstance(value, date) else value for value in row)


@pytest.fixture(scope="module")
def servers(suite: str, generate: Program, clusters: Callable[[int], Cluster]) -> Iterator[dict[int, Target]]:
    """Yields databases with the suite's tables, by version of the server."""
    made = {}
    for major in SERVERS:
        server = replace(clusters(major).target, dbname="postgres")
        made[major] = replace(server, dbname=f"{suite}_suite")
        with server.connect_as_user() as connection:
            connection.execute(f"CREATE DATABASE {suite}_suite")
        done = generate.run(made[major], suite, "--scale=0.01")
        assert done.status == 0, done.stderr
    yield made
    for target in made.values():
        with replace(target, dbname="postgres").connect_as_user() as connection:
            connection.execute(f"DROP DATABASE {target.dbname} WITH (FORCE)")


def equal(ours: object, theirs: object) -> bool:
    """True if two values are equal after rounding: DuckDB divides in floating point, and the queries round quotients to
    four digits.
    """
    if isinstance(ours, Decimal) and isinstance(theirs, float):
        return abs(float(ours) - theirs) < 1.01e-4
    return ours == theirs


@pytest.mark.parametrize("major", SERVERS)
def test_every_query_returns_rows_and_those_of_duckdb_in_its_order(servers, queries, answers, major):
    with servers[major].connect_as_user() as connection:
        for name, text in queries.items():
            rows = connection.execute(text.encode()).fetchall()
            assert rows, name
            assert len(rows) == len(answers[name]), name
            for row, answer in zip(rows, answers[name], strict=True):
                assert all(map(equal, row, answer)), (name, row, answer)
                assert None not in row, name


def test_the_first_line_of_every_query_says_what_it_is_for(queries):
    for name, text in queries.items():
        assert text.startswith("-- "), name
        assert text.count(";") == 1, name
        assert " order by " in " ".join(text.split()) or "group by" not in text, f"{name} has no order"
