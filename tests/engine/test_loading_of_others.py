"""Loading asks no more of a server than the originals do: no catalog that is not needed, no setting of a session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.programs import settled
from tests.engine.sessions import wait_until_left
from tests.engine.sysbench.sides import ours as sysbench
from tests.poolers import pooled

pytestmark = pytest.mark.server

CATALOGS = [
    "pg_stat_activity",
    "pg_settings",
    "pg_event_trigger",
    "pg_inherits",
    "pg_attribute",
    "FUNCTION pg_catalog.pg_get_partkeydef(oid)",
    "FUNCTION pg_catalog.pg_get_expr(pg_node_tree, oid)",
    "FUNCTION pg_catalog.pg_has_role(oid, text)",
    "FUNCTION pg_catalog.to_regclass(text)",
    "FUNCTION pg_catalog.format_type(oid, integer)",
]
"""The catalogs and functions that a hosting provider may revoke from users, and that pgbench does not use."""


@pytest.fixture
def plain(fresh):
    """Yields an empty database as its owner and as a user without further rights reach it."""
    target = fresh(empty=True)
    with target.connect_as_user() as owner:
        owner.execute("CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain")
        yield owner, replace(target, user="plain")
        owner.execute("DROP OWNED BY plain; DROP ROLE plain")


@pytest.mark.parametrize(
    "args", [[], ["--partitions=2"], ["--partitions=2", "--partition-method=hash", "--load-jobs=2"]]
)
@pytest.mark.parametrize("catalog", CATALOGS)
def test_catalogs_that_are_not_needed_may_be_revoked(peers, plain, catalog, args):
    owner, target = plain
    owner.execute(f"REVOKE ALL ON {catalog} FROM PUBLIC")
    done = peers[1].run(target, "-i", "-q", *args)
    assert done.status == 0, done.stderr
    assert owner.execute("SELECT count(*), count(DISTINCT aid) FROM pgbench_accounts").fetchone() == (100_000, 100_000)
    keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid = 'pgbench_accounts'::regclass"
    assert owner.execute(keys).fetchone() == (1,)


@pytest.mark.parametrize("steps", ["d", "dtG", "dtgvpf"])
def test_steps_without_the_list_of_sessions(peers, plain, steps):
    owner, target = plain
    owner.execute("REVOKE ALL ON pg_stat_activity, pg_settings, pg_inherits, pg_attribute FROM PUBLIC")
    assert peers[1].run(target, "-i", "-q", "-I", steps).status == 0


@pytest.mark.parametrize("program", ["pgbench", "sysbench"])
def test_no_setting_outlives_its_transaction(clusters, peers, fresh, program):
    target = fresh(empty=True)
    with target.connect_as_user() as connection:
        connection.execute(f"ALTER DATABASE {target.dbname} SET maintenance_work_mem = '1MB'")
    log = clusters(18).data_directory.with_suffix(".log")
    before = log.stat().st_size
    if program == "pgbench":
        done = peers[1].run(target, "-i", "-q", "--partitions=2", "--load-jobs=2", PGOPTIONS="-c log_statement=all")
    else:
        where = {"PGOPTIONS": "-c log_statement=all"}
        done = sysbench().run(target, "oltp_read_only", "--tables=2", "--table-size=50000", "prepare", **where)
    assert done.status == 0, done.stderr
    wait_until_left(target)
    statements = [
        line.split("statement: ")[1].lower()
        for line in log.read_bytes()[before:].decode().splitlines()
        if "statement: " in line
    ]
    assert any(statement.startswith("set local maintenance_work_mem") for statement in statements)
    assert not [s for s in statements if s.startswith(("set ", "reset")) and not s.startswith("set local")]


def test_a_fatal_error_while_loading(peers, fresh):
    results = []
    for program in peers:
        target = fresh()
        with target.connect_as_user() as connection:
            connection.execute(
                "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NEW; END $$"
            )
            connection.execute(
                "CREATE TRIGGER leave BEFORE INSERT ON pgbench_accounts FOR EACH STATEMENT EXECUTE FUNCTION leave()"
            )
        results.append(settled(program.run(target, "-i", "-q", "-I", "G")))
    assert results[1] == results[0]
    assert "FATAL:" in results[1].stderr
    assert "server closed the connection unexpectedly" in results[1].stderr


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("method", ["range", "hash"])
def test_a_pool_that_is_smaller_than_the_number_of_connections(clusters, peers, fresh, mode, method):
    target = fresh(empty=True)
    args = ["-i", "-q", "-s", "2", "--partitions=3", f"--partition-method={method}", "--load-jobs=3"]
    with pooled(clusters(18), mode, size=2, dbname=target.dbname) as pool:
        done = peers[1].run(pool, *args)
    assert done.status == 0, done.stderr
    assert done.stderr.count("pgbench: warning: loading over one connection: ") == 1
    assert "through a pooler" in done.stderr
    with target.connect_as_user() as connection:
        assert connection.execute("SELECT count(DISTINCT aid) FROM pgbench_accounts").fetchone() == (200_000,)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("DATABASE {dbname} SET idle_in_transaction_session_timeout = '1h'", "the server ends sessions that wait"),
        ("DATABASE {dbname} SET transaction_timeout = '1h'", "the server ends sessions that wait"),
        ("DATABASE {dbname} CONNECTION LIMIT 3", "--load-jobs needs 3"),
        ("ROLE plain CONNECTION LIMIT 2", "--load-jobs needs 3 further connections, but only 1 are free"),
    ],
)
def test_further_connections_are_used_only_where_they_cost_nobody_anything(peers, plain, setting, reason):
    owner, target = plain
    owner.execute(f"ALTER {setting.format(dbname=target.dbname)}")
    done = peers[1].run(target, "-i", "-q", "--partitions=3", "--load-jobs=3")
    assert done.status == 0, done.stderr
    assert reason in done.stderr
    assert owner.execute("SELECT count(DISTINCT aid) FROM pgbench_accounts").fetchone() == (100_000,)


def test_further_connections_are_used_where_nothing_speaks_against_it(peers, fresh):
    done = peers[1].run(fresh(empty=True), "-i", "-q", "--partitions=3", "--load-jobs=3")
    assert (done.status, "warning" in done.stderr) == (0, False)
