"""Data made by all machines of a fleet at once, each by an engine for its shard."""

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
    """Makes data on several machines, each of which makes a part. If there is more than one, each line of progress
    begins with the machine's name."""

    def __init__(self, members: Sequence[Member], order: DataOrder, on_line: OnLine | None):
        self._engines = [RemoteEngine(member) for member in members]
        self._order = order
        self._on_line = on_line
        self._packed = pack(order.command, order.env, order.folder)
        self._one_at_a_time = threading.Lock()
        self._over = threading.Event()
        """Set when the data is incomplete, so that what the engines still make is of no use."""
        self._complaints: list[str] = []
        """The complaints with the names of their machines, in the order of time."""

    def make(self) -> None:
        """Makes all parts. The first machine that fails or is lost ends it for all. Raises ArmError with its reason."""
        with ThreadPoolExecutor(len(self._engines)) as workers:
            try:
                list(workers.map(self._part, range(len(self._engines))))
            except BaseException:
                self._give_up()
                raise
        if self._complaints:
            raise ArmError(f"{self._order.what} failed on the machine {self._complaints[0]}")

    def _part(self, index: int) -> None:
        """Makes one machine's part, in a thread of its own."""
        engine = self._engines[index]
        try:
            complaint = self._complaint(engine, f"--shard={index + 1}/{len(self._engines)}")
        except MachineLost as lost:
            complaint = f"the machine was lost: {lost}"
        except BaseException:
            self._give_up()
            # the next order finds the machine free
            with suppress(MachineLost):
                engine.end()
            raise
        if complaint is not None:
            with self._one_at_a_time:
                self._complaints.append(f"{engine.member.name}: {complaint}")
            self._give_up()

    def _complaint(self, engine: RemoteEngine, shard: str) -> str | None:
        """Returns why a part failed, once its engine has ended; None if it did not fail. Raises MachineLost."""
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
