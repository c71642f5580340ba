"""Ray, and nothing but Ray: joining a cluster, one place on each of so many machines, an agent at each place.

Ray is imported only by who asks for a fleet. What it prints is kept off the terminal: its errors become sentences.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pgtrial.errors import StudyError
from pgtrial.fleet import agent
from pgtrial.fleet.members import Caller, MachineLost, Member
from pgtrial.study.fleet import AUTO, LOCAL, FleetSection

_CONNECT_S = 5.0
_PLACES_S = 60.0
_THREADS = 4
"""Calls that an agent answers at once: one waits for lines."""

EXTRA = "pip install 'pgtrial[ray]'"


@contextmanager
def joined(section: FleetSection) -> Iterator[RayCluster]:
    """The cluster that a study names, with a place on each machine. Raises StudyError."""
    ray = _import_ray()
    section = section.model_copy(update={"address": _resolved(section.address)})
    _check_listens(section.address)
    scratch = tempfile.mkdtemp(prefix="pgt-ray-", dir="/tmp" if os.path.isdir("/tmp") else None)
    try:
        with _kept_quiet():
            _connect(ray, section, scratch)
        try:
            yield RayCluster(ray, section)
        finally:
            with _kept_quiet():
                ray.shutdown()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class RayCluster:
    """Places on machines of a Ray cluster: as many machines as the study asks for, or all. Raises StudyError."""

    def __init__(self, ray: Any, section: FleetSection):
        # submodules of Ray are there once it is imported
        from ray.util import placement_group, remove_placement_group  # noqa: PLC0415

        self._ray = ray
        # agents travel by value: a machine of the cluster needs no pgtrial
        ray.cloudpickle.register_pickle_by_value(agent)
        self.size = _size(section, ray.nodes())
        strategy = "PACK" if section.pack else "STRICT_SPREAD"
        self._group = placement_group([{"CPU": 1}] * self.size, strategy=strategy)
        try:
            there = self._group.wait(timeout_seconds=_PLACES_S)
        except Exception as error:  # noqa: BLE001  (what Ray raises here has no other type)
            raise _no_cluster(section.address, _first_sentence(error)) from None
        if not there:
            remove_placement_group(self._group)
            raise StudyError(
                f"the Ray cluster at {section.address} has no free CPU on {_machines(self.size)} within "
                f"{_PLACES_S:.0f}s: other work has them (`ray status` tells); end that, or set [fleet] machines lower"
            )
        self._handles: dict[Member, Any] = {}

    def hire(self, places: Sequence[int], patience_s: float = _PLACES_S) -> list[Member]:
        """The machines of these places, each with a new agent. Raises MachineLost for one that does not come."""
        deadline = time.monotonic() + patience_s
        handles = {place: self._start(place) for place in places}
        described = {place: self._caller(handle)("describe") for place, handle in handles.items()}
        members = []
        for place, coming in described.items():
            try:
                about = coming.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                raise MachineLost(f"no machine of the cluster is free for it within {patience_s:.0f}s") from None
            member = Member(place, self._address(place), **about, call=self._caller(handles[place]))
            self._handles[member] = handles[place]
            members.append(member)
        return members

    def share(self, content: bytes) -> Any:
        """A reference into Ray's object store, which carries it to each machine once."""
        return self._ray.put(content)

    def dismiss(self, member: Member) -> None:
        """End the agent by force; what it leaves is removed on its machine."""
        self._ray.kill(self._handles.pop(member))

    def _start(self, place: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: PLC0415

        where = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=place)
        options = {"num_cpus": 1, "max_concurrency": _THREADS, "max_restarts": 0, "scheduling_strategy": where}
        return self._ray.remote(agent.Agent).options(**options).remote()

    def _address(self, place: int) -> str:
        from ray.util import placement_group_table  # noqa: PLC0415

        node = placement_group_table(self._group)["bundles_to_node_id"].get(place)
        return next((each["NodeManagerAddress"] for each in self._ray.nodes() if each["NodeID"] == node), "")

    def _caller(self, handle: Any) -> Caller:
        broken = (self._ray.exceptions.RayError, ConnectionError)

        def call(method: str, *arguments: Any) -> Future[Any]:
            told: Future[Any] = Future()

            def tell(answer: Future[Any]) -> None:
                error = answer.exception()
                if error is None:
                    told.set_result(answer.result())
                else:
                    told.set_exception(MachineLost(_why(error)))

            try:
                getattr(handle, method).remote(*arguments).future().add_done_callback(tell)
            except broken as error:
                told.set_exception(MachineLost(_why(error)))
            return told

        return call


def _import_ray() -> Any:
    former = sys.excepthook
    try:
        import ray  # noqa: PLC0415
    except ImportError:
        raise StudyError(f"a fleet needs ray, which is not installed; install it with: {EXTRA}") from None
    finally:
        sys.excepthook = former
    return ray


def _resolved(address: str) -> str:
    """Where the cluster is that this machine belongs to, as Ray's own tools find it. Raises StudyError."""
    if address != AUTO:
        return address
    # Ray's own "auto" takes any cluster whose processes it finds here; in Ray 2.60 actors of such drivers are cancelled
    noted = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    with suppress(OSError):
        if found := os.environ.get("RAY_ADDRESS") or noted.read_text().strip():
            return found
    raise StudyError(
        "this machine belongs to no Ray cluster that runs; start one (`ray start --head`), name another by "
        '--fleet ray://HOST:10001, or take "local" for one made for the run'
    )


def _check_listens(address: str) -> None:
    """Raise StudyError where nobody listens: Ray itself would try for a minute, and end the process."""
    if address == LOCAL:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from None


def _connect(ray: Any, section: FleetSection, scratch: str) -> None:
    address = section.address
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    # no option keeps Ray from printing pages about a node that is lost, which is told in one sentence here
    vars(ray._private.worker)["print_to_stdstream"] = _unheard
    try:
        if address == LOCAL:
            cpus = max(section.machines or 1, os.cpu_count() or 1)
            ray.init(address=LOCAL, num_cpus=cpus, include_dashboard=False, _temp_dir=scratch, **quiet)
        else:
            ray.init(address=address, **quiet)
    except ImportError:
        raise StudyError(f"a cluster at ray:// needs Ray's client, which is not installed; {EXTRA} does so") from None
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, TimeoutError, ValueError) as error:
        raise _no_cluster(address, _first_sentence(error)) from None


def _unheard(*arguments: Any, **options: Any) -> None:
    """Take a message, and let it be."""


def _no_cluster(address: str, why: str) -> StudyError:
    return StudyError(
        f"there is no Ray cluster at {address}: {why}; check that it runs (`ray status`), its address, and that no "
        "firewall is between"
    )


def _size(section: FleetSection, nodes: Sequence[dict[str, Any]]) -> int:
    """How many places there shall be. Raises StudyError if the cluster is too small for that."""
    cpus = [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]
    usable = sum(number >= 1 for number in cpus)
    wanted = section.machines or max(1, usable)
    if wanted > (sum(cpus) if section.pack else usable):
        there = f"{_machines(usable)} with {sum(cpus)} CPUs" if section.pack else _machines(usable)
        cure = "" if section.pack else ", or pack = true for several engines on one machine"
        raise StudyError(
            f"[fleet] asks for {_machines(wanted)}, and the Ray cluster at {section.address} has {there}; add "
            f"machines, or set machines = {max(1, usable)}{cure}"
        )
    return wanted


def _machines(number: int) -> str:
    return f"{number} machine{'s' if number != 1 else ''}"


def _why(error: BaseException) -> str:
    """Why a machine is lost, without the pages that Ray writes about it."""
    said, kind = str(error), type(error).__name__
    if "node" in said and ("died" in said or "terminated" in said or "dead" in said):
        return "its node has left the Ray cluster"
    if kind == "ActorUnavailableError":
        return "its connection broke"
    if kind == "ActorDiedError":
        return "Ray's process on it ended"
    return _first_sentence(error)


def _first_sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


@contextmanager
def _kept_quiet() -> Iterator[None]:
    """Ray's warnings are hidden, and the signal handler that it sets is replaced by the lab's own again."""
    main = threading.current_thread() is threading.main_thread()
    former = signal.getsignal(signal.SIGTERM) if main else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, former)
