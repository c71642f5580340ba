"""Whether the trials of a load point alternate in slices, which follows from the study; and why, where they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import psutil

from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Interleaving
from pgtrial.model.study.servers import Given, Made, MadeBySsh, MadeHere, Server, parts_of
from pgtrial.model.study.setup import SESSION_SETTINGS
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.units import setting_bytes

SLICE_S = 0.25
"""Length of a slice unless the study says another: shorter than most of what disturbs a machine, and many times as long
as a transaction (docs/method.md)."""

_STATES = ("thp", "sysctl", "governor", "io_scheduler")
"""What a set-up asks of a whole machine."""

_MEMORY_SHARE = 0.6
"""Of the machine's memory, for the shared buffers of all servers."""

_ROUNDING = 1e-9


def interleaving_of(spec: StudySpec) -> Interleaving | None:
    """How the trials of a load point alternate; None: each runs by itself.

    Raises StudyError if the study asks for slices that are impossible.
    """
    asked = spec.load.interleave
    if asked == "off":
        return None
    obstacle = why_not(spec)
    if obstacle is not None:
        if asked == "auto":
            return None
        raise StudyError(f'[load] interleave: {obstacle}; leave it out, or write "off"')
    slice_s = SLICE_S if asked == "auto" else asked
    lengths = {"duration": spec.load.duration}
    if any(map(is_sysbench, spec.load.workload)):  # sysbench's --warmup-time takes whole seconds
        lengths["warmup"] = spec.load.warmup
    for name, length_s in lengths.items():
        if not is_whole(length_s, slice_s):
            nearest = length_s / max(1, round(length_s / slice_s))
            raise StudyError(
                f"[load] interleave: the {name} of {length_s:g}s is not a whole number of slices of "
                f'{slice_s * 1000:g}ms; write for example "{nearest * 1000:.6g}ms"'
            )
    return Interleaving(slice_s=slice_s, shared_server=sessions_of(spec) is not None)


def is_whole(length_s: float, slice_s: float) -> bool:
    """Whether a length is a whole number of slices."""
    slices = length_s / slice_s
    return abs(slices - round(slices)) <= _ROUNDING * slices


def sessions_of(spec: StudySpec) -> dict[str, dict[str, str]] | None:
    """By arm, the settings of its sessions, where the arms differ in nothing else; None: each needs a server.

    Identical arms need one each: what differs between two servers that are alike is then what the study is to show.
    """
    servers = {arm: spec.resolved(arm) for arm in spec.arms}
    base = servers[spec.baseline]
    alike = all(replace(server, settings={}) == replace(base, settings={}) for server in servers.values())
    several = isinstance(base, Given) and len(base.dsn) > 1
    if not spec.load.share_server or not alike or several or base.setup_sql:
        return None
    names = {name for server in servers.values() for name in server.settings}
    differing = {name for name in names if len({server.settings.get(name) for server in servers.values()}) > 1}
    if not differing or not {name.lower() for name in differing} <= SESSION_SETTINGS:
        return None
    return {
        arm: {name: value for name, value in server.settings.items() if name in differing}
        for arm, server in servers.items()
    }


def why_not(spec: StudySpec) -> str | None:
    """Why the servers of all arms cannot be up side by side, or their loads not alternate; None: they can."""
    return next(_obstacles(spec), None)


def _obstacles(spec: StudySpec) -> Iterator[str]:
    load = spec.load
    if load.runs_tasks:
        yield "tasks run to their end"
    if load.on_server_loss != "fail":
        yield "the time without service of a server that is lost is to count"
    if sessions_of(spec) is None:
        yield from _of_servers({arm: spec.resolved(arm) for arm in spec.arms})


def _of_servers(servers: dict[str, Server]) -> Iterator[str]:
    made = {arm: server for arm, server in servers.items() if isinstance(server, Made)}
    for arm, server in made.items():
        if any(getattr(server, name, None) for name in _STATES):
            yield f"the arm {arm} asks for a state of the whole machine"
        if server.storage is not None and any(each and each.fs for each in (server.storage, server.storage.wal)):
            yield f"the arm {arm} has volumes that arms use in turn"
    here = [server for server in made.values() if isinstance(server, MadeHere)]
    buffers = sum(setting_bytes(server.settings.get("shared_buffers")) or 0 for server in here)
    memory = psutil.virtual_memory().total
    if buffers > _MEMORY_SHARE * memory:
        yield (
            f"shared_buffers of all arms are {buffers / 1e9:.1f} GB together, and the machine has {memory / 1e9:.1f} GB"
        )
    for port, arms in _repeated(_ports(servers)):
        yield f"the arms {arms} listen on one port, {port}"
    for address, arms in _repeated(_given(servers)):
        yield f"the arms {arms} are one given server, {address}"


def _ports(servers: dict[str, Server]) -> Iterator[tuple[str, str]]:
    """Arm, and the address on which its server listens, where that is fixed."""
    for arm, server in servers.items():
        match server:
            case MadeBySsh(ssh=login, port=port):
                yield arm, f"{port} of {login.rpartition('@')[2]}"
            case MadeHere(connect="tcp", settings=settings) if "port" in settings:
                yield arm, str(settings["port"])


def _given(servers: dict[str, Server]) -> Iterator[tuple[str, str]]:
    """Arm, and where its server is, as far as its connection string says."""
    for arm, server in servers.items():
        for dsn in server.dsn if isinstance(server, Given) else ():
            parts = parts_of(dsn)
            address = parts.get("hostaddr") or parts.get("host") or parts.get("service") or dsn
            yield arm, f"{address}:{parts.get('port') or 5432}"


def _repeated(places: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each place that several arms have, with their names."""
    found = list(places)
    for place, number in Counter(place for _, place in found).items():
        if number > 1:
            yield place, " and ".join(arm for arm, own in found if own == place)
