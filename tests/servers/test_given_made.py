"""Tests of pgtrial's objects on given servers and their removal: labs killed on the way, databases and roles gone."""

from __future__ import annotations

import os
import signal
import traceback
from dataclasses import replace

import pytest

from pgtrial.cli.here import cleanup_command
from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.made_objects import drop_marked, present
from pgtrial.loads.target import value
from pgtrial.machines.journal import Journal
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import load_points
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.given_data import data_journal
from pgtrial.servers.leftovers import clean, forget_record
from pgtrial.servers.server_locks import ServerLocks
from pgtrial.servers.workspace import Workspace
from pgtrial.store.study_file import build_study
from tests.conftest import require_engine
from tests.packs import OBJECTS, write_pack_of_objects
from tests.servers.given import dsn_of, execute, silent, spec_of

pytestmark = pytest.mark.server

PATIENCE_S = 120.0


@pytest.fixture
def pack(tmp_path):
    """Returns the data of a pack that makes objects of many kinds."""
    write_pack_of_objects(tmp_path / "objects")
    asked = {"load": {"workload": "./objects", "scale": 1}, "arms": {"a": {}, "b": {}}}
    spec = build_study(asked, "test", tmp_path)
    return data_of(spec, load_points(spec)[0])


@pytest.fixture
def others(given):
    """Makes objects in the database that do not belong to pgtrial: a function, an extension, a schema and a table."""
    execute(
        given,
        "CREATE EXTENSION citext",
        "CREATE FUNCTION theirs(i int) RETURNS int LANGUAGE sql AS 'SELECT i'",
        "CREATE SCHEMA their",
        "CREATE TABLE their.orders AS SELECT 1 AS id",
        "COMMENT ON TABLE their.orders IS 'made by hand'",
    )


def _killed(act):
    """Do something in a process that kills itself by -9 on the way; False if it came to its end."""
    child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), "the words of the process are above"
    return status != 0


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("others")
class TestObjectsOfPacks:
    def test_all_that_a_pack_makes_goes_and_nothing_else(self, given, pack):
        with given.target.connect_as_user() as session:
            before = present(session)
            pack.make(given.target, silent)
            assert pack.find(session)
            names = pack.table_names(session)
            unqualified = {name.removeprefix("public.") for name in names}
            assert {"counters", "lines", "parts", "parts_1", "late", "done", "taken"} <= unqualified
            assert len(present(session)) > len(before) + 20
            assert drop_marked(session, pack.marks, everywhere=True) == []
            assert present(session) == before

    def test_it_is_made_again_in_the_place_of_the_first(self, given, pack):
        with given.target.connect_as_user() as session:
            pack.make(given.target, silent)
            larger = replace(pack, scale=2)
            assert not larger.find(session)
            larger.clear(session)
            larger.make(given.target, silent)
            assert larger.find(session)

    def test_killed_at_any_statement_nothing_is_left_without_a_mark(self, given, pack):
        statements = OBJECTS.count(";") - OBJECTS.count("; END") - 1
        with given.target.connect_as_user() as session:
            before = present(session)
            for step in range(1, statements, 3):
                lines = iter([silent] * step)
                assert _killed(lambda: pack.make(given.target, lambda line: next(lines, _die)(line)))  # noqa: B023, PLW0108
                drop_marked(session, pack.marks, everywhere=True)
                assert present(session) == before, f"killed at statement {step}"

    def test_an_extension_that_others_need_meanwhile_stays(self, given, pack):
        pack.make(given.target, silent)
        execute(given, "CREATE INDEX mine ON their.orders USING gin ((id::text) gin_trgm_ops)")
        with given.target.connect_as_user() as session:
            assert drop_marked(session, pack.marks, everywhere=True) == ["pg_trgm"]
            assert value(session, "SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'") == 1
            assert value(session, "SELECT to_regclass('counters')") is None
            assert drop_marked(session, pack.marks, everywhere=True) == []

    def test_what_others_built_on_a_function_keeps_all_of_it(self, given, pack):
        pack.make(given.target, silent)
        execute(given, "ALTER TABLE their.orders ALTER id SET DEFAULT next_of(1)")
        with given.target.connect_as_user() as session:
            with pytest.raises(StudyError, match=r"default value for column id of table their\.orders depends on func"):
                drop_marked(session, pack.marks, everywhere=True)
            assert pack.find(session)


@pytest.mark.parametrize(
    ("load", "line"),
    [
        ({}, "creating tables"),
        ({}, "generating data"),
        ({"workload": "oltp_read_only", "sysbench": {"tables": 3, "table_size": 100}}, "table 1 of 3"),
    ],
)
def test_tables_of_a_lab_that_was_killed_while_it_made_them_go(given, fresh_state, load, line):
    require_engine()
    execute(given, "CREATE TABLE sbtest9 AS SELECT 1 AS mine", "CREATE TABLE pgbench_mine AS SELECT 1 AS mine")
    spec = spec_of(dsn_of(given), **load)

    def make(report):
        workspace = Workspace(fresh_state)
        arm = make_arms(Design(spec), workspace)["A"]
        arm.check(Needs.of(Design(spec)))
        arm.prepare(Needs.of(Design(spec)).data[0], report)

    if load:
        execute(given, "DROP TABLE sbtest9")  # the name of a table of sysbench's keeps its tests away
    assert _killed(lambda: make(lambda said: _die() if line in said else None)), "no such line"
    clean(fresh_state)
    with given.target.connect_as_user() as session:
        wait_for_clients_to_leave(session, 0, PATIENCE_S)  # the engine ends with its lab, a statement later
    removed, failed = data_journal(fresh_state).undo()
    assert failed == []
    assert len(removed) == 1
    with given.target.connect_as_user() as session:
        query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
        left = [name for (name,) in session.execute(query).fetchall()]
        assert left == (["pgbench_mine"] if load else ["pgbench_mine", "sbtest9"])
    assert data_journal(fresh_state).records() == []


class TestWhatIsGone:
    @pytest.fixture
    def state(self, given, fresh_state, monkeypatch):
        """Returns a state directory that records tables which pgtrial made as the role bob in the database `theirs`."""
        require_engine()
        monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
        execute(given, "CREATE ROLE bob LOGIN", "CREATE DATABASE theirs OWNER bob")
        spec = spec_of(dsn_of(given, "theirs", "bob"))
        with Workspace(fresh_state) as workspace:
            make_arms(Design(spec), workspace)["A"].prepare(Needs.of(Design(spec)).data[0], silent)
        return fresh_state

    def test_a_database_that_is_gone_has_nothing_left(self, given, state, capsys):
        execute(given, "DROP DATABASE theirs")
        assert cleanup_command() == 0
        assert "Removed pgbench_accounts" in capsys.readouterr().out
        assert cleanup_command() == 0
        assert data_journal(state).records() == []

    def test_a_server_that_is_gone_is_told_and_can_be_forgotten(self, given, state, capsys):
        given.stop()
        assert cleanup_command() == 3
        told = capsys.readouterr().out
        [record] = data_journal(state).files()
        assert f"if that server is gone for good, run pgtrial cleanup --forget {record}." in told
        assert len(told.strip().splitlines()) == 1
        assert cleanup_command(forget=[record]) == 0
        assert f"Forgot {record}; the changes that it names stay as they are." in capsys.readouterr().out
        assert cleanup_command() == 0

    def test_nothing_else_is_forgotten(self, state):
        other = state / "noise.json"
        other.write_text("{}")
        with pytest.raises(
            StudyError, match=r"noise\.json: this is no record of a change that an ended pgtrial has left"
        ):
            forget_record(state, other)
        assert other.exists()

    def test_a_role_that_is_gone_is_replaced_by_pguser(self, given, state, monkeypatch):
        execute(given, "ALTER ROLE bob NOLOGIN")
        _, [told] = data_journal(state).undo()
        assert 'role "bob" is not permitted to log in' in told
        assert "(and PGUSER, if the role no longer exists)" in told
        monkeypatch.setenv("PGUSER", "postgres")
        assert data_journal(state).undo()[1] == []
        with replace(given.target, dbname="theirs").connect_as_user() as session:
            assert value(session, "SELECT to_regclass('pgbench_accounts')") is None

    def test_tables_in_another_schema_go_and_a_schema_that_is_gone_matters_not(self, given, state):
        theirs = replace(given.target, dbname="theirs", user="bob")
        with theirs.connect_as_user() as session:
            session.execute("CREATE SCHEMA aside")
            session.execute("ALTER TABLE pgbench_accounts SET SCHEMA aside")
            session.execute("DROP TABLE pgbench_tellers")
        assert data_journal(state).undo()[1] == []
        with theirs.connect_as_user() as session:
            assert value(session, "SELECT count(*) FROM pg_class WHERE relname ~ '^pgbench_'") == 0

    def test_a_lab_that_starts_meanwhile_cannot_lose_its_record(self, given, state, monkeypatch):
        """The server stays locked until the record is removed, so that no lab can add its tables to it in between."""
        target = replace(given.target, dbname="theirs", user="bob")
        remove, refused = Journal.remove, []

        def with_a_lab(journal, path):
            with ServerLocks("study", leaving_s=0) as locks, pytest.raises(StudyError, match="pgtrial study cleanup"):
                locks.take_one(target)
            refused.append(path)
            remove(journal, path)

        monkeypatch.setattr(Journal, "remove", with_a_lab)
        assert data_journal(state).undo()[1] == []
        assert len(refused) == 1

    def test_what_a_lab_has_made_before_cleanup_got_the_lock_goes_too(self, given, state, monkeypatch):
        [record] = data_journal(state).records()
        take_one = ServerLocks.take_one

        def after_a_lab(locks, target):
            with target.connect_as_user() as session:
                session.execute("CREATE TABLE made (n int)")
                session.execute("COMMENT ON TABLE made IS 'another mark'")
            data_journal(state).write(replace(record, made={**record.made, "made": ("another mark",)}))
            return take_one(locks, target)

        monkeypatch.setattr(ServerLocks, "take_one", after_a_lab)
        [told], failed = data_journal(state).undo()
        assert failed == []
        assert "; made in the database theirs" in told
        with replace(given.target, dbname="theirs").connect_as_user() as session:
            assert value(session, "SELECT to_regclass('made')") is None
