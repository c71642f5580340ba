"""Tests that with one seed the original and ours send the same statements and parameters, as a server logs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.programs import Program
from tests.engine.recordings import by_fifties

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]


MODES = ("simple", "extended", "prepared")
TRANSACTIONS = 1000

EVERY_DRAW = r"""
\set u random(1, 100000 * :scale)
\set w random(0, 9223372036854775806)
\set g random_gaussian(1, 1000000, 2.5)
\set e random_exponential(1, 1000000, 9.5)
\set z random_zipfian(1, 1000000, 1.07)
\set y random_zipfian(1, 1000, 2)
\set h hash(:u)
\set f hash_fnv1a(:w, :client_id)
\set p permute(:z, 1000001)
\set q permute(:z, 1048576, :h)
\set d :g / 3.0
\set b :u % 2 = 0
SELECT :u, :w, :g, :e;
\if :b
SELECT :z, :y, ':' AS colon, :h, :f;
\else
SELECT :p, :q, :d;
\endif
"""
A_PIPELINE = r"""
\set a random(1, 1000)
\startpipeline
SELECT 1, :a;
\set a random_gaussian(1, 1000, 3)
SELECT 2, :a;
\syncpipeline
SELECT 3, :a;
\endpipeline
"""
COMBINED = r"""
\set a random_zipfian(1, 1000, 1.5)
BEGIN\; SELECT :a, random_seed FROM (SELECT :random_seed AS random_seed) s\; COMMIT;
SELECT count(*) AS n FROM pgbench_branches WHERE bid <= :a \gset
SELECT :n, :default_seed;
"""


@pytest.fixture
def logging_database(fresh, clusters) -> tuple[Target, Path]:
    """Returns a loaded database whose server logs every statement, and the path of that log."""
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute(f"ALTER DATABASE {target.dbname} SET log_statement = 'all'")
    return target, clusters(18).data_directory.with_suffix(".log")


def logged(database: tuple[Target, Path], program: Program, *args: str) -> list[list[str]]:
    """Returns the statements and parameters that one run had logged: a list for each session, in the order of their
    starts.
    """
    target, log = database
    begin = log.stat().st_size
    done = program.run(target, *args)
    assert done.status == 0, done.stderr
    text = log.read_bytes()[begin:].decode()
    sessions: dict[str, list[str]] = {}
    for process, words in re.findall(r"^[-\d]+ [:.\d]+ \S+ \[(\d+)\] (.*(?:\n\t.*)*)", text, flags=re.MULTILINE):
        if re.match(r"LOG:  (?:statement|execute)|DETAIL:  Parameters", words):
            sessions.setdefault(process, []).append(words)
    return list(sessions.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
def test_a_server_logs_the_same_statements(both, logging_database, script, mode):
    args = ("-t", str(TRANSACTIONS), "--random-seed=7", "-b", script, "-M", mode)

    def act(program):
        setup, client = logged(logging_database, program, *args)
        assert sum("SELECT abalance" in words for words in client) == TRANSACTIONS
        # Both ask in their own words whether the accounts are partitioned; all else around the run is the same.
        return {
            "setup": [words for words in setup if "pg_partitioned_table" not in words],
            "client": by_fifties(client),
        }

    theirs, mine = both(act)
    assert mine == theirs


def test_a_server_logs_the_same_statements_of_several_scripts_and_connections(both, logging_database):
    args = ("-n", "-t", "20", "--random-seed=8", "-b", "tpcb", "-b", "select@2", "-M", "prepared", "-C")

    def act(program):
        _, *clients = logged(logging_database, program, *args)
        return clients

    theirs, mine = both(act)
    assert mine == theirs
    assert len(mine) == 20


@pytest.mark.parametrize(
    ("script", "mode"),
    [
        *((EVERY_DRAW, mode) for mode in MODES),
        (COMBINED, "simple"),
        *((A_PIPELINE, mode) for mode in MODES if mode != "simple"),
    ],
)
def test_a_server_logs_the_same_statements_of_a_script(both, logging_database, tmp_path, script, mode):
    path = tmp_path / "script.sql"
    path.write_text(script)
    args = ("-n", "-t", str(TRANSACTIONS), "--random-seed=20", "-f", str(path), "-M", mode)

    def act(program):
        (client,) = logged(logging_database, program, *args)
        # two or more in a transaction, and the draws differ from one to the next
        assert len(client) >= 2 * TRANSACTIONS
        assert len(set(client)) > TRANSACTIONS / 5
        return by_fifties(client)

    theirs, mine = both(act)
    assert mine == theirs


def test_a_server_logs_the_same_statements_of_several_scripts(both, logging_database, tmp_path):
    path = tmp_path / "script.sql"
    path.write_text(EVERY_DRAW)
    scripts = ("-f", f"{path}@3", "-b", "select-only@2", "-f", str(path), "-b", "simple-update@0")
    args = ("-n", "-t", str(TRANSACTIONS), "--random-seed=21", *scripts, "-M", "prepared")

    def act(program):
        # the questions before the run are in words of each one's own
        client = logged(logging_database, program, *args)[-1]
        # both of the scripts that have a weight
        assert any("abalance" in words for words in client)
        assert any("colon" in words for words in client)
        return by_fifties(client)

    theirs, mine = both(act)
    assert mine == theirs


@pytest.mark.parametrize("mode", MODES)
def test_each_of_several_clients_sends_the_same_statements(both, logging_database, tmp_path, mode):
    # Of several scripts a client's next depends on the other clients: those of a thread share the draws that choose.
    path = tmp_path / "script.sql"
    path.write_text(EVERY_DRAW)
    args = ("-n", "-t", "200", "-c", "4", "-j", "1", "--random-seed=21", "-f", str(path), "-M", mode)
    # the clients come in any order
    theirs, mine = both(lambda program: sorted(map(by_fifties, logged(logging_database, program, *args))))
    assert mine == theirs
    assert len({tuple(session) for session in mine}) == 4


def test_a_transaction_is_repeated_with_the_same_statements(both, logging_database, tmp_path):
    target, _ = logging_database
    with target.connect_as_user() as connection:
        connection.execute("CREATE SEQUENCE turns")
        connection.execute(
            "CREATE FUNCTION mishap() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('turns') % 3 <> 0 THEN RAISE serialization_failure; END IF; RETURN 1; END $$"
        )
    path = tmp_path / "script.sql"
    path.write_text("BEGIN;\n\\set a random(1, 1000000)\nSELECT :a;\nSELECT mishap();\nEND;\n")
    args = ("-n", "-t", "100", "--max-tries=3", "--random-seed=22", "-f", str(path))
    theirs, mine = both(lambda program: logged(logging_database, program, *args))
    assert mine == theirs
    (my_client,) = mine
    assert sum("ROLLBACK" in words.upper() for words in my_client) == 200
