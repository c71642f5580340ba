"""One load made by all machines of a fleet: one engine on each, one instant for all, one stream of events."""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

from pgtrial.loads.engine import EngineRun, Event, environment, last_message, load_command
from pgtrial.loads.fleet.agent import identity
from pgtrial.loads.fleet.distances import Offset
from pgtrial.loads.fleet.members import ANSWER_S, MachineLost, Member
from pgtrial.loads.fleet.sharing import HERE, pack
from pgtrial.loads.load_makers import Each, LoadOrder
from pgtrial.machines.interrupt import held_off
from pgtrial.model.errors import TrialError
from pgtrial.model.records.machines import MachineShare

_NOTICE_S = 0.3
"""The least time from the moment at which all are connected to the instant at which all begin."""
_NOTICE_TRIPS = 4
"""The same, in round trips to the slowest machine."""
_LINES_S = 2.0
"""How long an agent waits for the next line before it answers that there is none."""
_END_S = 5.0
"""What an engine may take to end once it is to."""


@dataclass(eq=False)
class _Part:
    """One machine's part of the load, and how far it is."""

    index: int
    member: Member
    offset: Offset
    round_trip_us: float | None
    """To the server."""
    ready: bool = False
    done: bool = False
    over: bool = False
    asked: float = 0.0
    messages: list[str] = field(default_factory=list)


class FleetRun(EngineRun):
    """A load of a fleet, read as that of one engine: its own process is the one that merges the machines' events."""

    def __init__(
        self,
        order: LoadOrder,
        members: Sequence[Member],
        offsets: Sequence[Offset],
        round_trips_us: Sequence[float | None],
    ):
        merge = ["merge", f"--machines={','.join(member.name for member in members)}"]
        super().__init__(merge, environment({}), events_file=order.events_file, fed=True)
        self._folder = order.script.parent if order.script else None
        options = order.options(_each(members))
        command = load_command(order.front_end, options, order.variables)
        self._packed = pack(command, order.variables, self._folder, order.cpus)
        each = zip(range(len(members)), members, offsets, round_trips_us, strict=True)
        self._parts = [_Part(*part) for part in each]
        self._answers: queue.SimpleQueue[tuple[_Part, Future[Any]]] = queue.SimpleQueue()
        self._carrier = threading.Thread(target=self._carry, name="fleet", daemon=True)
        self._planned: float | None = None
        self._trouble: str | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._begin_engines()
            with held_off():
                self._carrier.start()
        except BaseException as error:
            self._stop()
            self.end_input()
            super().__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        super().__exit__(kind, error, trace)

    @property
    def pid(self) -> None:
        """There are several, elsewhere."""
        return

    def interrupt(self) -> None:
        """Ask the engines to stop; they still report what they measured."""
        for part in self._parts:
            if not part.over:
                part.member.call("interrupt")

    @property
    def trouble(self) -> str | None:
        """What went wrong first, with the machine's name."""
        return self._trouble

    def message_about(self, name: str) -> str | None:
        """The first of the engines' last messages that speaks of `name`, a path here; None if there is none."""
        for part in self._parts:
            self._tail.extend(part.messages)
        there = name if self._folder is None else name.replace(str(self._folder), HERE)
        found = super().message_about(there)
        return found and found.replace(there, name)

    def machines(self, done: Event | None) -> list[MachineShare]:
        """What each machine did, with the instant at which it began by the lab's clock."""
        told = {share["machine"]: share for share in (done or {}).get("machines", [])}
        return [self._share(part, told.get(part.member.name, {})) for part in self._parts]

    def _share(self, part: _Part, told: Event) -> MachineShare:
        began, offset = told.get("began_at"), part.offset
        skew_s = began - offset.offset_s - self._planned if began is not None and self._planned is not None else None
        return MachineShare(
            machine=part.member.name,
            address=part.member.address,
            with_lab=part.member.with_lab,
            round_trip_us=part.round_trip_us,
            **{name: told[name] for name in _TOLD if told.get(name) is not None},
            clock_offset_us=round(1e6 * offset.offset_s, 1),
            offset_error_us=round(1e6 * offset.error_s, 1),
            start_skew_us=None if skew_s is None else round(1e6 * skew_s, 1),
        )

    def _begin_engines(self) -> None:
        """Start the engines, which connect and wait. Raises TrialError."""
        asked = []
        for part in self._parts:
            order = self._packed.order(f"--shard={part.index + 1}/{len(self._parts)}", "--start-at=-")
            asked.append(part.member.call("begin", order))
        for part, coming in zip(self._parts, asked, strict=True):
            try:
                complaint = part.member.answer(coming)
            except MachineLost as lost:
                raise TrialError(_lost(part, str(lost), "before the load began")) from None
            if complaint is not None:
                raise TrialError(f"the engine cannot be started on the machine {part.member.name}: {complaint}")

    def _carry(self) -> None:
        """Carry lines from the machines to the merger until all have told theirs: the work of a thread of its own."""
        try:
            for part in self._parts:
                self._ask(part)
            while not all(part.over for part in self._parts):
                with suppress(queue.Empty):
                    part, coming = self._answers.get(timeout=_LINES_S)
                    if not part.over:
                        self._take(part, coming)
                # one that has answered meanwhile is heard before it is judged
                if self._answers.empty():
                    self._give_up_the_silent()
        finally:
            self.end_input()

    def _ask(self, part: _Part) -> None:
        part.asked = time.monotonic()
        coming = part.member.call("lines", _LINES_S)
        coming.add_done_callback(partial(self._answered, part))

    def _answered(self, part: _Part, coming: Future[Any]) -> None:
        self._answers.put((part, coming))

    def _take(self, part: _Part, coming: Future[Any]) -> None:
        try:
            lines, last = part.member.answer(coming)
            self._hand_on(part, lines)
            if last:
                self._settle(part)
            else:
                self._ask(part)
        except MachineLost as lost:
            self._lose(part, str(lost))

    def _hand_on(self, part: _Part, lines: Sequence[str]) -> None:
        # what a killed engine wrote last may be torn off
        lines = [line for line in lines if line.endswith("\n")]
        self.feed("".join(f"{part.index}\t{line}" for line in lines))
        if not part.ready and any(_is(line, "ready") for line in lines):
            part.ready = True
            if all(each.ready for each in self._parts):
                self._go()
        part.done = part.done or any(_is(line, "done") for line in lines[-1:])

    def _go(self) -> None:
        """All are connected: let all begin at one instant, told to each by its own clock."""
        slowest = max(part.offset.round_trip_s for part in self._parts)
        self._planned = time.time() + max(_NOTICE_S, _NOTICE_TRIPS * slowest)
        for part in self._parts:
            part.member.call("go", self._planned + part.offset.offset_s)

    def _settle(self, part: _Part) -> None:
        """The engine has said all: hear how it ended."""
        ended = part.member.ask("end", _END_S, patience_s=_END_S + ANSWER_S)
        part.messages = ended["messages"]
        words = _words_of(ended)
        self._close(part, f"the engine on the machine {part.member.name} ended before its report: {words}")

    def _lose(self, part: _Part, why: str) -> None:
        self._close(part, _lost(part, why, self._when()))

    def _close(self, part: _Part, reason: str) -> None:
        """No more will come of a part. Without its report, for this reason, the load has failed."""
        part.over = True
        if not part.done:
            self._give_up(reason)
        # the merger may end with this, and the load with it
        self.feed(f"{part.index}\t\n")

    def _give_up(self, reason: str) -> None:
        """The load is not whole any more: what the others would still do is of no use."""
        self._trouble = self._trouble or reason
        self.interrupt()

    def _give_up_the_silent(self) -> None:
        now = time.monotonic()
        for part in self._parts:
            if not part.over and now - part.asked > _LINES_S + ANSWER_S:
                part.member.lost = f"it has not answered for {now - part.asked:.0f}s"
                self._lose(part, part.member.lost)

    def _when(self) -> str:
        if self._planned is None:
            return "before the load began"
        return f"{max(0.0, time.time() - self._planned):.0f}s into the load"

    def _stop(self) -> None:
        """End the engines that still run, in order if they let us, and what carries their lines."""
        if self._carrier.is_alive():
            self.interrupt()
            self._carrier.join(_END_S)
        # an engine that does not stop is killed, and a machine that does not answer is lost for the next load
        left = [part for part in self._parts if not part.over and part.member.lost is None]
        for part, coming in [(part, part.member.call("end", 0.0)) for part in left]:
            try:
                part.member.answer(coming)
            except MachineLost:
                continue
        if self._carrier.is_alive():
            self._carrier.join(_LINES_S + 2 * ANSWER_S)


_TOLD = (
    "clients",
    "transactions",
    "tps",
    "cpu_user_s",
    "cpu_system_s",
    "busiest_thread_share",
    "lag_p99_us",
    "began_at",
    "status",
)
"""What the merger tells of each machine."""


def _each(members: Sequence[Member]) -> Each:
    """Engines on this machine share it with each other, and perhaps with the server: the half of it, as one has."""
    if any(member.identity == identity() for member in members):
        return Each(len(members))
    return Each(len(members), min(member.cpus for member in members))


def _is(line: str, event: str) -> bool:
    if f'"{event}"' not in line:
        return False
    try:
        return bool(json.loads(line)["event"] == event)
    except (ValueError, KeyError, TypeError):
        return False


def _lost(part: _Part, why: str, when: str) -> str:
    return f"the machine {part.member.name} was lost {when}: {why}"


def _words_of(ended: dict[str, Any]) -> str:
    """Why an engine ended: its last message, or the signal that killed it."""
    status = ended["status"]
    if status is not None and status < 0:
        return f"it was killed by {signal.Signals(-status).name}"
    return last_message(ended["messages"]) or f"status {status}, and it said nothing"
