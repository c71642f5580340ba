"""A load of order entry under attack: server processes and the engine end by `kill -9` at random moments."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from pgtrial.loads.target import Target
from tests.engine.events import events_of, has_counted, wait_for
from tests.engine.programs import Program
from tests.processes import until

_PATIENCE_S = 120.0
"""The limit for the time in which the server must recover after a kill, seconds."""

_SERVING = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgtrial order-entry' AND state <> 'idle'"
    " ORDER BY random() LIMIT 1"
)


class AttackedLoad:
    """A load that is killed, with its server's processes, and goes on; `killed` counts what was killed."""

    def __init__(self, program: Program, target: Target, path: Path, options: Sequence[str]) -> None:
        self._program = program
        self._target = target
        self._path = path
        self._args = ["run", "-T", "100000", "--continue-on-error", "--wait-for-server=120", *options]
        self.killed: Counter[str] = Counter()

    def attack(self, seconds: float, pause_s: tuple[float, float], chance: Random) -> None:
        """Kills a backend or, less often, the engine for this number of seconds, after pauses of random length. Each is
        killed at least once.
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._running():
                for victim in self._victims(chance):
                    time.sleep(chance.uniform(*pause_s))
                    if victim == "engine":
                        break
                    self._kill_backend()
                    self.killed[victim] += 1
                    self._wait_until_it_goes_on()
            self.killed["engine"] += 1
            if time.monotonic() >= deadline:
                return

    @staticmethod
    def _victims(chance: Random) -> Iterator[str]:
        """Backends, then the engine that they served."""
        yield from ["backend"] * chance.randint(1, 3)
        yield "engine"

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Starts a load and waits until it has counted transactions. When the context ends, the engine is killed."""
        self._path.unlink(missing_ok=True)
        with self._program.start(self._target, [*self._args, "--events", str(self._path)]) as process:
            try:
                wait_for(self._path, has_counted, _PATIENCE_S)
                yield
            finally:
                process.kill()
                process.communicate()
        assert process.returncode == -signal.SIGKILL, "the engine was killed, and did not end before"

    def _kill_backend(self) -> None:
        """Waits for a backend that serves a client, and kills it. The server then ends all others, and recovers."""
        found: list[int] = []

        def serves() -> bool:
            with self._target.connect_as_user() as connection:
                found.extend(pid for (pid,) in connection.execute(_SERVING).fetchall())
            return bool(found)

        until(serves, "a backend serves a client", _PATIENCE_S)
        os.kill(found[0], signal.SIGKILL)

    def _wait_until_it_goes_on(self) -> None:
        """The clients have connected anew, and count transactions of a later second."""
        seen = len(events_of(self._whole_lines()))
        wait_for(self._path, lambda events: has_counted(events[seen + 1 :]), _PATIENCE_S)

    def _whole_lines(self) -> str:
        text = self._path.read_text()
        return text[: text.rfind("\n") + 1]
