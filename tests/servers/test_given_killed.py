"""A lab killed at any step of a trial on a given server with settings: the next cleaning puts the server back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pgtrial.servers import settings_record, undo
from pgtrial.servers.leftovers import clean, leftovers
from pgtrial.servers.server_record import write_down
from pgtrial.servers.settings_record import SettingsRecord
from tests.processes import until
from tests.servers.given import automatic, dsn_of, execute, spec_of

pytestmark = pytest.mark.server


_LABS = """
import json, os, signal, sys, traceback
from pathlib import Path
import psycopg
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.machines import journal, machine
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace

steps, fatal = 0, 0

def step(act=None):
    global steps
    steps += 1
    if steps == fatal:
        if act is not None:
            act()
        os.kill(os.getpid(), signal.SIGKILL)

def counted(function):
    def call(*arguments, **named):
        step()
        result = function(*arguments, **named)
        step()
        return result
    return call

executed = psycopg.Connection.execute

def execute(connection, query, *arguments, **named):
    text = query.as_bytes(connection) if hasattr(query, "as_bytes") else query
    changes = isinstance(text, bytes) and text.startswith(b"ALTER SYSTEM") or "pg_reload_conf()" in str(text)
    if not changes:
        return executed(connection, query, *arguments, **named)
    text = text if isinstance(text, bytes) else text.encode()
    step()
    step(lambda: (connection.pgconn.send_query(text), connection.pgconn.flush()))
    result = executed(connection, query, *arguments, **named)
    step()
    return result

psycopg.Connection.execute = execute
journal.Journal.write = counted(journal.Journal.write)
Path.unlink = counted(Path.unlink)

def serve_once():
    workspace = Workspace(Path(sys.argv[1]))
    arm = make_arms(Design(StudySpec.model_validate(json.loads(sys.argv[2]))), workspace)["A"]
    with arm.serve(NO_TABLES, workspace.root / "log", {}):
        step()
    workspace.close()

for line in sys.stdin:
    fatal = int(line)
    lab = os.fork()
    if not lab:
        try:
            serve_once()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(lab, 0)[1]), flush=True)
"""
"""A program that runs labs. Each line of its input names the step at which the next lab dies: before a change, when the
change is sent, or after its answer.
"""

_STEPS = 25
"""The lab must take more than this number of steps: a record, five changes, reloads, and undoing them."""


def test_killed_at_any_step_the_server_is_put_back_and_its_sessions_start(given, fresh_state):
    execute(
        given,
        "ALTER SYSTEM SET work_mem = '3MB'",
        "ALTER SYSTEM SET session_preload_libraries = 'auto_explain', 'pg_stat_statements'",
        "ALTER SYSTEM SET max_connections = 77",
        "ALTER SYSTEM SET search_path = '$user', 'public'",
        "ALTER ROLE postgres SET maintenance_work_mem = '20MB'",
        "SELECT pg_reload_conf()",
        "ALTER SYSTEM SET statement_timeout = '30s'",
    )
    before = automatic(given).read_bytes()
    settings = {
        "work_mem": "21MB",
        "session_preload_libraries": "pg_stat_statements",
        "search_path": "public, pg_catalog",
        "statement_timeout": "90s",
        "max_wal_size": "2GB",
    }
    spec = spec_of(dsn_of(given), settings).model_dump(exclude_none=True)
    arguments = [sys.executable, "-c", _LABS, str(fresh_state), json.dumps(spec)]
    status, fatal = -signal.SIGKILL, 0
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as labs:
        assert labs.stdin is not None
        assert labs.stdout is not None
        while status:
            fatal += 1
            print(fatal, file=labs.stdin, flush=True)
            status = int(labs.stdout.readline())
            assert status in (0, -signal.SIGKILL), "the lab itself failed; its words are above"
            clean(fresh_state)
            assert leftovers(fresh_state) == [], f"killed at step {fatal}"
            assert automatic(given).read_bytes() == before, f"killed at step {fatal}"
            with given.target.connect_as_user() as session:
                shown = session.execute("SELECT current_setting('work_mem'), current_setting('search_path')").fetchone()
            assert shown == ("3MB", '"$user", public'), f"killed at step {fatal}"
        labs.stdin.close()
    assert fatal > _STEPS


def test_what_a_killed_lab_has_sent_and_the_server_not_executed_is_waited_for(given, tmp_path, monkeypatch):
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'")
    before = automatic(given).read_bytes()
    session = given.target.connect_as_user()
    made_by = settings_record.maker(session)
    record = SettingsRecord("A", given.target, {"work_mem": "3MB"}, {"work_mem": "21MB"}, ["work_mem"], made_by)
    write_down(record, tmp_path)
    os.kill(int(made_by["pid"]), signal.SIGSTOP)
    session.pgconn.send_query(b"ALTER SYSTEM SET work_mem = '21MB'")
    session.pgconn.flush()
    session.close()
    sleep = time.sleep

    def go_on(seconds):
        os.kill(int(made_by["pid"]), signal.SIGCONT)
        monkeypatch.setattr(time, "sleep", sleep)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", go_on)  # by whoever waits first
    assert undo.of_run(tmp_path).undo() == ([], [])
    with given.target.connect_as_user() as another:
        there = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {made_by['pid']}".encode()
        until(lambda: another.execute(there).fetchone() == (0,), "the session has ended")
    assert automatic(given).read_bytes() == before
