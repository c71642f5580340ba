"""Replays of statements that were cancelled: they are cancelled again, after the recorded time."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.capture_program import captured
from tests.engine.events import done_of, events_of
from tests.engine.programs import Program

LOG = """\
2026-11-23 08:00:00.000 UTC [1] LOG:  statement: SELECT pg_sleep(600)
2026-11-23 08:00:00.100 UTC [2] LOG:  statement: SELECT 2
2026-11-23 08:00:00.300 UTC [1] ERROR:  canceling statement due to user request
2026-11-23 08:00:00.300 UTC [1] STATEMENT:  SELECT pg_sleep(600)
2026-11-23 08:00:00.300 UTC [1] LOG:  statement: SELECT 1
2026-11-23 08:00:00.400 UTC [1] LOG:  statement: SELECT pg_sleep(601)
2026-11-23 08:00:00.700 UTC [1] FATAL:  terminating connection due to administrator command
2026-11-23 08:00:00.700 UTC [1] STATEMENT:  SELECT pg_sleep(601)
"""


@pytest.mark.server
@pytest.mark.parametrize("pace", ["--speed=2", "--as-fast-as-possible"])
def test_cancelled_statements_are_cancelled_again(replay: Program, fresh, tmp_path: Path, pace: str) -> None:
    log, capture, events = tmp_path / "server.log", tmp_path / "capture", tmp_path / "events.jsonl"
    log.write_text(LOG)
    captured(capture, log)
    done = replay.run(fresh(18, empty=True), pace, "--events", str(events), str(capture))
    assert done.status == 0, done.stderr
    said = done_of(events_of(events.read_text()))["replay"]
    assert said["expected_failures"] == {"57014": 2}
    assert (said["unexpected_failures"], said["missing_failures"]) == ({}, {})
    assert said["statements"] == 4
    assert said["sessions"]["finished"] == 2


LATE = """\
2026-11-23 08:00:00.000 UTC [1] LOG:  statement: SELECT pg_sleep(0.3)
2026-11-23 08:00:00.050 UTC [1] ERROR:  canceling statement due to user request
2026-11-23 08:00:00.050 UTC [1] STATEMENT:  SELECT pg_sleep(0.3)
2026-11-23 08:00:00.060 UTC [1] LOG:  statement: SELECT pg_sleep(0.2)
2026-11-23 08:00:00.260 UTC [1] LOG:  duration: 200.000 ms
"""
CANCEL_REQUEST = 80877102
READY = b"Z\0\0\0\5I"
PATIENCE_S = 60.0
CHANCE_S = 0.5
"""How long a cancel request is held back, so that a client could send its next statement before the request arrives."""


class LateCancels:
    """A proxy that hands a cancel request on only after the statement has ended and the client could send the next."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._ended, self._sent_next = threading.Event(), threading.Event()
        self.held = 0

    def serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            start = client.recv(8, socket.MSG_WAITALL)
            if struct.unpack("!II", start)[1] == CANCEL_REQUEST:
                self.held += 1
                assert self._ended.wait(PATIENCE_S)
                self._sent_next.wait(CHANCE_S)
                server.sendall(start + client.recv(8192))
                server.recv(1)
                return
            server.sendall(start)
            back = threading.Thread(target=self._hand_back, args=(server, client), daemon=True)
            back.start()
            while sent := client.recv(8192):
                if self._ended.is_set() and sent.startswith(b"Q"):
                    self._sent_next.set()
                server.sendall(sent)
            server.shutdown(socket.SHUT_WR)
            back.join()

    def _hand_back(self, server: socket.socket, client: socket.socket) -> None:
        answers = b""
        while answer := server.recv(8192):
            answers += answer
            if b"pg_sleep" in answers and answers.endswith(READY):
                self._ended.set()
            client.sendall(answer)


@contextmanager
def listening(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """Serves each connection to a Unix socket in a thread of its own."""

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.server
def test_a_late_cancel_request_does_not_cancel_the_next_statement(
    replay: Program, fresh: Callable[..., Target], tmp_path: Path
) -> None:
    log, capture, events = tmp_path / "server.log", tmp_path / "capture", tmp_path / "events.jsonl"
    log.write_text(LATE)
    captured(capture, log)
    target = fresh(18, empty=True)
    proxy = LateCancels(f"{target.host}/.s.PGSQL.{target.port}")
    with listening(tmp_path / ".s.PGSQL.5432", proxy.serve):
        here = replace(target, host=str(tmp_path), port=5432)
        done = replay.run(here, "--events", str(events), str(capture))
    assert done.status == 0, done.stderr
    said = done_of(events_of(events.read_text()))["replay"]
    assert proxy.held == 1
    assert (said["unexpected_failures"], said["missing_failures"]) == ({}, {"57014": 1})
