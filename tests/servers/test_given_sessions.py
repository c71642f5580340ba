"""Sessions of the lab on given servers: shadowed catalogs, limits of milliseconds, and poolers before the server."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from pgtrial.evidence.collect.collect import collect
from pgtrial.evidence.observe.sampler import Sampler
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.target import value
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.servers.arm import Needs
from pgtrial.servers.given_data import data_journal
from pgtrial.servers.server_locks import ServerLocks
from tests.conftest import require_engine
from tests.poolers import pooled
from tests.servers.given import arm_of, automatic, checked, dsn_of, execute, remove, served, show, silent, spec_of

pytestmark = pytest.mark.server

_SHADOWS = (
    "CREATE SCHEMA mine",
    "CREATE FUNCTION mine.current_setting(text) RETURNS text LANGUAGE sql AS $$SELECT 'shadow'$$",
    "CREATE FUNCTION mine.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION mine.obj_description(oid, name) RETURNS text LANGUAGE sql AS $$SELECT 'mine'$$",
    *(
        f"CREATE TABLE mine.{name} (nothing int)"
        for name in ("pg_class", "pg_database", "pg_settings", "pg_stat_activity", "pg_locks", "pg_file_settings")
    ),
)


@pytest.fixture
def shadowed(given):
    """Returns the connection string of a role whose search path begins with a schema of tables and functions that have
    the names of those in pg_catalog.
    """
    execute(given, *_SHADOWS, "CREATE ROLE bob LOGIN SUPERUSER")
    execute(given, "ALTER ROLE bob SET search_path = mine, pg_catalog, public")
    return dsn_of(given, user="bob")


def test_catalogs_that_a_search_path_shadows_are_found(given, shadowed, workspace, tmp_path):
    require_engine()
    before = automatic(given).read_bytes()
    arm = checked(spec_of(shadowed, {"work_mem": "5MB"}), workspace)
    with ServerLocks("shadowed") as locks:
        assert locks.take({"A": arm}) == []
    arm.prepare(PgbenchTables(1), silent)
    assert served(arm, tmp_path, show("work_mem")) == ["5MB"]
    [target] = arm.targets
    assert collect("A", target).facts["settings"]["search_path"] == "mine, pg_catalog, public"
    assert collect("A", target).facts["sources"]["search_path"] == "user"
    [record] = [each for each in data_journal(workspace.state).records() if each.target.host == given.target.host]
    remove(workspace, record)
    with given.target.connect_as_user() as session:
        assert value(session, "SELECT count(*) FROM pg_class WHERE relname ~ '^pgbench_'") == 0
        assert value(session, "SELECT count(*) FROM pg_class WHERE relnamespace = 'mine'::regnamespace") == 6
    assert automatic(given).read_bytes() == before


def test_a_search_path_of_an_arm_is_compared_with_that_of_the_loads_sessions(given, shadowed, workspace, tmp_path):
    execute(given, "ALTER ROLE bob RESET search_path")
    path = "mine, pg_catalog"
    arm = checked(spec_of(shadowed, {"search_path": path}), workspace)
    assert served(arm, tmp_path, lambda target: collect("A", target).facts["settings"]["search_path"]) == path


_OF_A_DATABASE = {
    "client_min_messages": "debug5",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
}


def test_settings_of_a_database_change_nothing_of_what_the_labs_sessions_do_and_are_among_the_facts(given):
    execute(
        given, "CREATE DATABASE odd", *(f"ALTER DATABASE odd SET {n} = '{text}'" for n, text in _OF_A_DATABASE.items())
    )
    target = replace(given.target, dbname="odd")
    told = []
    with target.connect() as session:
        session.add_notice_handler(told.append)
        in_lab = {name: value(session, "SELECT current_setting(%s)", name) for name in _OF_A_DATABASE}
        assert value(session, "SELECT 0.1::float8 + 0.2") == 0.1 + 0.2
        assert value(session, r"SELECT length('\\')") == 2
        session.execute("CREATE TABLE public.kept (n int)")
        assert value(session, "SELECT current_setting('transaction_isolation')") == "read committed"
    assert told == []
    assert not in_lab.items() & _OF_A_DATABASE.items()
    with target.connect_as_load() as session:
        assert {name: value(session, "SELECT current_setting(%s)", name) for name in _OF_A_DATABASE} == _OF_A_DATABASE
    settings = collect("A", target).facts["settings"]
    assert {name: settings[name] for name in _OF_A_DATABASE} == _OF_A_DATABASE


@pytest.mark.parametrize("limit", ["idle_session_timeout", "transaction_timeout", "statement_timeout"])
def test_limits_of_milliseconds_end_no_session_of_the_lab_and_are_among_the_facts(given, workspace, tmp_path, limit):
    require_engine()
    execute(given, "CREATE ROLE bob LOGIN", "CREATE DATABASE bobs OWNER bob", f"ALTER ROLE bob SET {limit} = '1ms'")
    arm = checked(spec_of(dsn_of(given, "bobs", "bob")), workspace)
    arm.prepare(PgbenchTables(1), silent)
    with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target:
        for _ in range(5):
            with target.connect_as_user() as session:
                assert value(session, "SELECT 1 FROM pg_sleep(0.02)") == 1
        facts = collect("A", target).facts
        if limit == "idle_session_timeout":
            assert (facts["settings"][limit], facts["sources"][limit]) == ("1ms", "user")
        assert facts["server"]["version"] == given.server.version


def test_the_primary_key_has_no_worker_that_begins_with_a_roles_limit_of_transactions(given, workspace):
    require_engine()
    set_up = ("SET transaction_timeout = '1min'", "SET log_min_messages = 'debug1'")
    execute(given, "CREATE ROLE bob LOGIN SUPERUSER", *(f"ALTER ROLE bob {each}" for each in set_up))
    checked(spec_of(dsn_of(given, user="bob")), workspace).prepare(PgbenchTables(1), silent)
    log = given.data_directory.with_suffix(".log").read_text()
    built = [line for line in log.splitlines() if 'building index "pgbench_accounts_pkey"' in line]
    assert [line.rpartition(" ")[2] for line in built] == ["serially"]


@pytest.fixture
def pooler(given):
    """Yields a target behind PgBouncer with this pool_mode."""
    with ExitStack() as running:
        yield lambda mode: running.enter_context(pooled(given, mode, size=6))


def _dsn(target):
    return f"host={target.host} port={target.port} dbname={target.dbname} user={target.user}"


def test_nothing_that_the_lab_sets_stays_in_the_sessions_of_a_pooler(given, pooler, workspace, tmp_path):
    require_engine()
    execute(given, "ALTER ROLE postgres SET statement_timeout = '45s'", "ALTER SYSTEM SET work_mem = '3MB'")
    before = automatic(given).read_bytes()
    target = pooler("transaction")
    spec = spec_of(_dsn(target), {"maintenance_work_mem": "33MB"}, protocol="simple")
    arm = checked(spec, workspace)
    arm.prepare(PgbenchTables(1), silent)
    with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as served_target:
        with Sampler(served_target.connect, None, None) as sampler:
            sampler.load_begins(None)  # it looks once before it ends
        collect("A", served_target)
    with ExitStack() as stack:
        sessions = [stack.enter_context(target.connect_as_user()) for _ in range(6)]
        for session in sessions:
            session.execute("BEGIN")
        limits = {value(session, "SELECT current_setting('statement_timeout')") for session in sessions}
        prepared = {value(session, "SELECT count(*) FROM pg_prepared_statements") for session in sessions}
    assert limits == {"45s"}
    assert prepared == {0}
    assert automatic(given).read_bytes() == before


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_prepared_statements_behind_a_pooler_that_does_not_know_them_are_refused(pooler, workspace, mode):
    target = pooler(mode)
    with pytest.raises(StudyError, match=r"A: the dsn leads to a pooler .*; set protocol = .simple. in \[load\]"):
        checked(spec_of(_dsn(target)), workspace)
    checked(spec_of(_dsn(target), protocol="simple"), workspace)


def test_a_pooler_of_sessions_is_no_obstacle_to_prepared_statements(pooler, workspace):
    target = pooler("session")
    [reached] = checked(spec_of(_dsn(target)), workspace).targets
    assert (reached.host, reached.port) == (target.host, target.port)


def test_settings_of_sessions_behind_a_pooler_are_refused_with_the_way_out(pooler, workspace):
    spec = spec_of(_dsn(pooler("session")))
    sessions = {"A": {"work_mem": "5MB"}}
    with pytest.raises(
        StudyError, match=r"startup parameter.*; name the server and no pooler in the dsn, or set .*by A"
    ):
        arm_of(spec, workspace).check(replace(Needs.of(Design(spec)), sessions=sessions))


def test_two_arms_behind_a_pooler_of_statements_are_told_once_that_there_is_no_lock(pooler, workspace):
    target = pooler("statement")
    arms = {name: arm_of(spec_of(_dsn(target), protocol="simple"), workspace) for name in "AB"}
    with ServerLocks("pooled") as locks:
        [said] = locks.take(arms)
        assert "cannot be locked for this study (transaction blocks not allowed" in said
        assert locks.in_common()[0] == ["A", "B"]
