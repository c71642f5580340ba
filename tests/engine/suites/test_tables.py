"""The tables of suites: every row is that of the rules, whatever the number of connections."""

from __future__ import annotations

import polars as pl
import pytest
from polars import selectors

from pgtrial.loads.target import Target
from pgtrial.model.study.suites import GENERATORS
from tests.engine.suites.conftest import tables_by_rules

pytestmark = pytest.mark.server


def assert_equal_rows(target: Target, tables: dict[str, pl.DataFrame]) -> None:
    """Asserts that each table on the server has the same columns, and the same rows in the same order, as the data
    frame of its name.
    """
    with target.connect_as_user() as connection:
        for name, frame in tables.items():
            cursor = connection.execute(f"SELECT * FROM {name}".encode())
            rows = cursor.fetchall()
            assert [column.name for column in cursor.description or ()] == frame.columns, name
            assert len(rows) == frame.height, name
            expected = frame.with_columns(selectors.date().dt.to_string("%Y-%m-%d")).rows()
            different = next((pair for pair in zip(rows, expected, strict=True) if pair[0] != pair[1]), None)
            assert different is None, (name, different)


@pytest.mark.parametrize("suite", GENERATORS)
def test_every_row_is_that_of_the_rules_and_a_new_load_replaces_the_tables(generate, fresh, suite):
    target, tables = fresh(18, empty=True), tables_by_rules(suite)
    first = generate.run(target, suite, "--scale=0.01", "--jobs=1", "--random-seed=2")
    assert first.status == 0, first.stderr
    done = generate.run(target, suite, "--scale=0.01", "--jobs=4")
    assert (done.status, done.stdout) == (0, "")
    assert f"the tables of {suite} at scale 0.01 made in " in done.stderr
    assert_equal_rows(target, tables)
    with target.connect_as_user() as connection:
        analysed = connection.execute(
            "SELECT count(*) FROM pg_stats WHERE tablename = ANY (%s) AND attname LIKE '%%_id'", [list(tables)]
        ).fetchone()
        marked = connection.execute(
            "SELECT count(*) FROM pg_class WHERE obj_description(oid, 'pg_class') LIKE %s", [f"pgtrial {suite}%"]
        ).fetchone()
    assert analysed is not None
    assert analysed[0] >= len(tables)
    assert marked == (len(tables),)
