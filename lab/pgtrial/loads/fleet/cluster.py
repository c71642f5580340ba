"""Connects the fleet to Ray: joins a Ray cluster, and starts agents on its machines.

Ray is imported only if a study asks for a fleet. Ray's own output is hidden, and its errors become messages of one
sentence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any

from pgtrial.loads.fleet import agent
from pgtrial.loads.fleet.joining import (
    check_listens,
    connect,
    first_sentence,
    import_ray,
    kept_quiet,
    no_cluster,
    resolved,
    token_of_its_own,
)
from pgtrial.loads.fleet.members import Caller, MachineLost, Member
from pgtrial.loads.fleet.scratch import scratch
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.fleet import LOCAL, FleetSection
from pgtrial.model.units import plural

_PLACES_S = 60.0
_THREADS = 32
"""The number of calls that an agent handles at the same time. It is more than one, since some calls wait for lines of
an engine's output."""


@contextmanager
def joined(section: FleetSection) -> Iterator[RayCluster]:
    """Joins the Ray cluster that a study names, and reserves a CPU for each machine of the fleet. Raises StudyError if
    the cluster cannot be joined or has too few CPUs."""
    ray = import_ray()
    section = section.model_copy(update={"address": resolved(section.address)})
    check_listens(section.address)
    with ExitStack() as stack:
        folder = None
        if section.address == LOCAL:
            folder = stack.enter_context(scratch())
            stack.enter_context(token_of_its_own())
        with kept_quiet():
            connect(ray, section, folder)
        try:
            yield RayCluster(ray, section)
        finally:
            with kept_quiet():
                ray.shutdown()


class RayCluster:
    """A joined Ray cluster with reserved CPUs (bundles, as Ray calls them), one for each machine of the fleet. The
    fleet has as many machines as the study asks for or, if it names no number, all machines of the cluster. Raises
    StudyError if they are not available."""

    def __init__(self, ray: Any, section: FleetSection):
        # Ray's submodules can be imported only after Ray itself
        from ray.util import placement_group, remove_placement_group  # noqa: PLC0415

        self._ray = ray
        # Ray sends the code of the agent along with it, so that the machines of the cluster need no pgtrial
        ray.cloudpickle.register_pickle_by_value(agent)
        self.size = _size(section, ray.nodes())
        strategy = "PACK" if section.share_machines else "STRICT_SPREAD"
        self._group = placement_group([{"CPU": 1}] * self.size, strategy=strategy)
        try:
            there = self._group.wait(timeout_seconds=_PLACES_S)
        except Exception as error:  # noqa: BLE001  (what Ray raises here has no other type)
            raise no_cluster(section.address, first_sentence(error)) from None
        if not there:
            remove_placement_group(self._group)
            raise StudyError(
                f"the Ray cluster at {section.address} has no free CPU on {plural(self.size, 'machine')} within "
                f"{_PLACES_S:.0f}s: other jobs use the CPUs (`ray status` shows them); end those jobs, or "
                f"{marks.set_key('fleet', 'machines')} lower"
            )
        self._handles: dict[Member, Any] = {}

    def hire(self, bundles: Sequence[int], patience_s: float) -> list[Member]:
        """Starts an agent (the object that starts engines) at each of these reserved CPUs, and returns the machines.
        Raises MachineLost if an agent does not start in time."""
        deadline = time.monotonic() + patience_s
        handles = {bundle: self._start(bundle) for bundle in bundles}
        described = {bundle: self._caller(handle)("describe") for bundle, handle in handles.items()}
        members = []
        for bundle, coming in described.items():
            try:
                about = coming.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                raise MachineLost(f"no machine of the Ray cluster had a free CPU within {patience_s:.0f}s") from None
            member = Member(bundle, self._address(bundle), **about, call=self._caller(handles[bundle]))
            self._handles[member] = handles[bundle]
            members.append(member)
        return members

    def share(self, content: bytes) -> Any:
        """Returns a reference to the content in Ray's object store, which transfers it to each machine only once."""
        return self._ray.put(content)

    def dismiss(self, member: Member) -> None:
        """Kills the agent of a machine. The watchdog, a process beside the agent, then ends the engines on that machine
        and removes the agent's files."""
        self._ray.kill(self._handles.pop(member))

    def _start(self, bundle: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: PLC0415

        where = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)
        options = {"num_cpus": 1, "max_concurrency": _THREADS, "max_restarts": 0, "scheduling_strategy": where}
        return self._ray.remote(agent.Agent).options(**options).remote()

    def _address(self, bundle: int) -> str:
        from ray.util import placement_group_table  # noqa: PLC0415

        node = placement_group_table(self._group)["bundles_to_node_id"].get(bundle)
        return next((machine["NodeManagerAddress"] for machine in self._ray.nodes() if machine["NodeID"] == node), "")

    def _caller(self, handle: Any) -> Caller:
        broken = (self._ray.exceptions.RayError, ConnectionError)

        def call(method: str, *arguments: Any) -> Future[Any]:
            answered: Future[Any] = Future()

            def pass_on(answer: Future[Any]) -> None:
                error = answer.exception()
                if error is None:
                    answered.set_result(answer.result())
                else:
                    answered.set_exception(MachineLost(_why(error)))

            try:
                getattr(handle, method).remote(*arguments).future().add_done_callback(pass_on)
            except broken as error:
                answered.set_exception(MachineLost(_why(error)))
            return answered

        return call


def _size(section: FleetSection, nodes: Sequence[dict[str, Any]]) -> int:
    """Returns the number of engines of the study's fleet: the number that the study asks for, or else one for each
    machine of the cluster. Raises StudyError if the cluster is too small."""
    cpus = [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]
    usable = sum(number >= 1 for number in cpus)
    wanted = section.machines or max(1, usable)
    if wanted > (sum(cpus) if section.share_machines else usable):
        there = (
            f"{plural(usable, 'machine')} with {sum(cpus)} CPUs"
            if section.share_machines
            else plural(usable, "machine")
        )
        shared = marks.key("fleet", "share_machines", True)
        cure = "" if section.share_machines else f", or {shared} for several engines on one machine"
        raise StudyError(
            f"{marks.key('fleet')} asks for {plural(wanted, 'machine')}, and the Ray cluster at {section.address} has "
            f"{there}; add machines, or {marks.set_key('fleet', 'machines', max(1, usable))}{cure}"
        )
    return wanted


def _why(error: BaseException) -> str:
    """Returns in a few words why a machine was lost, in place of Ray's long error messages."""
    words, kind = str(error), type(error).__name__
    if "node" in words and ("died" in words or "terminated" in words or "dead" in words):
        return "its node has left the Ray cluster"
    if kind == "ActorUnavailableError":
        return "its connection broke"
    if kind == "ActorDiedError":
        return "Ray's process on it ended"
    return first_sentence(error)
