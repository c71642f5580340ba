"""Tests that objects which others make on a given server, while pgtrial makes its data or after it was killed, stay."""

from __future__ import annotations

import os
import signal
import threading
import traceback

import psycopg
import pytest

from pgtrial.loads.data.pgbench_names import TABLES
from pgtrial.loads.data.sysbench_tables import sysbench_order
from pgtrial.loads.load_makers import ENGINE_HERE
from pgtrial.loads.made_objects import MarkingSession, drop_marked, marked_objects, marking_query
from pgtrial.loads.target import value
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.design import Design
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.given_data import data_journal
from pgtrial.servers.leftovers import clean
from pgtrial.servers.workspace import Workspace
from pgtrial.store.study_file import build_study
from tests.conftest import require_engine
from tests.packs import FILES, write_pack
from tests.processes import until
from tests.servers.given import checked, dsn_of, execute, silent, spec_of

pytestmark = pytest.mark.server

_SYSBENCH = {"workload": "oltp_read_only", "sysbench": {"tables": 3, "table_size": 100}}
_MARK = "being prepared by pgtrial"
_ROWS = 777


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def _killed(act):
    """Do something in a process that kills itself by -9 on the way."""
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, "the words of the process are above"


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def _make(spec, state, report):
    arm = make_arms(Design(spec), Workspace(state))["A"]
    arm.check(Needs.of(Design(spec)))
    arm.prepare(Needs.of(Design(spec)).data[0], report)


def _engines_have_ended(given):
    """The engine of a killed lab ends a statement later."""
    with given.target.connect() as session:
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        until(lambda: value(session, others) == 0, "all sessions of the killed lab have ended")


def _rows(given, name):
    with given.target.connect() as session:
        return value(session, f"SELECT count(*) FROM public.{name}")


@pytest.mark.parametrize(
    ("load", "line"),
    [
        ({}, "creating tables"),
        ({}, "generating data"),
        (_SYSBENCH, "table 1 of 3"),
        (_SYSBENCH, "table 3 of 3"),
    ],
)
@pytest.mark.parametrize("rows", [0, _ROWS])
def test_what_somebody_makes_after_a_lab_was_killed_stays(given, fresh_state, load, line, rows):
    names = ("sbtest1", "sbtest2", "sbtest3") if load else TABLES
    spec = spec_of(dsn_of(given), **load)
    _killed(lambda: _make(spec, fresh_state, lambda said: _die() if line in said else None))
    _engines_have_ended(given)
    for name in names:
        execute(
            given, f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} AS SELECT generate_series(1, {rows}) AS id"
        )
    clean(fresh_state)
    with Workspace(fresh_state) as workspace, pytest.raises((StudyError, ArmError)):
        checked(spec, workspace)  # another study on the same server takes none of them
    assert [_rows(given, name) for name in names] == [rows] * len(names)
    assert data_journal(fresh_state).undo()[1] == []
    assert [_rows(given, name) for name in names] == [rows] * len(names)
    assert data_journal(fresh_state).records() == []


_SCRIPT = """
function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE lua_t(id int primary key, k int)")
  con:query("INSERT INTO lua_t SELECT i, i FROM generate_series(1, 9) i")
  con:query("SELECT pg_advisory_lock(4711)")
  con:query("CREATE INDEX lua_k ON lua_t (k)")
end
function event() end
"""


def test_a_table_that_an_application_makes_during_a_script_s_prepare_is_no_one_of_pgtrial(given, fresh_state, tmp_path):
    (tmp_path / "own.lua").write_text(_SCRIPT)
    asked = {"load": {"workload": "own.lua"}, "server": {"dsn": dsn_of(given)}, "arms": {"A": {}, "B": {}}}
    spec = build_study(asked, "test", tmp_path)
    execute(given, "CREATE SCHEMA app")
    with given.target.connect_as_user() as application:
        application.execute("SELECT pg_advisory_lock(4711)")
        with Workspace(fresh_state) as workspace:
            arm = checked(spec, workspace)
            data = Needs.of(Design(spec)).data[0]
            prepares = threading.Thread(target=arm.prepare, args=(data, silent))
            prepares.start()
            waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted"
            until(lambda: value(application, waits) == 1, "the script waits")
            application.execute(f"CREATE TABLE app.invoices AS SELECT generate_series(1, {_ROWS}) AS id")
            application.execute("ALTER TABLE lua_t ADD COLUMN invoice int")
            application.execute("SELECT pg_advisory_unlock(4711)")
            prepares.join()
        assert value(application, "SELECT obj_description('app.invoices'::regclass)") is None
        with given.target.connect() as session:
            assert data.find(session)
        assert data_journal(fresh_state).undo()[1] == []
        assert value(application, "SELECT count(*) FROM app.invoices") == _ROWS
        assert value(application, "SELECT to_regclass('lua_t')") is None


_STATEMENTS = """
function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE plain(id int primary key)")
  con:query("CREATE INDEX CONCURRENTLY late ON plain (id)")
  con:query("VACUUM plain")
  con:query("BEGIN")
  con:query("CREATE TABLE within(id serial)")
  con:query("CREATE VIEW seen AS SELECT * FROM within")
  con:query("COMMIT")
  con:query("SELECT 1 AS id INTO chosen")
  con:query("DO $$ BEGIN CREATE TABLE caught(id int REFERENCES theirs); EXCEPTION WHEN OTHERS THEN NULL; END $$")
  con:query("CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
  local statement = con:prepare("CREATE TABLE prepared(id int)")
  statement:execute()
  local row = con:query("SELECT 41 + one()"):fetch_row()
  assert(row[1] == "42", "what a statement returns is the script's")
  assert(not pcall(con.query, con, "CREATE TABLE plain(id int)"))
  con:query("CREATE TABLE after_a_failure(id int)")
end
"""


def _prepare(given, tmp_path, script, threads=1):
    (tmp_path / "own.lua").write_text(script)
    with given.target.connect() as session:
        mark_by = f"--mark-by={marking_query(session, _MARK)}"
    options = [mark_by, f"--threads={threads}"]
    path = str(tmp_path / "own.lua")
    ENGINE_HERE.make(sysbench_order(given.target.environment(), path, options, folder=tmp_path))


def _marked(given):
    with given.target.connect() as session:
        return {(made.kind, made.identity) for made in marked_objects(session, _MARK)}


def test_each_statement_of_a_script_marks_what_it_makes_and_nothing_else(given, tmp_path):
    execute(given, "CREATE TABLE theirs(id int PRIMARY KEY)")
    _prepare(given, tmp_path, _STATEMENTS)
    tables = {f"public.{name}" for name in ("plain", "within", "chosen", "caught", "prepared", "after_a_failure")}
    assert _marked(given) == {
        *(("table", name) for name in tables),
        ("view", "public.seen"),
        ("function", "public.one()"),
    }


_CHANGES = """
function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("BEGIN")
  con:query("ALTER TABLE theirs RENAME TO renamed")
  con:query("ALTER TABLE moved SET SCHEMA app")
  con:query("ALTER SEQUENCE numbers RESTART WITH 7")
  con:query("ALTER MATERIALIZED VIEW kept RENAME TO still_kept")
  con:query("REFRESH MATERIALIZED VIEW still_kept")
  con:query("CREATE OR REPLACE VIEW seen AS SELECT 2 AS id, 3 AS more")
  con:query("ALTER VIEW seen RENAME TO viewed")
  con:query("CREATE TABLE own(id serial)")
  con:query("CREATE VIEW own_view AS SELECT 1 AS id")
  con:query("CREATE SEQUENCE own_numbers")
  con:query("COMMIT")
end
"""


def test_what_a_script_changes_stays_somebody_elses_in_a_database_of_many_objects(given, tmp_path):
    """With so many objects, what was there before is not told by a list of OIDs, but by the rows of the catalogs."""
    execute(
        given,
        "CREATE SCHEMA app",
        "DO $$ BEGIN FOR i IN 1..5001 LOOP EXECUTE format('CREATE TYPE app.many%s AS ENUM ()', i); END LOOP; END $$",
        "CREATE TABLE theirs(id int)",
        "CREATE TABLE moved(id int)",
        "CREATE SEQUENCE numbers",
        "CREATE VIEW seen AS SELECT 1 AS id",
        "CREATE MATERIALIZED VIEW kept AS SELECT 1 AS id",
    )
    _prepare(given, tmp_path, _CHANGES)
    assert _marked(given) == {("table", "public.own"), ("view", "public.own_view"), ("sequence", "public.own_numbers")}
    with given.target.connect() as session:
        drop_marked(session, (_MARK,), everywhere=True)
    for name in ("renamed", "numbers", "viewed", "still_kept"):
        assert _rows(given, name) is not None


def test_a_partition_that_somebody_else_has_attached_is_not_dropped_with_its_table(given):
    with given.target.connect() as session, given.target.connect_as_load() as load:
        marking = MarkingSession(load, "made by a test")
        marking.execute(b"CREATE TABLE parts(id int) PARTITION BY RANGE (id)")
        marking.execute(b"CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)")
        execute(
            given,
            f"CREATE TABLE theirs AS SELECT generate_series(10, {_ROWS + 9}) AS id",
            "ALTER TABLE parts ATTACH PARTITION theirs FOR VALUES FROM (10) TO (10000)",
        )
        with pytest.raises(StudyError, match=r"table public\.theirs is a partition of public\.parts; detach it"):
            drop_marked(session, ("made by a test",), everywhere=True)
        assert _rows(given, "theirs") == _ROWS
        execute(given, "ALTER TABLE parts DETACH PARTITION theirs")
        drop_marked(session, ("made by a test",), everywhere=True)
        assert _rows(given, "theirs") == _ROWS
        assert value(session, "SELECT count(*) FROM pg_class WHERE relname LIKE 'parts%'") == 0


def test_what_all_clients_of_a_script_make_is_marked(given, tmp_path):
    script = """
function make()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE t" .. sysbench.tid .. "(id int)")
end
sysbench.cmdline.commands = { prepare = { make, sysbench.cmdline.PARALLEL_COMMAND } }
"""
    _prepare(given, tmp_path, script, threads=3)
    assert _marked(given) == {("table", f"public.t{number}") for number in range(3)}


def test_a_text_that_commits_by_itself_is_refused(given, tmp_path):
    script = 'function prepare() sysbench.sql.driver():connect():query("BEGIN; CREATE TABLE t(); COMMIT") end'
    with pytest.raises(ArmError, match="the text commits by itself"):
        _prepare(given, tmp_path, script)


def test_a_table_made_in_a_block_with_an_exception_handler_is_marked(given):
    """A table that is made in such a block has the number of a subtransaction as xmin in the catalog."""
    with given.target.connect() as lab, given.target.connect_as_load() as session:
        execute(given, "CREATE TABLE theirs(id int PRIMARY KEY)")
        marking = MarkingSession(session, "made by a test")
        with given.target.connect_as_user() as other:
            other.execute("CREATE TABLE meanwhile(id int PRIMARY KEY)")
        block = "CREATE TABLE caught(id int REFERENCES meanwhile, i int REFERENCES theirs)"
        marking.execute(f"DO $$ BEGIN {block}; EXCEPTION WHEN division_by_zero THEN NULL; END $$".encode())
        assert [made.name for made in marked_objects(lab, "made by a test")] == ["caught"]


def test_a_table_that_takes_the_place_of_one_that_is_being_dropped_stays(given):
    """The other table gets the name between pgtrial's check of the marks and its DROP."""
    with given.target.connect() as session, given.target.connect_as_load() as other:
        MarkingSession(other, "made by a test").execute(b"CREATE TABLE t(id int)")
        other.autocommit = False
        other.execute("ALTER TABLE t RENAME TO former")
        other.execute(f"CREATE TABLE t AS SELECT generate_series(1, {_ROWS}) AS id")
        failed = []

        def drop():
            try:
                drop_marked(session, ("made by a test",), everywhere=True)
            except psycopg.Error as error:
                failed.append(error)

        drops = threading.Thread(target=drop)
        drops.start()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted"
        until(lambda: value(other, waits) == 1, "the drop waits for the lock")
        other.commit()
        drops.join()
        assert failed == []
        assert value(other, "SELECT count(*) FROM t") == _ROWS


class TestNamesThatAreTaken:
    def refused(self, spec, state):
        with Workspace(state) as workspace, pytest.raises(StudyError) as refused:
            checked(spec, workspace)
        assert data_journal(state).records() == []
        return str(refused.value)

    def test_all_of_sysbench_s_are_named(self, given, fresh_state):
        execute(given, "CREATE TABLE sbtest1()", "CREATE TABLE sbtest3()")
        assert "(sbtest1, sbtest3) that pgtrial did not make" in self.refused(
            spec_of(dsn_of(given), **_SYSBENCH), fresh_state
        )

    def test_views_and_indexes_are_too(self, given, fresh_state):
        execute(given, "CREATE TABLE t AS SELECT 1 AS k", "CREATE INDEX k_2 ON t (k)", "CREATE VIEW sbtest1 AS TABLE t")
        assert "holds public.k_2, public.sbtest1 that" in self.refused(spec_of(dsn_of(given), **_SYSBENCH), fresh_state)

    def test_those_in_another_schema_of_the_search_path_are_too(self, given, fresh_state):
        execute(
            given,
            "CREATE SCHEMA app",
            "ALTER ROLE postgres SET search_path = public, app",
            "CREATE VIEW app.orders AS SELECT 1 AS id",
            "CREATE TABLE app.stock()",
        )
        said = self.refused(spec_of(dsn_of(given), workload="order-entry"), fresh_state)
        assert "orders" in said
        assert "stock" in said

    def test_those_that_a_script_names_are_too(self, given, fresh_state, tmp_path):
        (tmp_path / "own.lua").write_text(_SCRIPT)
        asked = {"load": {"workload": "own.lua"}, "server": {"dsn": dsn_of(given)}, "arms": {"A": {}, "B": {}}}
        execute(given, "CREATE TABLE t AS SELECT 1 AS k", "CREATE INDEX lua_k ON t (k)", "CREATE TABLE lua_t()")
        assert "holds public.lua_k, public.lua_t that" in self.refused(
            build_study(asked, "test", tmp_path), fresh_state
        )

    def test_functions_that_a_script_or_a_pack_would_replace_are_too(self, given, fresh_state, tmp_path):
        function = "CREATE OR REPLACE FUNCTION noise(i int) RETURNS int LANGUAGE sql AS 'SELECT 7'"
        (tmp_path / "own.lua").write_text(f'function prepare() con:query("{function} ") end\nfunction event() end\n')
        pack = write_pack(tmp_path / "shop", schema_sql=f"{FILES['schema.sql']}{function};\n")
        execute(given, "CREATE FUNCTION noise(t text) RETURNS int LANGUAGE sql AS 'SELECT 1'")
        for workload in ("own.lua", str(pack)):
            asked = {"load": {"workload": workload}, "server": {"dsn": dsn_of(given)}, "arms": {"A": {}, "B": {}}}
            spec = build_study(asked, "test", tmp_path)
            assert "holds public.noise(text) that pgtrial did not make" in self.refused(spec, fresh_state)
