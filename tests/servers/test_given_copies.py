"""Tests that databases that somebody has restored, copied or renamed do not count as pgtrial's, though they have its
comments: each kind of data.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from pgtrial.loads.data.order_entry_tables import OrderEntryTables
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.task_table import TaskTable
from pgtrial.loads.marks import Mark, mark_on
from pgtrial.loads.process import finished, starting
from pgtrial.loads.target import value
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.servers.arm import Needs
from pgtrial.servers.given_data import data_journal, note_made
from pgtrial.store.study_file import build_study
from tests.conftest import require_engine
from tests.packs import write_pack
from tests.servers.given import arm_of, checked, dsn_of, execute, remove, silent, spec_of

pytestmark = pytest.mark.server

_SCRIPT = """
function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE mine AS SELECT 1 AS id")
end
function event() end
"""
_SCHEMA = """
CREATE SCHEMA app;
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE FUNCTION next_of(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i + 1';
CREATE TABLE counters (id int PRIMARY KEY DEFAULT next_of(1), value bigint NOT NULL);
CREATE TABLE first_name (id int);
ALTER TABLE first_name RENAME TO second_name;
CREATE TABLE app.inner AS SELECT 1 AS one;
"""

LOADS = {
    "pgbench": {"workload": "select-only", "scale": 1},
    "sysbench": {"workload": "oltp_read_only", "sysbench": {"tables": 2, "table_size": 10}},
    "script of sysbench": {"workload": "./mine.lua"},
    "tasks": {"workload": "app-tasks", "tasks": {"pool": 2, "threads_in_table": 2, "rows": 50}},
    "order entry": {"workload": "order-entry", "scale": 1, "procedures": True},
    "pack": {"workload": "./counted", "scale": 1},
}

_OBJECTS = """SELECT c.oid::regclass::text, c.oid::bigint, pg_relation_filenode(c.oid)::bigint,
        pg_stat_get_vacuum_count(c.oid) + pg_stat_get_analyze_count(c.oid), obj_description(c.oid, 'pg_class')
    FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace >= 16384 OR c.relnamespace = 'public'::regnamespace
    UNION ALL SELECT oid::regprocedure::text, oid::bigint, 0, 0, obj_description(oid, 'pg_proc')
    FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT typname, oid::bigint, 0, 0, obj_description(oid, 'pg_type') FROM pg_type WHERE typtype = 'e'
    UNION ALL SELECT nspname, oid::bigint, 0, 0, obj_description(oid, 'pg_namespace') FROM pg_namespace
    ORDER BY 1, 2"""


@pytest.fixture(params=LOADS)
def load(request):
    return request.param


@pytest.fixture
def spec_in(tmp_path, given, load):
    """Returns a function that returns the study of a load in a database, and its data: `spec_in("one")`."""
    require_engine()
    (tmp_path / "mine.lua").write_text(_SCRIPT)
    write_pack(tmp_path / "counted", schema_sql=_SCHEMA)

    def made(database):
        server = {"dsn": dsn_of(given, database)}
        spec = build_study({"load": LOADS[load], "server": server, "arms": {"A": {}, "B": {}}}, "test", tmp_path)
        [data] = Needs.of(Design(spec)).data
        return spec, data

    return made


@pytest.fixture
def one(given, spec_in, workspace):
    """Returns the database `one`, in which pgtrial has made the data of the load."""
    execute(given, "CREATE DATABASE one")
    spec, data = spec_in("one")
    checked(spec, workspace).prepare(data, silent)
    server = replace(given.target, dbname="one")
    if isinstance(data, OrderEntryTables):
        with starting() as engine:
            run = finished([engine, "order-entry", "run", "--procedures", "-t", "1"], server.environment())
        assert run.returncode == 0, run.stderr
    return server


def _restored(server, dbname):
    """Restores a dump of the database into another one and returns that."""
    copy = replace(server, dbname=dbname)
    with replace(server, dbname="postgres").connect_as_user() as session:
        session.execute(f"CREATE DATABASE {dbname}")
    target = ["-h", server.host, "-p", str(server.port), "-U", server.user]
    dump = subprocess.run(
        [server.programs / "pg_dump", *target, "-Fc", server.dbname], check=True, capture_output=True
    ).stdout
    subprocess.run([server.programs / "pg_restore", *target, "-d", dbname], check=True, input=dump)
    return copy


def _copied(server, dbname):
    """Copies the database by CREATE DATABASE and returns the copy."""
    with replace(server, dbname="postgres").connect_as_user() as session:
        session.execute(f"CREATE DATABASE {dbname} TEMPLATE {server.dbname}")
    return replace(server, dbname=dbname)


def _renamed(server, dbname):
    """Renames the database and returns it."""
    with replace(server, dbname="postgres").connect_as_user() as session:
        session.execute(f"ALTER DATABASE {server.dbname} RENAME TO {dbname}")
    return replace(server, dbname=dbname)


@pytest.mark.parametrize("become", [_restored, _copied, _renamed])
def test_data_that_was_restored_copied_or_renamed_stays_as_it_is(one, spec_in, workspace, tmp_path, become):
    copy = become(one, "two")
    spec, data = spec_in("two")
    with copy.connect_as_user() as session:
        if isinstance(data, PgbenchTables):
            session.execute("INSERT INTO pgbench_history (tid) VALUES (1)")
        before = session.execute(_OBJECTS).fetchall()
        assert any("[made as" in (comment or "") for *_, comment in before)
        if isinstance(data, PgbenchTables):
            arm = checked(spec, workspace)
            assert "pgtrial has not made pgbench's tables of scale 1" in arm.notes[0]
            with arm.serve(data, tmp_path / "log", {}):
                assert value(session, "SELECT tid FROM pgbench_history") == 1
        else:
            with pytest.raises(StudyError, match=r"two already holds .* did not make and will not replace \(a copy of"):
                checked(spec, workspace)
            with pytest.raises(StudyError, match="will not replace"):
                arm_of(spec, workspace).prepare(data, silent)
        note_made(workspace.state, copy, data)
        stays = remove(workspace, _record(workspace, copy))
        assert "stays, since it is a copy of pgtrial's tables that somebody else has made" in stays
        assert session.execute(_OBJECTS).fetchall() == before


def _record(workspace, server):
    [record] = [
        record
        for record in data_journal(workspace.state).records()
        if (record.target.host, record.target.dbname) == (server.host, server.dbname)
    ]
    return record


def test_cleanup_of_the_first_database_leaves_copies_in_other_schemas_and_what_was_renamed(one, workspace):
    with one.connect_as_user() as session:
        tables = [name for (name,) in session.execute(_TABLES).fetchall()]
        *others, kept = tables
        session.execute("CREATE SCHEMA aside")
        for name in others:
            session.execute(f"CREATE TABLE aside.{name} AS SELECT * FROM {name}")
            comment = value(session, f"SELECT quote_literal(obj_description('{name}'::regclass))")
            session.execute(f"COMMENT ON TABLE aside.{name} IS {comment}")
        session.execute(f"ALTER TABLE {kept} RENAME TO kept")
        rows = value(session, "SELECT count(*) FROM kept")
        stays = remove(workspace, _record(workspace, one))
        assert stays.endswith("stays, since it is a copy of pgtrial's tables that somebody else has made.")
        assert session.execute(_TABLES).fetchall() == [("kept",)]
        assert value(session, "SELECT count(*) FROM kept") == rows
        query = "SELECT relname FROM pg_class WHERE relnamespace = 'aside'::regnamespace AND relkind = 'r' ORDER BY 1"
        assert [name for (name,) in session.execute(query).fetchall()] == sorted(others)
        left = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        assert value(session, left) == 0


_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"


@pytest.mark.parametrize("load", ["pgbench", "sysbench", "tasks", "order entry", "pack"], indirect=True)
def test_a_copy_under_the_first_name_is_said_to_stay(one, spec_in, workspace):
    """The database is dropped and made again from its dump: pgtrial has a record of it, and has made nothing there."""
    _restored(one, "two")
    with replace(one, dbname="postgres").connect_as_user() as session:
        session.execute("DROP DATABASE one")
        session.execute("ALTER DATABASE two RENAME TO one")
    with one.connect_as_user() as session:
        before = session.execute(_OBJECTS).fetchall()
        assert "stays, since it is a copy" in remove(workspace, _record(workspace, one))
        assert session.execute(_OBJECTS).fetchall() == before


def test_a_role_that_may_not_ask_for_the_servers_identifier_finds_its_own_tables(given, workspace):
    require_engine()
    execute(
        given,
        "CREATE ROLE bob LOGIN",
        "CREATE DATABASE bobs OWNER bob",
    )
    with replace(given.target, dbname="bobs").connect_as_user() as session:
        session.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public")
    spec = spec_of(dsn_of(given, "bobs", "bob"), workload="order-entry", scale=1)
    [data] = Needs.of(Design(spec)).data
    checked(spec, workspace).prepare(data, silent)
    with replace(given.target, dbname="bobs", user="bob").connect_as_user() as session:
        assert data.find(session)
        assert "[made as -." in value(session, "SELECT obj_description('warehouse'::regclass)")
    with replace(given.target, dbname="bobs").connect_as_user() as session:
        assert data.find(session), "a superuser's session finds them as well"


def test_marks_that_the_engine_has_written_are_read_in_any_encoding(given, workspace):
    require_engine()
    execute(given, """CREATE DATABASE "b\u00e9'n\\ch" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0""")
    server = replace(given.target, dbname="b\u00e9'n\\ch")
    data = TaskTable(2, 5)
    data.make(server, silent)
    with server.connect_as_user() as session:
        assert data.find(session)
        assert data.table_names(session) == ["public.table_a"]
        assert mark_on(session, "table_a") == Mark("pgtrial tasks: 2 x 5")
