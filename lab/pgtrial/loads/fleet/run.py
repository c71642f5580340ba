"""Runs one load on all machines of a fleet: one engine on each machine, a common start time, and the events of all
machines merged into one stream."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from pgtrial.loads.engine import AT_A_WORD, EngineRun
from pgtrial.loads.events import Done, Share
from pgtrial.loads.fleet.agent import identity
from pgtrial.loads.fleet.members import ANSWER_S, MachineLost, Member, round_trips_us
from pgtrial.loads.fleet.remote_engine import END_S, HERE, RemoteEngine, pack
from pgtrial.loads.load_makers import Each, LoadOrder
from pgtrial.loads.process import last_words
from pgtrial.machines.interrupt import held_off
from pgtrial.model.errors import TrialError
from pgtrial.model.records.where_it_ran import MachineShare

_NOTICE_S = 0.3
"""The least time, in seconds, between the moment at which the engines of all machines are connected and their common
start. The start time must reach all engines before it has passed."""
_NOTICE_TRIPS = 4
"""The least time between the moment at which all engines are connected and their common start, as a multiple of the
network round trip to the slowest machine."""
_NOTICE_OF_SLICES = 4
"""The factor by which the least times before a common start (_NOTICE_S, _NOTICE_TRIPS) are longer for loads that
alternate in slices. With slices, an engine that learns its start time too late cannot take part at all, while otherwise
it only begins late."""


@dataclass(eq=False)
class _Part:
    """The share of the load that one machine makes, with its state: whether its engine is ready, has sent its report,
    or has ended."""

    index: int
    member: Member
    engine: RemoteEngine
    round_trip_us: float | None
    """The network round trip from the machine to the server, in microseconds; None if it is not known."""
    ready: bool = False
    done: bool = False
    over: bool = False
    messages: list[str] = field(default_factory=list)


class FleetRun(EngineRun):
    """A load that a fleet makes. Code that reads its events sees the load of a single engine: the local process of this
    object merges the events of all machines."""

    def __init__(self, order: LoadOrder, members: Sequence[Member]):
        merge = ["merge", f"--machines={','.join(member.name for member in members)}"]
        super().__init__(merge, {}, events_file=order.events_file, inbox=order.inbox, fed=True)
        self._folder = order.folder
        command = order.command(engines_of(members))
        self._alternates = AT_A_WORD in command
        self._packed = pack(command, order.variables, self._folder, order.cpus)
        numbered = enumerate(zip(members, round_trips_us(members, order.target), strict=True))
        self._parts = [_Part(index, member, RemoteEngine(member), trip) for index, (member, trip) in numbered]
        self._carriers = [
            threading.Thread(target=self._carry, args=(part,), name=f"fleet {part.member.name}", daemon=True)
            for part in self._parts
        ]
        self._one_at_a_time = threading.RLock()
        self._planned: float | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._begin_engines()
            with held_off():
                for carrier in self._carriers:
                    carrier.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop()
        self.end_input()
        super().__exit__(*raised)

    @property
    def pid(self) -> None:
        """Always None, since several engines on other machines make the load."""
        return

    @property
    def notice_s(self) -> float:
        """The lead time in seconds: loads that alternate must get their start time at least this many seconds before
        it."""
        return _NOTICE_OF_SLICES * self._notice_s

    def begin_at(self, at: float) -> None:
        """Starts all engines at the time `at` of time.monotonic(). Each machine gets the start time in its own
        wall-clock time."""
        self._planned = at - time.monotonic() + time.time()
        for part in self._parts:
            part.engine.go(self._planned + part.member.offset.offset_s)

    def interrupt(self) -> None:
        """Asks the engines to stop. They still report what they have measured."""
        for part in self._parts:
            if not part.over:
                part.engine.interrupt()

    def message_about(self, name: str) -> str | None:
        """Returns the first of the engines' last messages that contains `name`, which is a path on this machine; None
        if no message contains it."""
        for part in self._parts:
            self._tail.extend(part.messages)
        there = name if self._folder is None else name.replace(str(self._folder), HERE)
        message = super().message_about(there)
        return message and message.replace(there, name)

    def machines(self, done: Done | None) -> list[MachineShare]:
        """Returns a record for each machine, which includes the deviation of its start from the planned time."""
        merged = {share["machine"]: share for share in (done.get("machines", []) if done is not None else [])}
        return [self._share(part, merged.get(part.member.name)) for part in self._parts]

    def _share(self, part: _Part, merged: Share | None) -> MachineShare:
        began = merged.get("began_at") if merged is not None else None
        offset = part.member.offset
        skew_s = began - offset.offset_s - self._planned if began is not None and self._planned is not None else None
        reported = {name: value for name, value in (merged or {}).items() if name in MachineShare.model_fields}
        share = {
            **reported,
            "machine": part.member.name,
            "address": part.member.address,
            "with_lab": part.member.with_lab,
            "round_trip_us": part.round_trip_us,
            "clock_offset_us": round(1e6 * offset.offset_s, 1),
            "offset_error_us": round(1e6 * offset.error_s, 1),
            "start_skew_us": None if skew_s is None else round(1e6 * skew_s, 1),
        }
        return MachineShare.model_validate(share)

    def _begin_engines(self) -> None:
        """Starts the engines, which connect and then wait for their start time. Raises TrialError if an engine cannot
        be started or its machine is lost."""
        started = []
        for part in self._parts:
            at_a_word = [] if self._alternates else [AT_A_WORD]
            order = self._packed.order(f"--shard={part.index + 1}/{len(self._parts)}", *at_a_word)
            started.append(part.engine.begin(order))
        for part, coming in zip(self._parts, started, strict=True):
            try:
                complaint = part.member.answer(coming)
            except MachineLost as lost:
                raise TrialError(self._lost(part, lost)) from None
            if complaint is not None:
                raise TrialError(f"the engine cannot be started on the machine {part.member.name}: {complaint}")

    def _carry(self, part: _Part) -> None:
        """Passes the lines of one machine's engine to the local process that merges them, until the engine has ended.
        Runs in a thread of its own."""
        reason = f"the events of the machine {part.member.name} could not be merged with those of the others"
        try:
            for lines in part.engine.lines():
                self._merge(part, lines)
            status, part.messages = part.engine.end()
            why = last_words(part.messages, status)
            reason = f"the engine on the machine {part.member.name} ended before its report: {why}"
        except MachineLost as lost:
            reason = self._lost(part, lost)
        finally:
            self._close(part, reason)

    def _merge(self, part: _Part, lines: Sequence[str]) -> None:
        # if an engine was killed, its last line may be incomplete
        lines = [line for line in lines if line.endswith("\n")]
        with self._one_at_a_time:
            self.feed("".join(f"{part.index}\t{line}" for line in lines))
            if not part.ready and any(_is(line, "ready") for line in lines):
                part.ready = True
                if not self._alternates and all(one.ready for one in self._parts):
                    self.begin_at(time.monotonic() + self._notice_s)
        part.done = part.done or any(_is(line, "done") for line in lines[-1:])

    @property
    def _notice_s(self) -> float:
        return max(_NOTICE_S, _NOTICE_TRIPS * max(part.member.offset.round_trip_s for part in self._parts))

    def _close(self, part: _Part, reason: str) -> None:
        """Notes that one machine's share has ended. If the machine's engine has not sent its last event with the
        results, the load has failed for `reason`, and the other engines are stopped."""
        with self._one_at_a_time:
            part.over = True
            if not part.done:
                self.trouble = self.trouble or reason
                self.interrupt()
            # the merging process may end on this line, which ends the load
            self.feed(f"{part.index}\t\n")
            if all(one.over for one in self._parts):
                self.end_input()

    def _lost(self, part: _Part, why: MachineLost) -> str:
        when = "before the load began"
        if self._planned is not None:
            when = f"{max(0.0, time.time() - self._planned):.0f}s into the load"
        return f"the machine {part.member.name} was lost {when}: {why}"

    def _stop(self) -> None:
        """Ends the engines that still run, if necessary by killing them, and the threads that pass on their lines."""
        if any(carrier.is_alive() for carrier in self._carriers):
            self.interrupt()
            self._join(END_S)
        # an engine that does not stop is killed; a machine that does not answer counts as lost for the next load
        left = [part for part in self._parts if not part.over and part.member.lost is None]
        for part, coming in [(part, part.engine.end_now()) for part in left]:
            with suppress(MachineLost):
                part.member.answer(coming)
        self._join(END_S + 2 * ANSWER_S)

    def _join(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        for carrier in self._carriers:
            if carrier.is_alive():
                carrier.join(max(0.0, deadline - time.monotonic()))


def engines_of(members: Sequence[Member]) -> Each:
    """Returns the number of engines of a load, and the number of CPUs that each of them may use.

    Engines on the same machine share its CPUs. If that is this machine, perhaps together with the server, they share
    half of its CPUs. All engines have the same number of threads, so the machine with the fewest CPUs per engine
    decides.
    """
    engines = Counter(member.identity for member in members)
    here = identity()

    def cpus(member: Member) -> int:
        usable = Each().cpus if member.identity == here else member.cpus
        return max(1, usable // engines[member.identity])

    return Each(len(members), min(map(cpus, members)))


def _is(line: str, event: str) -> bool:
    if f'"{event}"' in line:
        with suppress(ValueError, KeyError, TypeError):
            return bool(json.loads(line)["event"] == event)
    return False
