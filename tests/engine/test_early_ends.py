"""Runs that end early leave nothing behind: no statement goes on in the server, no connection is waited for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from threading import Event

import pytest

from pgtrial.loads.target import Target
from tests.conftest import require
from tests.engine.events import of_kind, wait_for
from tests.engine.fake_server import FakeServer, complete
from tests.engine.guarded import ADDRESS, PASSWORD, serving, variables, write_private
from tests.engine.programs import TIMEOUT_S, ended
from tests.engine.recorder import Recorder
from tests.engine.sleeping_statements import running, wait_until_running
from tests.engine.sysbench.sides import ours as sysbench
from tests.processes import until

pytestmark = pytest.mark.server


_SELECT = "SELECT pg_sleep(1000);\n"
_BLOCK = "DO $$ BEGIN PERFORM pg_sleep(1000.0); EXCEPTION WHEN OTHERS THEN PERFORM pg_sleep(1000); END $$;\n"
_PIPELINE = "\\startpipeline\nSELECT 1;\nSELECT pg_sleep(1000);\nSELECT 2;\n\\endpipeline\n"
_COMMIT = "INSERT INTO late VALUES (1);\n"

_LUA = """
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT pg_sleep(1000)") end
"""


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "load",
    [
        ("simple", _SELECT),
        ("extended", _SELECT),
        ("prepared", _SELECT),
        ("prepared", _PIPELINE),
        ("simple", _BLOCK),
        ("simple", "BEGIN;\n" + _SELECT + "END;\n"),
    ],
)
def test_an_interrupt_leaves_no_statement_running(peers, fresh, tmp_path, which, load):
    mode, script = load
    target, file = fresh(empty=True), tmp_path / "script.sql"
    file.write_text(script)
    args = ["-n", "-f", str(file), "-T", "900", "-c", "3", "-j", "2", "-M", mode]
    with peers[1].start(target, args) as process:
        wait_until_running(target, 3)
        process.send_signal(which)
        done = ended(process)
        assert running(target) == 0
    assert done.status == 130
    assert "may still be running" not in done.stderr


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_was_ignored_at_the_start_ends_no_run(peers, fresh, tmp_path, which):
    """Both programs run to their end, as a program in the background of a script does when Ctrl-C ends that."""
    target, file = fresh(empty=True), tmp_path / "script.sql"
    file.write_text("SELECT pg_advisory_xact_lock_shared(7);\n")
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%xact_lock_shared(7)%'"
    )
    for peer in peers:
        with target.connect_as_user() as gate:
            gate.execute("SELECT pg_advisory_lock(7)")
            handler = signal.signal(which, signal.SIG_IGN)
            try:
                process = peer.start(target, ["-n", "-f", str(file), "-t", "3"])
            finally:
                signal.signal(which, handler)
            with process:
                until(lambda: gate.execute(waiting).fetchone() == (1,), "the client waits", 60)
                process.send_signal(which)
                gate.execute("SELECT pg_advisory_unlock(7)")
                done = ended(process)
        assert (done.status, "actually processed: 3/3" in done.stdout) == (0, True), done.stderr


def test_a_commit_that_runs_is_cancelled_too(peers, fresh, tmp_path):
    target, file = fresh(empty=True), tmp_path / "script.sql"
    file.write_text(_COMMIT)
    with target.connect_as_user() as connection:
        connection.execute(
            "CREATE TABLE late (i int); CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN PERFORM pg_sleep(1000); RETURN NEW; END $$;"
            " CREATE CONSTRAINT TRIGGER sleep AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION sleep()"
        )
        active = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'INSERT INTO late%'"
            " AND pid <> pg_backend_pid()"
        )
        with peers[1].start(target, ["-n", "-f", str(file), "-T", "900"]) as process:
            while connection.execute(active).fetchone() == (0,):
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert ended(process).status == 130
            assert connection.execute(active).fetchone() == (0,)


def test_a_vacuum_that_waits_is_cancelled(peers, fresh):
    target = fresh()
    with target.connect_as_user() as administrator, target.connect_as_user(autocommit=False) as locking:
        locking.execute("LOCK pgbench_branches IN SHARE MODE")
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'vacuum%' AND wait_event_type = 'Lock'"
        with peers[1].start(target, ["-S", "-T", "900"]) as process:
            while administrator.execute(waiting).fetchone() == (0,):
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert ended(process).status == 130


def test_exit_on_abort_leaves_no_statement_running(peers, fresh, tmp_path):
    target, file, failing = fresh(empty=True), tmp_path / "script.sql", tmp_path / "failing.sql"
    file.write_text(_SELECT)
    with target.connect_as_user() as connection:
        connection.execute("CREATE SEQUENCE turns")
    # the last client fails when the two others sleep
    failing.write_text("SELECT CASE WHEN nextval('turns') < 3 THEN pg_sleep(1000) ELSE pg_sleep(1) END;\nSELECT 1/0;\n")
    done = peers[1].run(target, "-n", "-f", str(failing), "-T", "900", "-c", "3", "-j", "2", "--exit-on-abort")
    assert running(target) == 0
    assert done.status == 2
    assert "division by zero" in done.stderr


def test_a_forced_shutdown_and_an_interrupt_of_sysbench_leave_no_statement_running(fresh, tmp_path):
    target, file = fresh(empty=True), tmp_path / "sleeps.lua"
    file.write_text(_LUA)
    done = sysbench().run(
        target, str(file), "--time=1", "--forced-shutdown=0", "--threads=3", "run", directory=tmp_path
    )
    assert running(target) == 0
    assert done.status == 2
    assert "forcing shutdown" in done.stdout
    with sysbench().start(target, [str(file), "--time=900", "--threads=3", "run"], directory=tmp_path) as process:
        wait_until_running(target, 3)
        process.send_signal(signal.SIGINT)
        assert ended(process).status == 130
        assert running(target) == 0


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_native", [True, False])
def test_making_tables_that_waits_is_cancelled(fresh, tmp_path, which, is_native):
    target, script = fresh(empty=True), tmp_path / "script.lua"
    script.write_text(
        "function prepare() sysbench.sql.driver():connect():query('CREATE TABLE sbtest1 (i int)') end\n"
        "function event() end\n"
    )
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE TABLE sbtest1%' AND wait_event_type = 'Lock'"
    )
    with target.connect_as_user() as administrator, target.connect_as_user(autocommit=False) as locking:
        locking.execute("CREATE TABLE sbtest1 (i int)")
        test = "oltp_read_only" if is_native else str(script)
        line = [test, "--tables=1", "--table-size=10", "prepare"]
        with sysbench().start(target, line, directory=tmp_path) as process:
            deadline = time.monotonic() + 60
            while administrator.execute(waiting).fetchone() == (0,):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(which)
            done = ended(process)
            assert administrator.execute(waiting).fetchone() == (0,)
        locking.rollback()
    assert done.status == (1 if is_native else 130)


HBA = f"hostssl all sealed {ADDRESS}/32 scram-sha-256\n"


@pytest.fixture
def sealed(workspace, tmp_path):
    """Yields a server that takes only encrypted connections over TCP."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.crt -days 2 -subj /CN=localhost"
    made = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, check=False)
    require(made.returncode == 0, "the openssl command")

    def install(cluster):
        for name in ("server.crt", "server.key"):
            cluster.run_directory.own(write_private(cluster.data_directory / name, (tmp_path / name).read_text()))

    with serving(workspace, 15, HBA, {"ssl": "on", "log_connections": "on"}, install) as cluster:
        with cluster.target.connect_as_user() as connection:
            connection.execute(f"CREATE ROLE sealed LOGIN PASSWORD '{PASSWORD}'")
        yield cluster


def test_a_cancel_request_is_encrypted_where_the_session_is(peers, sealed, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text(_SELECT)
    env = variables(sealed, "sealed", PGPASSWORD=PASSWORD, PGSSLMODE="prefer")
    with Recorder(sealed.port) as recorder:
        env["PGPORT"] = str(recorder.port)
        with subprocess.Popen(
            [*peers[1].command, "-n", "-f", str(file), "-T", "900", "-c", "2"],
            env={"PATH": os.environ["PATH"], **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait_until_running(sealed.target, 2)
            process.send_signal(signal.SIGINT)
            assert ended(process).status == 130
            assert running(sealed.target) == 0
    # the first connection is that of the set-up; each begins with a request for TLS, and none sends a cancel request
    # in the clear
    assert len(recorder.sent) >= 5
    assert {bytes(begin[:8]) for begin in recorder.sent} == {bytes.fromhex("0000000804d2162f")}
    assert not any(bytes.fromhex("04d2162e") in begin for begin in recorder.sent)


@contextmanager
def full_queue(directory):
    """Yields a Unix socket that accepts no further client, since its queue of waiting clients is full."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / ".s.PGSQL.5432"))
        listener.listen(0)
        waiting = []
        try:
            while True:
                client = socket.socket(socket.AF_UNIX)
                client.setblocking(False)
                waiting.append(client)
                try:
                    client.connect(listener.getsockname())
                except BlockingIOError:
                    break
            yield Target(host=str(directory), port=5432, user="u", dbname="d")
        finally:
            for client in waiting:
                client.close()


@pytest.fixture
def crowded(workspace):
    with full_queue(workspace.socket_directory()) as target:
        yield target


def test_a_full_queue_of_a_socket_obeys_the_time_limit_of_connecting(peers, crowded):
    done = peers[1].run(crowded, "-n", "-S", "-c", "3", PGCONNECT_TIMEOUT="2")
    assert done.status == 1
    assert "timeout expired" in done.stderr


def test_a_full_queue_of_a_socket_obeys_the_first_interrupt(peers, crowded, tmp_path):
    script, log = tmp_path / "connects.lua", tmp_path / "log"
    script.write_text(
        f"function thread_init() io.open('{log}', 'w'):close(); con = sysbench.sql.driver():connect() end\n"
        "function event() end\n"
    )
    with sysbench().start(crowded, [str(script), "--time=900", "run"], directory=tmp_path) as process:
        until(log.exists, "the script runs", 60)
        process.send_signal(signal.SIGINT)
        assert ended(process).status == 130


def test_connections_that_are_not_ready_at_the_end_of_the_time_are_not_waited_for(peers, start_cluster, tmp_path):
    cluster = start_cluster(18)
    peers[0].load(cluster.target)
    events = tmp_path / "events"
    args = ["-n", "-S", "-C", "-T", "4", "-c", "3", "--events", str(events)]
    with peers[1].start(cluster.target, args) as process:
        wait_for(events, lambda events: len(of_kind(events, "tick")) >= 1)
        # its kernel goes on taking connections, and nobody answers
        postmaster = int((cluster.data_directory / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)
        try:
            done = ended(process)
        finally:
            os.kill(postmaster, signal.SIGCONT)
    assert done.status == 0, done.stderr
    assert "number of failed transactions: 0 (" in done.stdout


def test_an_interrupt_ends_connecting_that_is_refused_at_once(tmp_path, workspace):
    nobody = Target(host=str(workspace.socket_directory()), port=5432, user="u", dbname="d")
    file, log = tmp_path / "loops.lua", tmp_path / "log"
    file.write_text(
        "function event()\n"
        f"  io.open('{log}', 'w'):close()\n"
        "  while not pcall(function() sysbench.sql.driver():connect() end) do end\n"
        "end\n"
    )
    with sysbench().start(nobody, [str(file), "--time=900", "run"], directory=tmp_path) as process:
        until(log.exists, "the script runs", 60)
        process.send_signal(signal.SIGINT)
        assert ended(process).status == 130


def test_a_rate_that_nobody_can_keep_ends_with_its_time(peers, loaded):
    for rate in ("1000000000", "1e12", "3e9"):
        done = peers[1].run(loaded(18), "-n", "-S", "-R", rate, "-L", "1", "-T", "2")
        assert done.status == 0, done.stderr
        assert "duration: 2 s" in done.stdout
        assert "number of transactions skipped: " in done.stdout


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_skipping_of_transactions(peers, loaded, tmp_path, which):
    events = tmp_path / "events"
    args = ["-n", "-S", "-R", "1000000000", "-L", "1", "-T", "900", "--events", str(events)]
    with peers[1].start(loaded(18), args) as process:
        wait_for(events, lambda events: len(of_kind(events, "tick")) >= 1)
        process.send_signal(which)
        assert ended(process).status == 130


def test_an_interrupt_ends_a_set_up_that_the_server_never_answers(peers):
    asked, end = Event(), Event()

    def never() -> bytes:
        asked.set()
        end.wait(TIMEOUT_S)
        return complete()

    with FakeServer(never) as server:
        open_to_all = {"host": ADDRESS, "port": server.port, "user": "somebody", "dbname": "anything"}
        with peers[1].start(Target(**open_to_all, extra={"sslmode": "disable"}), ["-n", "-S", "-t", "1"]) as process:
            assert asked.wait(TIMEOUT_S)
            process.send_signal(signal.SIGINT)
            done = ended(process)
            assert (done.status, done.stderr.strip().rpartition(": ")[2]) == (1, "interrupted")
        end.set()


def test_a_second_interrupt_ends_the_program_at_once(peers, loaded, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text(f"\\shell touch {tmp_path}/begun\n\\shell sleep 900\n")
    with peers[1].start(loaded(18), ["-n", "-f", str(file), "-T", "900"]) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 130


@pytest.mark.like_pgbench
def test_rows_before_an_error_are_not_those_of_the_next_try(both, fresh, tmp_path):
    """A deferred trigger rejects every other commit after the statement's row has come."""
    script = tmp_path / "script.sql"
    script.write_text("INSERT INTO orders DEFAULT VALUES RETURNING id \\gset\nSELECT :id AS again \\gset\n")
    target = fresh(empty=True)

    def act(program):
        with target.connect_as_user() as connection:
            connection.execute(
                "DROP TABLE IF EXISTS orders; DROP SEQUENCE IF EXISTS turns;"
                "CREATE TABLE orders (id serial); CREATE SEQUENCE turns; CREATE OR REPLACE FUNCTION every_other()"
                " RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('turns') % 2 = 1 THEN"
                " RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;"
                " CREATE CONSTRAINT TRIGGER every_other AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION every_other()"
            )
        report = []
        for mode in ("simple", "extended", "prepared"):
            done = program.run(target, "-n", "-f", str(script), "-t", "4", "--max-tries=3", "-M", mode)
            wanted = ("processed", "failed", "retried", "retries")
            lines = [line for line in done.stdout.splitlines() if any(word in line for word in wanted)]
            report.append((done.status, lines, done.stderr))
        return report

    theirs, mine = both(act)
    assert mine == theirs
    assert "total number of retries: 4" in mine[0][1]


def test_threads_that_cannot_be_started_end_the_run(tmp_path, workspace):
    """The server takes the connections of the threads before them, and never answers."""
    directory = workspace.socket_directory()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / ".s.PGSQL.5432"))
        listener.listen(100)
        done = subprocess.run(
            [
                *("prlimit", "--nofile=120:120", *sysbench().command, "oltp_point_select", f"--pgsql-host={directory}"),
                *("--pgsql-port=5432", "--pgsql-user=u", "--pgsql-db=d", "--threads=40", "--jobs=40", "run"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    assert done.returncode == 1
    assert "could not create an event loop: Too many open files" in done.stdout + done.stderr
