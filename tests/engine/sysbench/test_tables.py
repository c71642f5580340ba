"""prepare makes the same tables: definitions, rows, sequences and the shape of what is in them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgtrial.loads.process import environment
from pgtrial.loads.target import Target
from tests.engine.programs import client_program
from tests.engine.sysbench.sides import Side

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]


ROWS = 500
OLTP = ["oltp_read_only", "oltp_write_only", "oltp_insert", "select_random_points"]
OPTIONS = [
    "",
    "--tables=3 --threads=2",
    "--auto_inc=off",
    "--auto_inc=off --tables=2",
    "--create_secondary=off",
    "--pgsql_variant=redshift",
    "--mysql-storage-engine=myisam",
    "--rand-type=uniform",
    "--rand-type=gaussian",
    "--rand-type=pareto",
    "--rand-type=special --rand-spec-pct=10 --rand-spec-res=50",
    "--range-size=7 --delete_inserts=3",
]


def definitions(target: Target) -> str:
    """Returns a database's definitions as pg_dump writes them, without the random key that pg_dump puts into
    each dump.
    """
    program = client_program("pg_dump")
    env = environment(target.environment())
    done = subprocess.run([program, "--schema-only"], env=env, capture_output=True, text=True, check=True)
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)


def contents(target: Target) -> list[dict[str, Any]]:
    """Returns those properties of each table's rows that do not depend on the random values."""
    with target.connect_as_user() as connection:
        tables = connection.execute(
            "SELECT relname, relpersistence, reloptions FROM pg_class WHERE relkind = 'r' AND"
            " relnamespace = 'public'::regnamespace ORDER BY relname"
        ).fetchall()
        found = []
        for name, *kind in tables:
            groups = "[0-9]{11}(-[0-9]{11})"
            (row,) = connection.execute(
                f"SELECT count(*), min(id), max(id), count(DISTINCT id), min(k) >= 1, max(k) <= {ROWS},"
                " sum((k = id)::int) < count(*), count(DISTINCT c) = count(*), count(DISTINCT pad) = count(*),"
                f" bool_and(c ~ '^{groups}{{9}}$'), bool_and(pad ~ '^{groups}{{4}}$'),"
                f" min(length(c)), max(octet_length(c)), max(octet_length(pad)) FROM {name}"
            ).fetchall()
            found.append({"name": name, "kind": kind, "rows": row})
        sequences = "SELECT sequencename, last_value, start_value, cache_size FROM pg_sequences ORDER BY sequencename"
        found.append({"sequences": connection.execute(sequences).fetchall()})
    return found


def spread(target: Target) -> list[tuple[int, float]]:
    """Returns the distribution of the column k: the number of distinct values, and the share of the rows that have one
    of the 50 most frequent values.
    """
    query = (
        "WITH v AS (SELECT count(*) n, row_number() OVER (ORDER BY count(*) DESC) place FROM sbtest1 GROUP BY k)"
        " SELECT count(*), sum(n) FILTER (WHERE place <= 50) / sum(n) FROM v"
    )
    with target.connect_as_user() as connection:
        return [(int(count), float(share)) for count, share in connection.execute(query).fetchall()]


def prepare(side: Side, target: Target, path: Path, line: str) -> None:
    done = side.run(target, *line.split(), "prepare", directory=path)
    assert done.status == 0, done.stdout + done.stderr


def prepared(path: Path, line: str) -> Callable[[Side, Target], dict[str, Any]]:
    """Returns a function that runs `prepare` with a side's program, and returns the definitions and contents of the
    tables.
    """

    def act(side: Side, target: Target) -> dict[str, Any]:
        prepare(side, target, path, line)
        return {"definitions": definitions(target), "contents": contents(target)}

    return act


@pytest.mark.parametrize("options", OPTIONS)
def test_prepare_makes_the_same_tables(sides, databases, tmp_path, options):
    leave = prepared(tmp_path, f"oltp_read_write --table-size={ROWS} --rand-seed=7 {options}")
    theirs, mine = (leave(side, target) for side, target in zip(sides, databases, strict=True))
    assert mine == theirs
    ((their_values, their_share),), ((my_values, my_share),) = map(spread, databases)
    assert "CREATE TABLE public.sbtest1" in mine["definitions"]
    # 500 draws out of 500, the same each time: four standard deviations and more
    assert my_values == pytest.approx(their_values, abs=50)
    assert my_share == pytest.approx(their_share, abs=0.12)


@pytest.mark.parametrize("test", OLTP)
def test_each_test_prepares_the_same_tables(both, databases, tmp_path, test):
    theirs, mine = both(prepared(tmp_path, f"{test} --table-size={ROWS} --tables=2"), databases)
    assert mine == theirs


@pytest.mark.parametrize("rows", [0, 1, 2, 3000])
def test_a_table_of_any_size_is_the_same(both, databases, tmp_path, rows):
    def act(side, target):
        prepare(side, target, tmp_path, f"oltp_read_write --table-size={rows}")
        with target.connect_as_user() as connection:
            query = "SELECT count(*), min(id), max(id), (SELECT last_value FROM sbtest1_id_seq) FROM sbtest1"
            return {"definitions": definitions(target), "counts": connection.execute(query).fetchall()}

    theirs, mine = both(act, databases)
    assert mine == theirs
    assert mine["counts"][0][0] == rows


def test_bulk_insert_prepares_and_fills_the_same_tables(both, databases, tmp_path):
    def act(side, target):
        prepare(side, target, tmp_path, "bulk_insert --threads=3")
        defined = definitions(target)
        done = side.run(target, "bulk_insert", "--threads=1", "--events=40000", "--time=0", "run", directory=tmp_path)
        assert done.status == 0, done.stdout
        with target.connect_as_user() as connection:
            query = "SELECT count(*), min(id), max(id), bool_and(k = id) FROM sbtest1"
            return {"definitions": defined, "rows": connection.execute(query).fetchall()}

    theirs, mine = both(act, databases)
    assert mine == theirs
    assert mine["rows"] == [[40000, 1, 40000, True]]


def test_a_run_leaves_as_many_rows_as_it_found(both, databases, tmp_path):
    def act(side, target):
        prepare(side, target, tmp_path, f"oltp_read_write --table-size={ROWS} --tables=2")
        line = f"oltp_write_only --table-size={ROWS} --tables=2 --threads=4 --events=400 --time=0 run"
        done = side.run(target, *line.split(), directory=tmp_path)
        assert done.status == 0, done.stdout
        with target.connect_as_user() as connection:
            query = "SELECT (SELECT count(*) FROM sbtest1), (SELECT count(*) FROM sbtest2)"
            return connection.execute(query).fetchall()

    for rows in both(act, databases):
        assert rows == [[ROWS, ROWS]]


def test_cleanup_leaves_nothing(both, databases, tmp_path):
    def act(side, target):
        prepare(side, target, tmp_path, "oltp_read_write --table-size=20 --tables=2")
        assert side.run(target, "oltp_read_only", "--tables=2", "cleanup", directory=tmp_path).status == 0
        return definitions(target)

    theirs, mine = both(act, databases)
    assert mine == theirs
    assert "sbtest" not in mine
