"""Data on given servers: loaded once, resumed where a load broke off, and never in place of somebody else's."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager

import pytest

from pgtrial.conduct.trial.settle import NO_PREWARM, warm_relations
from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.pgbench_names import TABLES
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.task_table import creation_s
from pgtrial.loads.process import finished, starting
from pgtrial.machines.journal import NotUndone
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from pgtrial.servers.given_data import data_journal, made_for
from pgtrial.servers.server_locks import ServerLocks
from tests.conftest import require_engine
from tests.processes import until
from tests.servers.given import arm_of, checked, dsn_of, execute, remove, silent, spec_of

pytestmark = pytest.mark.server


PATIENCE_S = 120.0


def _loaded(given, workspace):
    """Makes pgbench's tables of scale 1 on the server, and returns the arm that has made them."""
    require_engine()
    arm = checked(spec_of(dsn_of(given)), workspace)
    arm.prepare(PgbenchTables(1), silent)
    return arm


def test_tables_are_loaded_once_served_and_reset(given, workspace, tmp_path):
    require_engine()
    with given.target.connect_as_user() as connection:
        # a limit for those who use the server, not for loading, vacuum, or a session that waits through a load
        connection.execute("ALTER ROLE postgres SET statement_timeout = '1ms'")
    arm = checked(spec_of(dsn_of(given)), workspace)
    arm.prepare(PgbenchTables(1), silent)
    lines: list[str] = []
    arm.prepare(PgbenchTables(1), lines.append)
    assert lines == []
    for _ in range(2):
        with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            assert connection.execute("SHOW idle_session_timeout").fetchone() == ("0",)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
    arm.prepare(PgbenchTables(2), silent)
    with given.target.connect_as_user() as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_branches").fetchone() == (2,)


def test_tables_of_somebody_else_are_used_but_never_replaced(given, workspace, tmp_path):
    _loaded(given, workspace)
    with given.target.connect_as_user() as connection:
        connection.execute("COMMENT ON TABLE pgbench_accounts IS NULL")
        connection.execute("UPDATE pgbench_accounts SET filler = 'precious' WHERE aid = 1")
    checked(spec_of(dsn_of(given)), workspace).prepare(PgbenchTables(1), silent)
    arms = {name: {"dsn": dsn_of(given), "storage_limit": "60MB"} for name in "AB"}
    with pytest.raises(
        StudyError, match=r"scale 1 is loaded, but the WAL of the load does not fit on the server: .* = 60 MB"
    ):
        checked(StudySpec.model_validate({"load": {"scale": 1, "clients": 2}, "arms": arms}), workspace)
    spec = spec_of(dsn_of(given), scale=2)
    arm = arm_of(spec, workspace)
    with pytest.raises(StudyError, match=r"already holds pgbench tables of scale 1.*set scale to 1 only"):
        arm.check(Needs.of(Design(spec)))
    with pytest.raises(StudyError, match="will not replace"):
        arm.prepare(PgbenchTables(2), silent)
    with given.target.connect_as_user() as connection:
        row = connection.execute("SELECT filler FROM pgbench_accounts WHERE aid = 1").fetchone()
        assert row is not None
        assert row[0].strip() == "precious"


def _pgbench(server, *options):
    with starting() as engine:
        done = finished([engine, "pgbench", *options], server.environment())
    assert done.returncode == 0, done.stderr


def test_tables_and_history_of_somebody_elses_pgbench_stay_as_they_are(given, workspace, tmp_path):
    require_engine()
    _pgbench(given.target, "-i", "-q", "-s", "1")
    _pgbench(given.target, "-c", "1", "-t", "100")
    query = (
        "SELECT relname, oid, relfilenode, (SELECT count(*) FROM pgbench_history), pg_stat_get_vacuum_count(oid), "
        "pg_stat_get_analyze_count(oid) FROM pg_class WHERE relname ~ '^pgbench_' ORDER BY relname"
    )
    with given.target.connect_as_user() as connection:
        before = connection.execute(query).fetchall()
    arm = checked(spec_of(dsn_of(given), workload="select-only"), workspace)
    said = (
        "pgtrial has not made pgbench's tables of scale 1: the load runs on these tables as they are, and pgtrial "
        "never empties"
    )
    assert said in arm.notes[0]
    arm.prepare(PgbenchTables(1), silent)
    with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert said in arm.notes[0]
        assert connection.execute(query).fetchall() == before
    assert before[0][3] == 100


def test_a_history_of_somebody_else_beside_tables_of_pgtrials_is_never_emptied(given, workspace, tmp_path):
    _loaded(given, workspace)
    with given.target.connect_as_user() as connection:
        connection.execute("DROP TABLE pgbench_history")
        connection.execute("CREATE TABLE pgbench_history AS SELECT 1 AS tid, 'precious' AS filler")
    arm = checked(spec_of(dsn_of(given)), workspace)
    with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SELECT filler FROM pgbench_history").fetchone() == ("precious",)
    with pytest.raises(StudyError, match="will not replace"):
        arm_of(spec_of(dsn_of(given), scale=2), workspace).prepare(PgbenchTables(2), silent)


def test_a_table_of_somebody_else_that_inherits_from_the_history_keeps_its_rows(given, workspace, tmp_path):
    arm = _loaded(given, workspace)
    execute(
        given,
        "CREATE TABLE archive () INHERITS (pgbench_history)",
        "INSERT INTO archive (tid) VALUES (777)",
        "INSERT INTO pgbench_history (tid) VALUES (1)",
    )
    with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SELECT tid FROM pgbench_history").fetchall() == [(777,)]


def test_reset_vacuums_no_other_table_of_a_similar_name(given, workspace, tmp_path):
    arm = _loaded(given, workspace)
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE TABLE pgbench_results (x int)")
    with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        query = "SELECT relname FROM pg_stat_user_tables WHERE vacuum_count + analyze_count > 0 ORDER BY relname"
        assert [name for (name,) in connection.execute(query).fetchall()] == sorted(TABLES)


def test_a_script_that_names_no_table_of_pgbench_has_nothing_made(given, workspace, tmp_path):
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    spec = StudySpec.model_validate(
        {"load": {"workload": "./orders.sql"}, "server": {"dsn": dsn_of(given)}, "arms": {"A": {}, "B": {}}}
    ).with_scripts({"orders.sql": "SELECT 1 FROM orders; -- not pgbench_accounts"})
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE TABLE orders (id int)")
        arm = checked(spec, workspace)
        for data in Needs.of(Design(spec)).data:
            arm.prepare(data, silent)
            with arm.serve(data, tmp_path / "log", {}):
                assert connection.execute(query).fetchall() == [("orders",)]


def test_objects_of_others_that_depend_on_our_tables_are_not_dropped(given, workspace):
    require_engine()

    def arm_and_data(size):
        spec = spec_of(dsn_of(given), workload="oltp_read_only", sysbench={"tables": 1, "table_size": size})
        return checked(spec, workspace), Needs.of(Design(spec)).data[0]

    arm, data = arm_and_data(10)
    arm.prepare(data, silent)
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE VIEW mine AS SELECT id FROM sbtest1")
        arm, data = arm_and_data(20)
        depends = r"objects that pgtrial did not make .*view public\.mine depends on table public\.sbtest1"
        with pytest.raises(StudyError, match=depends):
            arm.prepare(data, silent)
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (10,)


def test_what_a_sysbench_test_prepares_is_made_once_and_replaced_by_what_another_needs(given, workspace, tmp_path):
    require_engine()

    def arm_and_data(size):
        load = {"workload": "oltp_write_only", "sysbench": {"tables": 2, "table_size": size}}
        spec = spec_of(dsn_of(given), **load)
        arm = checked(spec, workspace)
        return arm, Needs.of(Design(spec)).data[0]

    arm, data = arm_and_data(100)
    arm.prepare(data, silent)
    lines: list[str] = []
    arm.prepare(data, lines.append)
    assert lines == []
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        connection.execute("DELETE FROM sbtest1 WHERE id = 1")
    arm, data = arm_and_data(50)
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SELECT count(*) FROM sbtest1").fetchone() == (50,)
        connection.execute("COMMENT ON TABLE sbtest2 IS 'mine'")
        connection.execute("COMMENT ON TABLE sbtest1 IS 'mine'")
    with pytest.raises(StudyError, match=r"arms\.A: .* already holds tables of sysbench \(sbtest1, sbtest2\)"):
        arm_and_data(50)


def test_table_a_is_made_once_read_into_the_buffers_and_replaced_by_one_of_another_size(given, workspace, tmp_path):
    require_engine()

    def arm_and_data(rows):
        tasks = {"pool": 2, "threads_in_table": 2, "rows": rows}
        server = {"dsn": dsn_of(given)}
        load = {"workload": "app-tasks", "tasks": tasks}
        spec = StudySpec.model_validate({"load": load, "server": server, "arms": {"A": {}, "B": {}}})
        arm = checked(spec, workspace)
        return arm, Needs.of(Design(spec)).data[0]

    def break_off(line):
        if "rows of table_a made" in line:
            raise KeyboardInterrupt

    arm, data = arm_and_data(50_000)
    with pytest.raises(KeyboardInterrupt):
        arm.prepare(data, break_off)
    _wait_for_the_killed_engine(given)
    arm, data = arm_and_data(100)
    arm.prepare(data, silent)
    lines: list[str] = []
    arm.prepare(data, lines.append)
    assert lines == []
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert creation_s(connection) is not None
        assert warm_relations(target, arm.setup, data) == NO_PREWARM
        scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE relname = 'table_a'"
        # the session that has read the table tells the statistics only while it ends
        until(lambda: connection.execute(scans).fetchone() == (1,), "table_a is read by its index, without pg_prewarm")
    arm, data = arm_and_data(50)
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SELECT count(*) FROM table_a").fetchone() == (100,)
        connection.execute("COMMENT ON TABLE table_a IS 'mine'")
    with pytest.raises(StudyError, match=r"arms\.A: .* already holds a table_a that pgtrial did not make"):
        arm_and_data(50)


def _wait_for_the_killed_engine(given):
    """A statement of its that the server has not even read yet would be carried out beside the next load."""
    with given.target.connect_as_user() as connection:
        wait_for_clients_to_leave(connection, 0, PATIENCE_S)


@contextmanager
def _key_that_is_still_made(given):
    """Lets a session add the primary key in an open transaction, as if its engine was killed. It commits once another
    session waits for the table.
    """
    with given.target.connect_as_user() as late, given.target.connect_as_user() as watching:

        def end():
            query = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'pgbench_tellers'::regclass"
            while watching.execute(query).fetchone() is None and not over.is_set():
                pass
            late.execute("COMMIT")

        over = threading.Event()
        late.execute("BEGIN")
        late.execute("LOCK TABLE pgbench_tellers")
        late.execute("ALTER TABLE pgbench_tellers DROP CONSTRAINT IF EXISTS pgbench_tellers_pkey")
        late.execute("ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)")
        thread = threading.Thread(target=end)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def test_a_load_that_broke_off_goes_on_with_the_phase_it_was_in(given, workspace):
    require_engine()
    arm = checked(spec_of(dsn_of(given)), workspace)

    def break_off(line):
        if line.startswith("creating primary keys"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        arm.prepare(PgbenchTables(1), break_off)
    _wait_for_the_killed_engine(given)
    lines: list[str] = []
    arm = checked(spec_of(dsn_of(given)), workspace)
    with _key_that_is_still_made(given):
        arm.prepare(PgbenchTables(1), lines.append)
    assert "going on with loading scale 1" in lines[0]
    assert not any(line.startswith(("creating tables", "generating data")) for line in lines)
    with given.target.connect_as_user() as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (100_000,)
        keys = connection.execute(
            "SELECT count(*) FROM pg_index WHERE indisprimary AND indrelid::regclass::text ~ '^pgb'"
        )
        assert keys.fetchone() == (3,)


def test_what_is_made_is_said_before_named_after_and_removed_by_cleanup_alone(given, workspace, tmp_path):
    require_engine()
    arm = checked(spec_of(dsn_of(given)), workspace)
    assert arm.notes == [
        f"{given.target.user}@{given.socket_directory}:{given.port}/postgres: pgtrial will make pgbench_accounts, "
        "pgbench_branches, pgbench_history, pgbench_tellers (scale 1, about 15 MB) in the database postgres"
    ]
    assert list(made_for(workspace.state, {"A": arm})) == []
    arm.prepare(PgbenchTables(1), silent)
    [said] = made_for(workspace.state, {"A": arm})
    assert re.match(
        r"pgtrial has made pgbench_accounts, .* in the database postgres .*pgtrial cleanup removes it", said
    )
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE TABLE pgbench_mine AS SELECT 1 AS precious")
    record = next(each for each in data_journal(workspace.state).records() if each.target.host == given.target.host)
    with ServerLocks("other") as locks:
        locks.take_one(given.target)
        with pytest.raises(
            NotUndone,
            match=r"^Not removed: .*: another pgtrial runs a study on the server of .* pgtrial study other since",
        ):
            remove(workspace, record)
    remove(workspace, record)
    with given.target.connect_as_user() as connection:
        query = "SELECT relname FROM pg_class WHERE relname ~ '^pgbench_' AND relkind = 'r'"
        assert connection.execute(query).fetchall() == [("pgbench_mine",)]
    assert list(made_for(workspace.state, {"A": arm})) == []


def test_cleanup_drops_no_table_that_has_lost_its_mark(given, workspace):
    require_engine()
    spec = spec_of(dsn_of(given), workload="oltp_read_only", sysbench={"tables": 2, "table_size": 10})
    arm = checked(spec, workspace)
    arm.prepare(Needs.of(Design(spec)).data[0], silent)
    with given.target.connect_as_user() as connection:
        connection.execute("COMMENT ON TABLE sbtest2 IS 'mine'")
        remove(
            workspace,
            next(each for each in data_journal(workspace.state).records() if each.target.host == given.target.host),
        )
        query = "SELECT relname FROM pg_class WHERE relname ~ '^sbtest.$'"
        assert connection.execute(query).fetchall() == [("sbtest2",)]
