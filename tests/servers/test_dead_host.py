"""A host that never answers: who removes what a lab left there keeps no other lab waiting."""

from __future__ import annotations

import fcntl
import json
import socket
import threading
from dataclasses import asdict

import pytest

from pgtrial.files.locks import take
from pgtrial.servers.host_run_directory import HostRunRecord
from pgtrial.servers.leftovers import clean
from pgtrial.servers.runs import registry
from pgtrial.servers.workspace import Workspace

PATIENCE_S = 60


@pytest.fixture
def silent(tmp_path, monkeypatch):
    """Yields the socket of a host that accepts connections and sends nothing; ssh knows it by the name `silent`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        (tmp_path / ".ssh").mkdir(mode=0o700)
        port = listener.getsockname()[1]
        (tmp_path / ".ssh/config").write_text(f"Host silent\n  HostName 127.0.0.1\n  Port {port}\n  User root\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        yield listener


def test_others_neither_wait_nor_clean_the_same_run_while_a_dead_host_is_asked(fresh_state, silent):
    with Workspace(fresh_state):
        pass
    run = fresh_state / "runs/1-dead"
    (run / "rooms").mkdir(parents=True, mode=0o700)
    record = HostRunRecord("silent", sudo=False, data="/data", root="/data/pgtrial-0")
    (run / "rooms/pgtrial-0.json").write_text(json.dumps(asdict(record)))
    told = []
    cleaner = threading.Thread(target=lambda: told.extend(clean(fresh_state)))
    cleaner.start()
    asked, _ = silent.accept()
    try:
        with (fresh_state / "lock").open("rb") as lock:
            assert take(lock), "the registry is free"
            fcntl.flock(lock, fcntl.LOCK_UN)
        with registry(fresh_state), (run / "lock").open("rb") as held:
            assert not take(held), "the run is held"
        with Workspace(fresh_state) as workspace:
            assert workspace.notices == []
    finally:
        asked.close()
        cleaner.join(PATIENCE_S)
    assert len(told) == 1
    assert "/data/pgtrial-0 on silent" in told[0]
    assert run.exists(), "its record stays until the host is back"
