"""`-i` of the original and of ours: the same words, the same tables, the same rows in the same state."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.arm.connect import Target
from pgtrial.engine import environment
from tests.conftest import require, require_root
from tests.engine.programs import Ended, client_program

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")


def settle(done: Ended) -> tuple[int, str, str]:
    """All that was said, times aside; a progress line may have blanks at its end, to cover a longer one."""
    said = re.sub(r"\d+\.\d\d s", "#.00 s", done.stderr)
    return done.status, done.stdout, re.sub(r"\) +$", ")", said, flags=re.MULTILINE)


def definitions(target: Target) -> str:
    """The tables as pg_dump writes them, without its random key."""
    dump = subprocess.run(
        [client_program("pg_dump"), "--schema-only"],
        env=environment(target.environment()),
        capture_output=True,
        text=True,
        check=True,
    )
    # Debian's 15.20 gives every column of a new table a number in `pg_attver`
    return re.sub(r"^\\(un)?restrict .*$|pg_attver=\d+", "", dump.stdout, flags=re.MULTILINE)


def contents(target: Target) -> dict[str, object]:
    """Every row of every table, in the order of the pages."""
    with target.connect() as connection:
        return {
            table: connection.execute(
                f"SELECT count(*), md5(string_agg(t::text, ';' ORDER BY ctid)) FROM {table} t"
            ).fetchone()
            for table in TABLES
        }


def state(target: Target) -> dict[str, object]:
    """Sizes, statistics, and how many pages are all-visible and all-frozen."""
    with target.connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
        return {
            table: connection.execute(
                "SELECT pg_relation_size(c.oid), relpages, reltuples, relallvisible, relpersistence, v.*,"
                "  (SELECT count(*) FROM pg_stats s WHERE s.tablename = relname)"
                " FROM pg_class c, pg_visibility_map_summary(c.oid) v WHERE relname = %s",
                (table,),
            ).fetchone()
            for table in TABLES
        }


@pytest.fixture(scope="module", autouse=True)
def no_autovacuum(clusters) -> Iterator[None]:
    """While tables are compared nobody else is to work on them."""
    with clusters(18).target.connect() as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")
        yield
        connection.execute("ALTER SYSTEM RESET autovacuum")
        connection.execute("SELECT pg_reload_conf()")


RUNS = [
    "",
    "-s 2",
    "-s 1 -F 70",
    "-q -s 3",
    "-n",
    "--foreign-keys",
    "--foreign-keys -n -q",
    "-I dtgvpf",
    "-I dtgvpf --foreign-keys",
    "-I dtpg",
    "-I dtGvp",
    "-I dtGpf -s 2 -F 50",
    "-I 'd t g v'",
    "-I dtfpg",
    "-I dtpfg",
    "-I dtvg",
    "-I dt",
    "-I ' '",
    "-I v -n",
    "-I dtgvgv",
    "-I t -I dtg",
    "--initialize --init-steps=dtg --scale=1 --quiet --fillfactor=90 --no-vacuum",
]


@pytest.mark.parametrize("line", RUNS)
def test_the_tables_are_the_same_and_so_are_the_words(peers, fresh, line):
    ended, made = [], []
    for program in peers:
        target = fresh(empty=True)
        ended.append(settle(program.run(target, "-i", *shlex.split(line))))
        made.append(target)
    assert ended[1] == ended[0]
    assert definitions(made[1]) == definitions(made[0])
    with made[0].connect() as connection:
        exist = connection.execute("SELECT to_regclass('pgbench_history') IS NOT NULL").fetchone() == (True,)
    if exist:
        assert contents(made[1]) == contents(made[0])
        assert state(made[1]) == state(made[0])


@pytest.mark.parametrize("major", [15, 16, 17])
def test_the_tables_are_the_same_on_older_servers(peers, fresh, major):
    first, second = fresh(major, empty=True), fresh(major, empty=True)
    theirs, mine = peers[0].run(first, "-i", "--foreign-keys"), peers[1].run(second, "-i", "--foreign-keys")
    assert settle(mine) == settle(theirs)
    assert definitions(second) == definitions(first)
    assert contents(second) == contents(first)


@pytest.mark.parametrize("letter", "dtgGvpf")
@pytest.mark.parametrize("loaded_before", [True, False])
def test_each_step_alone_does_the_same(peers, fresh, letter, loaded_before):
    ended, made = [], []
    for program in peers:
        target = fresh(empty=not loaded_before)
        done = program.run(target, "-i", "-I", letter)
        ended.append(settle(done))
        made.append(target)
    assert ended[1] == ended[0]
    assert definitions(made[1]) == definitions(made[0])


def test_rows_come_in_frozen(peers, fresh):
    found = []
    for program in peers:
        target = fresh(empty=True)
        program.load(target, "-I", "dtg")
        with target.connect() as connection:
            connection.execute("CREATE EXTENSION pg_visibility")
            found.append(
                connection.execute(
                    "SELECT relname, pg_relation_size(c.oid) / 8192, v.all_visible, v.all_frozen"
                    " FROM pg_class c, pg_visibility_map_summary(c.oid) v"
                    " WHERE relname = ANY(%s) ORDER BY relname",
                    (list(TABLES),),
                ).fetchall()
            )
    assert found[1] == found[0]
    _, pages, visible, frozen = found[1][0]
    assert visible == frozen > 0.95 * pages


def test_a_second_load_replaces_the_first(peers, fresh):
    target = fresh()
    peers[1].run(target, "-n", "-t", "10")
    peers[1].load(target, "-s", "1")
    with target.connect() as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_history),"
            " (SELECT sum(abs(abalance)) FROM pgbench_accounts)"
        ).fetchone()
    assert counts == (100_000, 0, 0)


def test_a_role_that_may_not_create_tables_is_told_so(peers, fresh):
    target = fresh(empty=True)
    with target.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS pauper")
        connection.execute("CREATE ROLE pauper LOGIN")
    done = peers[1].run(replace(target, user="pauper"), "-i")
    with target.connect() as connection:
        connection.execute("DROP ROLE pauper")
    assert done.status == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("pgbench: ")]
    assert errors[0] == "pgbench: error: query failed: ERROR:  permission denied for schema public"
    assert errors[1].startswith("pgbench: detail: Query was: create table pgbench_history(")
    assert len(errors) == 2


def test_a_session_that_is_ended_ends_the_load(peers, fresh):
    target = fresh()
    with target.connect() as connection:
        connection.execute(
            "CREATE FUNCTION stop() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); END $$"
        )
        connection.execute("CREATE EVENT TRIGGER stop ON ddl_command_start EXECUTE FUNCTION stop()")
        ended = [program.run(target, "-i", "-I", "d") for program in peers]
        connection.execute("DROP EVENT TRIGGER stop")
    assert [done.status for done in ended] == [1, 1]
    assert "terminating connection due to administrator command" in ended[1].stderr


@pytest.fixture
def small_disk(tmp_path_factory, clusters) -> Iterator[Path]:
    """A file system of 8 MB that the server may write on."""
    require_root()
    path = tmp_path_factory.mktemp("disk")
    account = clusters(18).account
    mount = ["mount", "-t", "tmpfs", "-o", f"size=8m,uid={account.uid},mode=700", "tmpfs", str(path)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    require(mounted, "the right to mount a tmpfs")
    for parent in path.parents[:-2]:
        parent.chmod(0o755)
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_disk_ends_the_load_with_one_sentence(peers, fresh, small_disk):
    target = fresh(empty=True)
    with target.connect() as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
    try:
        done = peers[1].run(target, "-i", "-q", "-s", "2", PGOPTIONS="-c default_tablespace=small")
        assert done.status == 1
        assert done.stderr.count("No space left on device") == 1
        assert re.search(r"^pgbench: error: query failed: ERROR:  could not extend file", done.stderr, re.MULTILINE)
        assert "done in" not in done.stderr
    finally:
        with target.connect() as connection:
            connection.execute("DROP TABLE IF EXISTS " + ", ".join(TABLES))
            connection.execute("DROP TABLESPACE small")
