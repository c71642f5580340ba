"""Tests that with one seed the original and ours draw the same values and leave the same rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pgtrial.loads.target import Target
from tests.engine.programs import Program

pytestmark = [pytest.mark.quick, pytest.mark.server]


MODES = ("simple", "extended", "prepared")


def rows(target: Target) -> dict[str, list[tuple[object, ...]]]:
    """Returns all rows of pgbench's four tables in a fixed order. Rows of the history are in the order of their
    insertion, without times.
    """
    queries = {
        "accounts": "SELECT * FROM pgbench_accounts WHERE abalance <> 0 ORDER BY aid",
        "untouched": "SELECT count(*), sum(aid), sum(bid), min(filler), max(filler) FROM pgbench_accounts "
        "WHERE abalance = 0",
        "branches": "SELECT * FROM pgbench_branches ORDER BY bid",
        "tellers": "SELECT * FROM pgbench_tellers ORDER BY tid",
        "history": "SELECT tid, bid, aid, delta, filler FROM pgbench_history ORDER BY ctid",
    }
    with target.connect_as_user() as connection:
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def left(fresh, major: int, *args: str) -> Callable[[Program], object]:
    """Returns a function that runs a program on a new database and returns the rows that it leaves."""

    def act(program: Program) -> object:
        target = fresh(major)
        done = program.run(target, *args)
        assert done.status == 0, done.stderr
        return rows(target)

    return act


@pytest.mark.like_pgbench
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update"])
def test_a_seeded_client_leaves_the_same_rows(both, fresh, script, mode):
    args = ("-n", "-t", "200", "-b", script, "-M", mode, "--random-seed=7")
    theirs, mine = both(left(fresh, 18, *args))
    assert mine == theirs
    assert len(mine["history"]) == 200


@pytest.mark.like_pgbench
@pytest.mark.parametrize("major", [15, 16, 17])
def test_a_seeded_client_leaves_the_same_rows_on_older_servers(both, fresh, major):
    args = ("-n", "-t", "50", "-M", "prepared", "--random-seed=18446744073709551615")
    theirs, mine = both(left(fresh, major, *args), major=major)
    assert mine == theirs
    assert len(mine["history"]) == 50


@pytest.mark.like_pgbench
def test_scripts_are_chosen_alike(both, fresh):
    args = ("-n", "-t", "100", "-b", "tpcb@2", "-b", "simple@3", "-b", "select@0", "--random-seed=11", "-C")
    theirs, mine = both(left(fresh, 18, *args))
    assert mine == theirs


@pytest.mark.like_pgbench
def test_clients_of_several_threads_draw_their_own_values(both, fresh):
    # A client's values do not depend on the other clients; what they add up to does not depend on the order.
    def act(program):
        found = left(fresh, 18, "-n", "-t", "30", "-c", "5", "-j", "3", "--random-seed=3")(program)
        return {**found, "history": sorted(found["history"])}

    theirs, mine = both(act)
    assert mine == theirs
    assert len(mine["history"]) == 150


@pytest.mark.parametrize("script", ["tpcb-like", "simple-update"])
@pytest.mark.parametrize("extra", ["", "-C"])
def test_the_sums_of_many_clients_agree(peers, fresh, script, extra):
    target = fresh()
    done = peers[1].run(target, "-n", "-t", "25", "-c", "16", "-j", "2", "-M", "prepared", "-b", script, *extra.split())
    assert "number of transactions actually processed: 400/400\n" in done.stdout
    with target.connect_as_user() as connection:
        (sums,) = connection.execute(
            "SELECT (SELECT count(*) FROM pgbench_history), (SELECT sum(delta) FROM pgbench_history),"
            " (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),"
            " (SELECT sum(bbalance) FROM pgbench_branches)"
        ).fetchall()
    count, delta, accounts, tellers, branches = sums
    assert (count, accounts) == (400, delta)
    assert (tellers, branches) == ((delta, delta) if script == "tpcb-like" else (0, 0))
