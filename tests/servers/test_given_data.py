"""Data on given servers: loaded once, resumed where a load broke off, and never in place of somebody else's."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from pgtrial.conduct.settle import NO_PREWARM, warm_relations
from pgtrial.evidence.observe.views import wait_for_clients_to_leave
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.task_table import creation_s
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from tests.conftest import require_engine
from tests.servers.given import arm_of, checked, dsn_of, silent, spec_of

PATIENCE_S = 120.0


def test_tables_are_loaded_once_served_and_reset(given, workspace, tmp_path):
    require_engine()
    with given.target.connect() as connection:
        # a limit for those who use the server, not for loading, vacuum, or a session that waits through a load
        connection.execute("ALTER ROLE postgres SET statement_timeout = '1ms'")
    arm = checked(spec_of(dsn_of(given)), workspace)
    arm.prepare(PgbenchTables(1), silent)
    lines: list[str] = []
    arm.prepare(PgbenchTables(1), lines.append)
    assert lines == []
    for _ in range(2):
        with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            assert connection.execute("SHOW idle_session_timeout").fetchone() == ("0",)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
    arm.prepare(PgbenchTables(2), silent)
    with given.target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_branches").fetchone() == (2,)


def test_tables_of_somebody_else_are_used_but_never_replaced(given, workspace, tmp_path):
    require_engine()
    arm = checked(spec_of(dsn_of(given)), workspace)
    arm.prepare(PgbenchTables(1), silent)
    with given.target.connect() as connection:
        connection.execute("COMMENT ON TABLE pgbench_accounts IS NULL")
        connection.execute("UPDATE pgbench_accounts SET filler = 'precious' WHERE aid = 1")
    checked(spec_of(dsn_of(given)), workspace).prepare(PgbenchTables(1), silent)
    arms = {name: {"dsn": dsn_of(given), "storage_limit": "60MB"} for name in "AB"}
    with pytest.raises(StudyError, match=r"scale 1 is there, and the WAL of its load does not fit: .* = 60 MB"):
        checked(StudySpec.model_validate({"load": {"scale": 1, "clients": 2}, "arms": arms}), workspace)
    spec = spec_of(dsn_of(given), scale=2)
    arm = arm_of(spec, workspace)
    with pytest.raises(StudyError, match=r"already holds pgbench tables of scale 1.*ask for scale = 1"):
        arm.check(Needs.of(spec))
    with pytest.raises(StudyError, match="will not replace"):
        arm.prepare(PgbenchTables(2), silent)
    with given.target.connect() as connection:
        row = connection.execute("SELECT filler FROM pgbench_accounts WHERE aid = 1").fetchone()
        assert row is not None
        assert row[0].strip() == "precious"


def test_what_a_sysbench_test_prepares_is_made_once_and_replaced_by_what_another_needs(given, workspace, tmp_path):
    require_engine()

    def arm_and_data(size):
        load = {"workload": "oltp_write_only", "sysbench": {"tables": 2, "table_size": size}}
        spec = spec_of(dsn_of(given), **load)
        arm = checked(spec, workspace)
        return arm, Needs.of(spec).data[0]

    arm, data = arm_and_data(100)
    arm.prepare(data, silent)
    lines: list[str] = []
    arm.prepare(data, lines.append)
    assert lines == []
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        connection.execute("DELETE FROM sbtest1 WHERE id = 1")
    arm, data = arm_and_data(50)
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM sbtest1").fetchone() == (50,)
        connection.execute("COMMENT ON TABLE sbtest2 IS 'mine'")
        connection.execute("COMMENT ON TABLE sbtest1 IS 'mine'")
    with pytest.raises(StudyError, match=r"arms\.A: .* already holds tables of sysbench \(sbtest1 and 1 more\)"):
        arm_and_data(50)


def test_table_a_is_made_once_read_into_the_buffers_and_replaced_by_one_of_another_size(given, workspace, tmp_path):
    require_engine()

    def arm_and_data(rows):
        tasks = {"pool": 2, "threads_in_table": 2, "rows": rows}
        server = {"dsn": dsn_of(given)}
        load = {"workload": "app-tasks", "tasks": tasks}
        spec = StudySpec.model_validate({"load": load, "server": server, "arms": {"A": {}, "B": {}}})
        arm = checked(spec, workspace)
        return arm, Needs.of(spec).data[0]

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
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        assert creation_s(connection) is not None
        assert warm_relations(connection, arm.setup, data) == NO_PREWARM
        connection.execute("SELECT pg_stat_force_next_flush()")
        scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE relname = 'table_a'"
        assert connection.execute(scans).fetchone() == (1,), "by its index, for want of pg_prewarm"
    arm, data = arm_and_data(50)
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM table_a").fetchone() == (100,)
        connection.execute("COMMENT ON TABLE table_a IS 'mine'")
    with pytest.raises(StudyError, match=r"arms\.A: .* already holds a table_a that pgtrial did not make"):
        arm_and_data(50)


def _wait_for_the_killed_engine(given):
    """A statement of its that the server has not even read yet would be carried out beside the next load."""
    with given.target.connect() as connection:
        wait_for_clients_to_leave(connection, 0, PATIENCE_S)


@contextmanager
def _key_that_is_still_made(given):
    """As by a session whose engine was killed; it is there once somebody has waited for it."""
    with given.target.connect() as late, given.target.connect() as watching:

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
    with given.target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (100_000,)
        keys = connection.execute(
            "SELECT count(*) FROM pg_index WHERE indisprimary AND indrelid::regclass::text ~ '^pgb'"
        )
        assert keys.fetchone() == (3,)
