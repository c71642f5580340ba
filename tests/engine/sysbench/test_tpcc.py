"""A TPC-C-like script of the size that people use: prepared in parallel, run by many clients, consistent afterwards."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.programs import Ended
from tests.engine.sysbench.runs import SCRIPTS, texts
from tests.engine.sysbench.sides import Side

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]


SIZE = "--tables=2 --scale=2 --items=200 --customers=30"
TABLES = 18
CONDITIONS = 8
NAMES = {"customer", "district", "history", "item", "new_order", "order_line", "orders", "stock", "warehouse"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SCRIPTS / "tpcc", tmp_path / "tpcc"))


def command(side: Side, target: Target, directory: Path, line: str) -> Ended:
    return side.run(target, "tpcc.lua", *SIZE.split(), *line.split(), directory=directory)


def count_of(label: str, text: str) -> int:
    (count,) = re.findall(rf"^ +{label}: +(\d+)", text, flags=re.MULTILINE)
    return int(count)


def counts(target: Target) -> dict[str, int]:
    """Returns the number of rows of each table."""
    tables = (
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"
    )
    with target.connect_as_user() as connection:
        names = [name for (name,) in connection.execute(tables).fetchall()]
        if not names:
            return {}
        each = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in names)
        return dict(connection.execute(each).fetchall())


def test_both_prepare_as_many_rows(both, databases, directory):
    def act(side, target):
        done = command(side, target, directory, "--threads=2 prepare")
        assert done.status == 0, done.stdout
        assert command(side, target, directory, "check").stdout.count("holds") == CONDITIONS
        # the lines of an order are drawn
        return {name: rows for name, rows in counts(target).items() if not name.startswith("order_line")}

    theirs, mine = both(act, databases, texts(directory))
    assert mine == theirs
    assert {re.sub(r"\d", "", name) for name in mine} == NAMES - {"order_line"}


@pytest.mark.parametrize(
    ("which", "load"),
    [
        (0, "--threads=8"),
        (1, "--threads=8"),
        (1, "--threads=64 --jobs=2"),
        (1, "--threads=64 --jobs=2 --isolation=serializable"),
    ],
)
def test_the_tables_are_consistent_after_a_run(sides, databases, directory, which, load):
    side, target = sides[which], databases[which]
    assert command(side, target, directory, "--threads=2 prepare").status == 0
    before = counts(target)
    done = command(side, target, directory, f"{load} --events=150 --time=0 run")
    assert done.status == 0, done.stdout[-2000:]
    assert count_of("transactions", done.stdout) >= 150
    # the clients are in each other's way
    assert count_of("ignored errors", done.stdout) > 0
    # Of so many transactions a third and more are new orders and payments, even where these fail most of the time: that
    # none of them was is a chance far below 1e-15.
    after = counts(target)
    written = [name for name in before if name.startswith(("orders", "history"))]
    assert sum(after[name] for name in written) > sum(before[name] for name in written)
    checked = command(side, target, directory, "check")
    assert checked.stdout.count("holds") == CONDITIONS
    assert checked.status == 0


def test_broken_conditions_are_found(both, databases, directory):
    statements = [
        "UPDATE warehouse1 SET w_ytd = w_ytd + 1 WHERE w_id = 1",
        "UPDATE district1 SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3",
        "DELETE FROM new_order1 WHERE no_o_id = 25 AND no_d_id = 4",
        "DELETE FROM order_line1 WHERE ol_number = 1 AND ol_o_id = 7 AND ol_d_id = 5",
    ]

    def act(side, target):
        assert command(side, target, directory, "prepare").status == 0
        with target.connect_as_user() as connection:
            for statement in statements:
                connection.execute(statement)
        done = command(side, target, directory, "check")
        assert done.status == 1
        return re.findall(r"^set \d, condition \d: .*$", done.stdout, flags=re.MULTILINE)

    theirs, mine = both(act, databases, texts(directory))
    assert mine == theirs
    assert [line.split()[-3] for line in mine[:4]] == ["broken"] * 4
    assert [line.split()[-1] for line in mine[4:]] == ["holds"] * 4


def test_cleanup_drops_every_table(both, databases, directory):
    def act(side, target):
        assert command(side, target, directory, "prepare").status == 0
        assert len(counts(target)) == TABLES
        assert command(side, target, directory, "cleanup").status == 0
        return counts(target)

    assert both(act, databases, texts(directory)) == ({}, {})
