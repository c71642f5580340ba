"""With one seed the original and ours draw the same values, send the same statements and leave the same rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgtrial.arm.connect import Target
from tests.engine.programs import Program

MODES = ("simple", "extended", "prepared")


def rows(target: Target) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the four tables in a fixed order; the history in that of its insertion, without its times."""
    queries = {
        "accounts": "SELECT * FROM pgbench_accounts WHERE abalance <> 0 ORDER BY aid",
        "untouched": "SELECT count(*), sum(aid), sum(bid), min(filler), max(filler) FROM pgbench_accounts "
        "WHERE abalance = 0",
        "branches": "SELECT * FROM pgbench_branches ORDER BY bid",
        "tellers": "SELECT * FROM pgbench_tellers ORDER BY tid",
        "history": "SELECT tid, bid, aid, delta, filler FROM pgbench_history ORDER BY ctid",
    }
    with target.connect() as connection:
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def both_leave(peers: tuple[Program, Program], fresh, major: int, *args: str) -> list[dict]:
    left = []
    for program in peers:
        target = fresh(major)
        done = program.run(target, *args)
        assert done.status == 0, done.stderr
        left.append(rows(target))
    return left


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update"])
def test_a_seeded_client_leaves_the_same_rows(peers, fresh, script, mode):
    args = ("-n", "-t", "200", "-b", script, "-M", mode, "--random-seed=7")
    theirs, mine = both_leave(peers, fresh, 18, *args)
    assert mine == theirs
    assert len(mine["history"]) == 200


@pytest.mark.parametrize("major", [15, 16, 17])
def test_a_seeded_client_leaves_the_same_rows_on_older_servers(peers, fresh, major):
    args = ("-n", "-t", "50", "-M", "prepared", "--random-seed=18446744073709551615")
    theirs, mine = both_leave(peers, fresh, major, *args)
    assert mine == theirs
    assert len(mine["history"]) == 50


def test_scripts_are_chosen_alike(peers, fresh):
    args = ("-n", "-t", "100", "-b", "tpcb@2", "-b", "simple@3", "-b", "select@0", "--random-seed=11", "-C")
    theirs, mine = both_leave(peers, fresh, 18, *args)
    assert mine == theirs


def test_clients_of_several_threads_draw_their_own_values(peers, fresh):
    # A client's values do not depend on the other clients; what they add up to does not depend on the order.
    args = ("-n", "-t", "30", "-c", "5", "-j", "3", "--random-seed=3")
    theirs, mine = both_leave(peers, fresh, 18, *args)
    for left in (theirs, mine):
        left["history"].sort()
    assert mine == theirs
    assert len(mine["history"]) == 150


@pytest.mark.parametrize("script", ["tpcb-like", "simple-update"])
@pytest.mark.parametrize("extra", ["", "-C"])
def test_the_sums_of_many_clients_agree(peers, fresh, script, extra):
    target = fresh()
    done = peers[1].run(target, "-n", "-t", "25", "-c", "16", "-j", "2", "-M", "prepared", "-b", script, *extra.split())
    assert "number of transactions actually processed: 400/400\n" in done.stdout
    with target.connect() as connection:
        (sums,) = connection.execute(
            "SELECT (SELECT count(*) FROM pgbench_history), (SELECT sum(delta) FROM pgbench_history),"
            " (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),"
            " (SELECT sum(bbalance) FROM pgbench_branches)"
        ).fetchall()
    count, delta, accounts, tellers, branches = sums
    assert (count, accounts) == (400, delta)
    assert (tellers, branches) == ((delta, delta) if script == "tpcb-like" else (0, 0))


@pytest.fixture
def logging_database(fresh, clusters) -> tuple[Target, Path]:
    """A loaded database whose server logs every statement, and the log."""
    target = fresh()
    with target.connect() as connection:
        connection.execute(f"ALTER DATABASE {target.dbname} SET log_statement = 'all'")
    return target, clusters(18).data_directory.with_suffix(".log")


def logged(database: tuple[Target, Path], program: Program, *args: str) -> list[list[str]]:
    """The statements and parameters that one run had logged: a list for each session, in the order of their starts."""
    target, log = database
    begin = log.stat().st_size
    done = program.run(target, *args)
    assert done.status == 0, done.stderr
    text = log.read_bytes()[begin:].decode()
    sessions: dict[str, list[str]] = {}
    for process, words in re.findall(r"^[-\d]+ [:.\d]+ UTC \[(\d+)\] (.*(?:\n\t.*)*)", text, flags=re.MULTILINE):
        if re.match(r"LOG:  (?:statement|execute)|DETAIL:  Parameters", words):
            sessions.setdefault(process, []).append(words)
    return list(sessions.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
def test_a_server_logs_the_same_statements(peers, logging_database, script, mode):
    args = ("-t", "50", "--random-seed=7", "-b", script, "-M", mode)
    (their_setup, their_client), (my_setup, my_client) = (logged(logging_database, program, *args) for program in peers)
    assert my_client == their_client
    assert sum("SELECT abalance" in words for words in my_client) == 50

    # Both ask in their own words whether the accounts are partitioned; all else around the run is the same.
    def without_question(session: list[str]) -> list[str]:
        return [words for words in session if "pg_partitioned_table" not in words]

    assert without_question(my_setup) == without_question(their_setup)


def test_a_server_logs_the_same_statements_of_several_scripts_and_connections(peers, logging_database):
    args = ("-n", "-t", "20", "--random-seed=8", "-b", "tpcb", "-b", "select@2", "-M", "prepared", "-C")
    theirs, mine = (logged(logging_database, program, *args) for program in peers)
    assert mine[1:] == theirs[1:]
    assert len(mine) == 21
