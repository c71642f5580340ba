"""Manages the machines that make a study's loads: checks before each load that they are reachable, and replaces
machines that were lost."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from pgtrial.loads.fleet.agent import identity, kind_of_machine
from pgtrial.loads.fleet.cluster import RayCluster, joined
from pgtrial.loads.fleet.members import (
    ANSWER_S,
    MachineLost,
    Member,
    answers,
    check_offset,
    doubt_of_clocks,
    known_well_s,
    measure,
    name_all,
)
from pgtrial.loads.fleet.run import FleetRun
from pgtrial.loads.fleet.scratch import clean
from pgtrial.loads.fleet.sharing import SharedMaking
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder, LoadMaker, LoadOrder, OnLine
from pgtrial.loads.process import engine_path
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import listed_numbers
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration

GATHERING_S = 60.0
"""The time limit, in seconds, for the cluster to provide all machines of the fleet at the beginning of a study."""

_SHIP_S = 120.0
_TRY_S = 40.0
_REACH_S = 5.0
_AGAIN_S = 1.0

_MOST_LOADING = 16
"""The largest number of machines that make data together. More machines would not be faster, and would need connections
that the server may not have."""


@contextmanager
def load_maker(spec: StudySpec, report: OnLine) -> Iterator[LoadMaker]:
    """Provides the object that makes a study's loads: its fleet, or one engine on this machine. Raises StudyError if
    the fleet's cluster cannot be joined or is too small, and ArmError if its machines cannot be used."""
    for notice in clean():
        report(notice)
    if spec.fleet is None:
        yield ENGINE_HERE
        return
    report(f"the fleet at {spec.fleet.address}: gathering its machines")
    with joined(spec.fleet) as cluster:
        fleet = Fleet(spec.fleet, cluster, range(cluster.size))
        try:
            fleet.gather()
            report(f"the fleet: {', '.join(fleet.names)}")
            yield fleet
        finally:
            fleet.dismiss()


class Fleet(LoadMaker):
    """Several machines, each with one engine, that make each load together, and also the data."""

    def __init__(self, section: FleetSection, hiring: RayCluster, bundles: Sequence[int]):
        self._section = section
        self._hiring = hiring
        self._bundles = bundles
        self._members: list[Member] = []
        self._reached: set[tuple[Member, str, int]] = set()
        self._slice_s: float | None = None
        """The length, in seconds, of the slices in which loads alternate; None if the study's loads do not
        alternate."""
        self._gone: list[str] = []
        """The machines that were lost and not replaced, each as a phrase with the reason."""
        binary = engine_path().read_bytes()
        self._digest = hashlib.sha256(binary).hexdigest()
        self._binary = hiring.share(binary)

    @property
    def names(self) -> list[str]:
        """The names of the machines of the fleet that currently take part in loads."""
        return [member.name for member in self._members]

    @property
    def addresses(self) -> tuple[str, ...]:
        """The network addresses of the machines that currently take part."""
        return tuple(dict.fromkeys(member.address for member in self._members))

    def gather(self) -> None:
        """Starts an agent on each machine of the fleet, and makes sure that the machine can run the engine. Raises
        ArmError if a machine is lost, cannot run the engine, or has a clock that was never set."""
        try:
            self._members = self._hiring.hire(self._bundles, GATHERING_S)
            name_all(self._members)
            for member in self._members:
                self._fit_out(member)
            self._set_clocks()
        except MachineLost as lost:
            raise ArmError(
                f"a machine of the fleet was lost before the first trial: {lost}; check that it runs and that this "
                "machine reaches it, and run the study again"
            ) from None

    def dismiss(self) -> None:
        """Ends all agents, so that no process or file is left on their machines."""
        answers([member for member in self._members if member.lost is None], "close")
        for member in self._members:
            self._hiring.dismiss(member)

    @property
    def engines(self) -> int:
        """The number of machines that make data together, which is limited by _MOST_LOADING."""
        return len(self._loading)

    def make(self, order: DataOrder, on_line: OnLine | None = None) -> None:
        """Makes data by the engine's command in `order`: with as many machines as can share the command, or with one
        engine on this machine if it cannot be shared. Raises ArmError if an engine fails or a machine is lost."""
        if order.most_parts > 1 and self._loading:
            SharedMaking(self._loading[: order.most_parts], order, on_line).make()
        else:
            super().make(order, on_line)

    @property
    def _loading(self) -> list[Member]:
        return [member for member in self._members if member.lost is None][:_MOST_LOADING]

    def check_cpus(self, cpus: str) -> None:
        """Raises StudyError if `cpus` is not a list of CPUs. Whether a machine has these CPUs turns out when its engine
        starts."""
        try:
            listed_numbers(cpus)
        except ValueError as error:
            raise StudyError(f"{marks.key('load', 'cpus')}: {error}") from None

    def check_reaches(self, arm: str, targets: Sequence[Target] | None) -> None:
        """Checks, before data is loaded, that every machine can connect to the servers of an arm.

        Raises StudyError for servers that only this machine can reach (at a Unix socket or a loopback address), and
        ArmError for an address to which a machine cannot connect.
        """
        if targets is None:
            self._check_here(
                f"arms.{arm}: pgtrial starts its server on this machine for each trial, and it accepts connections "
                "only from this machine"
            )
        for target in targets or []:
            self._check_target(target)

    def check_slices(self, slice_s: float) -> None:
        """Raises StudyError if the differences between the machines' clocks are not known precisely enough for slices
        of this length."""
        self._slice_s = slice_s
        if self._doubt() is not None:
            with suppress(MachineLost):  # `ready` treats lost machines as the study says
                self._set_clocks()
        doubt = self._doubt()
        if doubt is not None:
            raise StudyError(
                f'{marks.key("load", "interleave")}: {doubt}; write longer slices, or "off", or use machines with a '
                "shorter round trip to this one"
            )

    def ready(self, report: OnLine) -> list[str]:
        """Prepares the fleet for the next load: replaces machines that were lost, or goes on without them, and measures
        the differences between the machines' clocks and the lab's.

        Returns notes about the fleet that are stored with the trial. Raises ArmError if a lost machine is not replaced
        in time, if no machine is left, or if the study file asks to stop when a machine is lost (on_machine_loss).
        """
        while True:
            for member in [member for member in self._members if member.lost is not None]:
                self._part_with(member, report)
            with suppress(MachineLost):
                self._set_clocks()
                break
        notes = [doubt] if (doubt := self._doubt()) is not None else []
        if not self._gone:
            return notes
        there = f"{len(self._members)} of {len(self._bundles)} machines of the fleet"
        return [*notes, f"this load was made by {there}: {'; '.join(self._gone)}"]

    @contextmanager
    def started(self, order: LoadOrder) -> Iterator[FleetRun]:
        """Runs a load for the duration of the context. If there are more machines than can share the load, the first
        ones make it."""
        self._check_target(order.target)
        with FleetRun(order, self._members[: order.most_parts]) as run:
            yield run

    def _fit_out(self, member: Member) -> None:
        """Makes sure that a machine has exactly the same engine file as this machine, if necessary by sending the file.
        Raises ArmError if the engine does not run there."""
        if not member.ask("find_engine", self._digest):
            member.ask("take_engine", self._binary, patience_s=_SHIP_S)
        complaint = member.ask("complaint_of_engine", patience_s=_TRY_S)
        if complaint is not None:
            raise ArmError(
                f"the load engine of this machine ({kind_of_machine()}) does not run on the machine {member.name} "
                f"({member.kind}): {complaint}; use machines with the same operating system and processor type, and "
                "make sure that their folder for temporary files is not mounted noexec"
            )

    def _set_clocks(self) -> None:
        enough_s = math.inf if self._slice_s is None else known_well_s(self._slice_s)
        for member in self._members:
            member.offset = measure(partial(member.ask, "clock"), enough_s=enough_s)
            check_offset(member.name, member.offset)

    def _doubt(self) -> str | None:
        """Returns why the differences between the machines' clocks are not known well enough for loads that alternate
        in slices; None if they are, or if loads do not alternate."""
        if self._slice_s is None:
            return None
        return doubt_of_clocks({member.name: member.offset for member in self._members}, self._slice_s)

    def _part_with(self, member: Member, report: OnLine) -> None:
        """Treats the loss of a machine as the study says: waits for another machine, stops, or goes on without it.
        Raises ArmError if the study has to stop."""
        self._hiring.dismiss(member)
        lost = f"{member.name} was lost ({member.lost})"
        patience_s = self._section.patience_s
        index = self._members.index(member)
        if patience_s is not None:
            report(f"{lost}; waiting for another machine for {format_duration(patience_s)}")
            self._members[index : index + 1] = self._replacement(member, lost, patience_s)
            return
        del self._members[index]
        self._gone.append(lost)
        if self._section.on_machine_loss == "stop":
            raise ArmError(f'{lost} from the fleet, and the study stops because of on_machine_loss = "stop"')
        if not self._members:
            raise ArmError(
                f"no machine of the fleet is left: {'; '.join(self._gone)}; add machines to the Ray cluster, and run "
                "the study again"
            )
        report(f"{lost}; going on with {', '.join(self.names)}")

    def _replacement(self, lost: Member, loss: str, patience_s: float) -> list[Member]:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                members = self._hiring.hire([lost.bundle], max(1.0, deadline - time.monotonic()))
                name_all([*self._members, *members])
                for member in members:
                    self._fit_out(member)
                return members
            except MachineLost as why:
                # for some seconds after a node has died, Ray still offers its place
                if time.monotonic() + _AGAIN_S > deadline:
                    raise ArmError(
                        f"{loss} from the fleet, and no machine has taken its place: {why}; add a machine to the Ray "
                        "cluster, and run the study again"
                    ) from None
            time.sleep(_AGAIN_S)

    def _check_target(self, target: Target) -> None:
        if target.local:
            self._check_here(f"the server {target.label} can be reached only from this machine")
            return
        where = (target.host, target.port)
        asked = [member for member in self._members if (member, *where) not in self._reached]
        complaints = answers(asked, "complaint_about", *where, _REACH_S, patience_s=_REACH_S + ANSWER_S)
        for member, complaint in complaints.items():
            if complaint is not None:
                raise ArmError(
                    f"the machine {member.name} cannot connect to the server at {target.host}:{target.port}: "
                    f"{complaint}; does a firewall block the port, or does the server listen on other addresses only?"
                )
            self._reached.add((member, *where))

    def _check_here(self, reason: str) -> None:
        """Raises StudyError, whose message begins with `reason`, if a machine of the fleet is not this one."""
        others = [member.name for member in self._members if member.identity != identity()]
        if others:
            raise StudyError(
                f"{reason}, but {others[0]} of the fleet is another machine; use servers that all machines reach (dsn, "
                "ssh), or remove the fleet"
            )
