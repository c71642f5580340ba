"""Decides whether the trials of a load point alternate in slices, and how long the slices are. If they cannot
alternate, says why. Both are decided before the plan is made. `trial/longer_slices.py` has the one exception: slices
that turn out to be too short in the first warm-up at a load point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import psutil

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Interleaving
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Given, Made, MadeBySsh, MadeHere, Server, parts_of
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.units import setting_bytes
from pgtrial.servers.connection_errors import address_of, with_defaults

SLICE_S = 0.25
"""The length of a slice in seconds, unless the study gives another length. It is shorter than most disturbances of a
machine, and many times as long as a usual transaction. docs/method.md explains what slices are for."""

_MEMORY_SHARE = 0.6
"""The largest share of the machine's memory that the shared buffers of all servers may take together."""

_ROUNDING = 1e-9


def interleaved(design: Design) -> Design:
    """Returns the design of a study that begins now, completed by how its trials alternate. This is decided once,
    before the plan is made, since it depends on the memory of this machine.

    Raises StudyError if the study asks for slices that are impossible.
    """
    return replace(design, interleaving=_interleaving_of(design))


def _interleaving_of(design: Design) -> Interleaving | None:
    """Returns how the trials of a load point alternate; None if each trial runs alone."""
    asked = design.load.interleave
    if asked == "off":
        return None
    obstacle = why_not(design)
    if obstacle is not None:
        if asked == "auto":
            return None
        raise StudyError(f'{marks.key("load", "interleave")}: {obstacle}; leave it out, or write "off"')
    slice_s = SLICE_S if asked == "auto" else asked
    warmup_s, duration_s = design.load.given_s
    lengths = {"duration": duration_s}
    if any(map(is_sysbench, design.load.workload)):  # sysbench's --warmup-time takes whole seconds
        lengths["warmup"] = warmup_s
    for name, length_s in lengths.items():
        if length_s is not None and not is_whole(length_s, slice_s):
            nearest = length_s / max(1, round(length_s / slice_s))
            raise StudyError(
                f"{marks.key('load', 'interleave')}: the {name} of {length_s:g}s is not a whole number of slices of "
                f'{slice_s * 1000:g}ms; write for example "{nearest * 1000:.6g}ms"'
            )
    return Interleaving(slice_s=slice_s, shared_server=bool(design.possible_sessions))


def is_whole(length_s: float, slice_s: float) -> bool:
    """True if a length is a whole number of slices."""
    slices = length_s / slice_s
    return abs(slices - round(slices)) <= _ROUNDING * slices


def why_not(design: Design) -> str | None:
    """Returns the reason why the arms' servers cannot run at the same time, or why their loads cannot alternate; None
    if they can."""
    return next(_obstacles(design), None)


def _obstacles(design: Design) -> Iterator[str]:
    load = design.load
    if load.kind.why_no_turns is not None:
        yield load.kind.why_no_turns
    if load.on_server_loss != "fail":
        yield "the time for which a lost server is unavailable has to count"
    if any(metric.each_second is not None for metric in design.spec.metrics.values()):
        yield "a metric is read in each second, which would have slices of several arms"
    if not design.possible_sessions:
        yield from _of_servers(design.servers)


def _of_servers(servers: dict[str, Server]) -> Iterator[str]:
    made = {arm: server for arm, server in servers.items() if isinstance(server, Made)}
    for arm, server in made.items():
        if server.of_the_kernel:
            yield f"the arm {arm} changes the state of the whole machine"
        if server.storage is not None and any(volume and volume.fs for volume in (server.storage, server.storage.wal)):
            yield f"the arm {arm} has volumes that only one arm can use at a time"
    here = [server for server in made.values() if isinstance(server, MadeHere)]
    buffers = sum(setting_bytes(server.settings.get("shared_buffers")) or 0 for server in here)
    memory = psutil.virtual_memory().total
    if buffers > _MEMORY_SHARE * memory:
        yield (
            f"shared_buffers of all arms are {buffers / 1e9:.1f} GB together, and the machine has {memory / 1e9:.1f} GB"
        )
    exclusive = list(_exclusive(servers))
    for phrase, number in Counter(phrase for _, phrase in exclusive).items():
        if number > 1:
            yield f"the arms {' and '.join(arm for arm, used in exclusive if used == phrase)} {phrase}"


def _exclusive(servers: dict[str, Server]) -> Iterator[tuple[str, str]]:
    """Yields each arm with a phrase for a resource that two arms cannot use at the same time: the fixed port on which
    the arm's server listens, or a given server."""
    for arm, server in servers.items():
        match server:
            case MadeBySsh(ssh=login, port=port):
                yield arm, f"listen on one port, {port} of {login.rpartition('@')[2]}"
            case MadeHere(connect="tcp", settings=settings) if "port" in settings:
                yield arm, f"listen on one port, {settings['port']}"
            case Given(dsn=dsns):
                for dsn in dsns:
                    parts = parts_of(dsn)
                    parts = {"host": parts["service"], **parts} if "service" in parts else with_defaults(parts)
                    parts = {**parts, "host": parts["hostaddr"]} if "hostaddr" in parts else parts
                    yield arm, f"are one given server, {address_of(parts)}"
