"""Tests of the agent that works on a machine of the fleet, here in a process of the tests and without Ray."""

from __future__ import annotations

import ast
import hashlib
import os
import socket
import stat
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from pgtrial.loads.fleet import agent as module
from pgtrial.loads.fleet.agent import Agent
from tests.conftest import require, require_engine

PATIENCE_S = 120.0


@pytest.fixture
def agent():
    working = Agent()
    yield working
    working.close()


@pytest.fixture
def fitted(agent):
    agent.take_engine(require_engine().read_bytes())
    return agent


def order(*arguments, **more):
    return {"arguments": arguments, "environment": {}, "files": {}, "cpus": None, "one_output": False, **more}


ENGINE = "the engine"


def said(agent, name=ENGINE):
    lines, last = [], False
    deadline = time.monotonic() + PATIENCE_S
    while not last:
        assert time.monotonic() < deadline
        more, last = agent.lines(name, 1.0)
        lines += more
    return "".join(lines)


def test_it_imports_nothing_that_a_machine_with_python_alone_lacks():
    imports = [node for node in ast.walk(ast.parse(Path(module.__file__).read_text())) if isinstance(node, ast.Import)]
    froms = [
        node for node in ast.walk(ast.parse(Path(module.__file__).read_text())) if isinstance(node, ast.ImportFrom)
    ]
    names = {alias.name for node in imports for alias in node.names} | {str(node.module) for node in froms}
    assert names <= {*sys.stdlib_module_names, "__future__"}


def test_the_same_engine_is_used_where_it_is_and_another_one_is_not(agent, monkeypatch):
    engine = require_engine()
    monkeypatch.setenv("PGTRIAL_ENGINE", str(engine))
    assert not agent.find_engine("0" * 64)
    assert agent.find_engine(hashlib.sha256(engine.read_bytes()).hexdigest())
    assert agent.complaint_of_engine() is None


def test_an_engine_that_was_sent_is_kept_for_this_account_alone(fitted):
    path = Path(fitted._engine)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert fitted.complaint_of_engine() is None


def test_an_engine_for_another_processor_is_complained_about(agent):
    binary = bytearray(require_engine().read_bytes()[:4096])
    require(binary[:4] == b"\x7fELF", "programs in ELF, such as Linux has")
    # of no processor, lest one is emulated here (elf(5), e_machine)
    binary[18:20] = b"\xfe\xfe"
    agent.take_engine(bytes(binary))
    assert "Exec format error" in (agent.complaint_of_engine() or "")


def test_what_the_engine_says_comes_over_with_its_status_and_names_files_alike_on_all_machines(fitted):
    assert fitted.begin(ENGINE, order("pgbench", "-n", "-f", "./bad.sql", files={"bad.sql": b"\\nothing\n"})) is None
    assert said(fitted) == ""
    ended = fitted.end(ENGINE, PATIENCE_S)
    assert ended["status"] == 1
    assert any(message.startswith("pgbench: error: ./bad.sql:1") for message in ended["messages"])


def test_stray_variables_of_the_machine_do_not_reach_the_engine(fitted, monkeypatch):
    monkeypatch.setenv("PGPORT", "not a port")
    fitted.begin(ENGINE, order("pgbench", "-n", "-S", environment={"PGHOST": "/nowhere"}))
    said(fitted)
    (message, *_) = fitted.end(ENGINE, PATIENCE_S)["messages"]
    assert "not a port" not in message
    assert ".s.PGSQL.5432" in message


def test_cpus_that_the_machine_does_not_have_are_complained_about(fitted):
    usable = min(os.sched_getaffinity(0))
    assert (
        fitted.begin(ENGINE, order("pgbench", cpus=[usable, 100_000]))
        == "the machine does not let the engine use these CPUs: 100000"
    )


def test_a_machine_without_a_network_card_is_the_same_to_all_of_its_processes(monkeypatch):
    known = set()
    for drawn in (0x0123_4567_89AB, 0xFFFF_FFFF_FFFF):
        monkeypatch.setattr(uuid, "getnode", lambda drawn=drawn: drawn)
        known.add(module.identity())
    assert len(known) == 1
    monkeypatch.setattr(uuid, "getnode", lambda: 0x0023_4567_89AB)
    assert module.identity() not in known


def test_of_a_names_addresses_the_first_that_answers_is_connected_to(agent, free_port, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each)) for each in (free_port, port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **options: found)
        assert len(agent.round_trips("db", port, 3, PATIENCE_S)) == 3
        found.pop()
        assert agent.round_trips("db", port, 3, PATIENCE_S) == []


def test_engines_that_run_at_the_same_time_have_their_own_files_and_words(fitted):
    names = ["first", "next"]
    for name in names:
        files = {f"{name}.sql": b"\\nothing\n"}
        assert fitted.begin(name, order("pgbench", "-n", "-f", f"./{name}.sql", files=files)) is None
    for name in names:
        assert said(fitted, name) == ""
        ended = fitted.end(name, PATIENCE_S)
        assert ended["status"] == 1
        assert f"./{name}.sql:1" in " ".join(ended["messages"])
    assert sorted(path.name for path in Path(fitted._scratch).iterdir()) == ["pgtrial-engine"]


def test_an_engine_can_be_asked_about_until_the_next_one_begins(fitted):
    bad = order("pgbench", "-n", "-f", "./bad.sql", files={"bad.sql": b"\\nothing\n"})
    fitted.begin("first", bad)
    first = fitted.end("first", PATIENCE_S)
    assert fitted.end("first", PATIENCE_S) == first
    fitted.begin("next", bad)
    assert fitted.end("first", PATIENCE_S) == {"status": None, "messages": []}
    assert fitted.lines("first", PATIENCE_S) == ([], True)
    assert fitted.end("next", PATIENCE_S)["status"] == 1


def engines_of(process):
    return [child for child in process.children(recursive=True) if child.name() == "pgtrial-engine"]


def has_ended(process):
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_agent_that_is_killed_leaves_neither_engine_nor_files(tmp_path):
    engine = require_engine()
    work = (
        "import pathlib, sys, time; from pgtrial.loads.fleet.agent import Agent; agent = Agent()\n"
        f"agent.take_engine(pathlib.Path({str(engine)!r}).read_bytes())\n"
        f"agent.begin('one', {{'arguments': ['null-server', '--socket-dir', {str(tmp_path)!r}], 'environment': {{}}, "
        "'files': {}, 'cpus': None, 'one_output': False})\n"
        "agent.lines('one', 30); print(agent._scratch, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        (left,) = engines_of(psutil.Process(process.pid))
        assert folder.is_dir()
        process.kill()
    wait_until(lambda: has_ended(left))
    wait_until(lambda: not folder.exists())
