"""Makes data with all machines of a fleet at once: the engine on each machine makes one part of the rows, its shard."""

from __future__ import annotations

import collections
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from pgtrial.loads.fleet.members import MachineLost, Member
from pgtrial.loads.fleet.remote_engine import RemoteEngine, pack
from pgtrial.loads.load_makers import DataOrder, OnLine, is_progress
from pgtrial.loads.process import TAIL_LINES, last_words
from pgtrial.model.errors import ArmError


class SharedMaking:
    """Makes data with several machines, each of which makes a share of it. If more than one machine takes part, each
    line of progress begins with the name of the machine that it is about."""

    def __init__(self, members: Sequence[Member], order: DataOrder, on_line: OnLine | None):
        self._engines = [RemoteEngine(member) for member in members]
        self._order = order
        self._on_line = on_line
        self._packed = pack(order.command, order.env, order.folder)
        self._one_at_a_time = threading.Lock()
        self._over = threading.Event()
        """Set as soon as one machine has failed: the data will be incomplete, so the other engines are stopped."""
        self._complaints: list[str] = []
        """The error messages of machines, each with the machine's name, in the order in which they occurred."""

    def make(self) -> None:
        """Makes the data, and waits until all shares are complete. If a machine fails or is lost, the others are
        stopped, and ArmError is raised with the reason."""
        with ThreadPoolExecutor(len(self._engines)) as workers:
            try:
                list(workers.map(self._part, range(len(self._engines))))
            except BaseException:
                self._give_up()
                raise
        if self._complaints:
            raise ArmError(f"{self._order.what} failed on the machine {self._complaints[0]}")

    def _part(self, index: int) -> None:
        """Makes the share of one machine, in a thread of its own."""
        engine = self._engines[index]
        try:
            complaint = self._complaint(engine, f"--shard={index + 1}/{len(self._engines)}")
        except MachineLost as lost:
            complaint = f"the machine was lost: {lost}"
        except BaseException:
            self._give_up()
            # wait for the engine's end, so that the machine is free for the next command or load
            with suppress(MachineLost):
                engine.end()
            raise
        if complaint is not None:
            with self._one_at_a_time:
                self._complaints.append(f"{engine.member.name}: {complaint}")
            self._give_up()

    def _complaint(self, engine: RemoteEngine, shard: str) -> str | None:
        """Runs an engine that makes its shard of the data, until it ends. Returns why it failed; None if it did not.
        Raises MachineLost if the machine does not answer any more."""
        complaint = engine.member.answer(engine.begin(self._packed.order(shard, one_output=True)))
        if complaint is not None:
            return str(complaint)
        tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        for lines in engine.lines():
            if self._over.is_set():
                engine.interrupt()
            for line in [line.strip() for line in lines if line.strip()]:
                tail.append(line)
                self._report(engine.member, line)
        status, _ = engine.end()
        return None if status == 0 or self._over.is_set() else last_words(tail, status)

    def _give_up(self) -> None:
        self._over.set()
        for engine in self._engines:
            engine.interrupt()

    def _report(self, member: Member, line: str) -> None:
        if self._on_line is None or not is_progress(line):
            return
        with self._one_at_a_time:
            self._on_line(f"{member.name}: {line}" if len(self._engines) > 1 else line)
