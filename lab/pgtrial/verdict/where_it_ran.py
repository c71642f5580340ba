"""Describes on which machines pgtrial, the servers and the fleet (the machines that make the load together) ran, and
what each machine of the fleet contributed to the load."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean, median
from typing import Any, Literal

from pgtrial.model.records.facts import Facts
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.records.where_it_ran import MachinePart, MachineWay, ServerHost, ServerLocation, WhereItRan
from pgtrial.statistics.describe import DEVIATIONS, robust_sd

THIS_MACHINE: Literal["this machine"] = "this machine"
"""The name in results for the machine on which pgtrial runs, and for a connection that does not leave this machine."""


def where_it_ran(plan: Plan, trials: Sequence[Trial], facts: Mapping[str, Facts]) -> WhereItRan | None:
    """Returns on which machines pgtrial, the load and the servers ran. Returns None if everything ran on the machine of
    pgtrial."""
    servers = [_server(plan, arm, trials, facts.get(arm)) for arm in plan.arms]
    machines = machine_parts(trials)
    if not machines and all(_is_here(server) for server in servers):
        return None
    labs = [system for arm in plan.arms if (system := _system(facts.get(arm), "client"))]
    return WhereItRan(
        lab=labs[0] if labs else None,
        load="fleet" if machines else "lab",
        servers=servers,
        machines=machines,
        ways=machine_ways(trials, plan.arms),
    )


_PROBES = ("bandwidth_mb_s", "clock_offset_us", "clock_offset_error_us")


def _is_here(server: ServerLocation) -> bool:
    return server.by == THIS_MACHINE if server.with_lab is None else server.with_lab


def _server(plan: Plan, arm: str, trials: Sequence[Trial], facts: Facts | None) -> ServerLocation:
    connection = _fact(facts, "client", "connection")
    with_lab = None if connection is None else connection == THIS_MACHINE
    # older versions of pgtrial did not store the hosts of given servers in the plan
    elsewhere = ServerHost(label="a given server", by="dsn")
    hosts = plan.hosts.get(arm, [elsewhere if with_lab is False else ServerHost(label=THIS_MACHINE, by=THIS_MACHINE)])
    times = [t.round_trip_us for t in trials if t.arm == arm and t.round_trip_us is not None]
    addresses = [host.address for host in hosts if host.address is not None]
    return ServerLocation(
        arm=arm,
        host=", ".join(host.label for host in hosts),
        by=hosts[0].by,
        address=", ".join(addresses) or None,
        looked_at=hosts[0].looked_at,
        system=_system(facts, "os"),
        with_lab=with_lab,
        **{name: _fact(facts, "network", name) for name in ("path", "interface", "mtu", "tls")},
        trials=len(times),
        round_trip_us=median(times) if times else None,
        round_trip_lowest_us=min(times, default=None),
        round_trip_highest_us=max(times, default=None),
        **{name: _fact(facts, "probes", name) for name in _PROBES},
    )


def _system(facts: Facts | None, group: str) -> str | None:
    """Returns the name of an operating system and its kernel, such as `Debian GNU/Linux 12 (bookworm),
    6.1.0-26-amd64`."""
    name = _fact(facts, group, "distribution") or _fact(facts, group, "system")
    return ", ".join(part for part in (name, _fact(facts, group, "kernel")) if part) or None


def _fact(facts: Facts | None, group: str, name: str) -> Any:
    return None if facts is None else facts.facts.get(group, {}).get(name)


_FLOOR = 0.10
"""A machine is never called slow if the other machines are faster by less than this share: 0.1 means 10%."""

_FURTHER = 1.5
NOTICEABLE_US = 50.0
"""If the round trips of two machines differ by less than this, in microseconds, the difference counts as noise.
Machines that also do other work have this much noise."""


def machine_ways(trials: Sequence[Trial], arms: Iterable[str]) -> list[MachineWay]:
    """Returns the round-trip times between each machine of the fleet, which makes the load, and the server of each arm,
    where they are known."""
    times = defaultdict(list)
    for trial in trials:
        for share in trial.machines:
            if share.round_trip_us is not None:
                times[share.machine, trial.arm].append(share.round_trip_us)
    return [
        MachineWay(
            machine=machine,
            arm=arm,
            trials=len(trips),
            round_trip_us=median(trips),
            round_trip_lowest_us=min(trips),
            round_trip_highest_us=max(trips),
        )
        for machine, arm in product(_machines(trials), arms)
        if (trips := times[machine, arm])
    ]


def further_machines(ways: Sequence[MachineWay], arm: str) -> dict[str, float]:
    """Returns the machines of the fleet that are much further away from the arm's server than the other machines. The
    value of each is the median round trip of the other machines, in microseconds."""
    times = {way.machine: way.round_trip_us for way in ways if way.arm == arm}
    further = {}
    for machine, time in times.items():
        others = [other for name, other in times.items() if name != machine]
        if others and time > _FURTHER * (usual := median(others)) and time - usual > NOTICEABLE_US:
            further[machine] = usual
    return further


def loads_round_trip(trial: Trial) -> float | None:
    """Returns the round-trip time from the load to the server in microseconds; None if no machine of the fleet reported
    it.

    It is the mean over the fleet's machines, since all of them have equal shares of the clients.
    """
    known = [share.round_trip_us for share in trial.machines if share.round_trip_us is not None]
    return fmean(known) if known else None


def _machines(trials: Iterable[Trial]) -> list[str]:
    """Returns the machines of the fleet, in the order in which they first took part."""
    return list(dict.fromkeys(share.machine for trial in trials for share in trial.machines))


def machine_parts(trials: Sequence[Trial]) -> list[MachinePart]:
    """Returns what each machine of the fleet contributed to the load. The result is empty if the machine on which
    pgtrial runs made the load."""
    names = _machines(trials)
    logs = {name: median(logs) for name in names if (logs := _relative_speeds(trials, name))}
    return [_part(name, trials, logs) for name in names]


def lost_machines(trial: Trial) -> list[str]:
    """Returns the machines of a trial that were lost before their load engine ended. If no engine ended, the trial was
    stopped for another reason, no machine counts as lost, and the result is empty."""
    gone = [share.machine for share in trial.machines if share.status is None]
    return gone if len(gone) < len(trial.machines) else []


def slower_by(logs: Mapping[str, float], machine: str) -> float | None:
    """Returns by which share a machine is slower than the median of the other machines; None if it is within the
    tolerance.

    `logs` has the logarithm of each machine's speed. The tolerance is `DEVIATIONS` robust standard deviations, and at
    least a factor of 1 + `_FLOOR`.
    """
    others = [value for name, value in logs.items() if name != machine]
    if machine not in logs or not others:
        return None
    usual = median(others)
    tolerated = max(DEVIATIONS * robust_sd(others, usual), math.log1p(_FLOOR))
    return -math.expm1(logs[machine] - usual) if usual - logs[machine] > tolerated else None


def _relative_speeds(trials: Iterable[Trial], machine: str) -> list[float]:
    """Returns, for each trial, the logarithm of a machine's throughput per client, minus the median over all machines
    of the trial."""
    speeds = []
    for trial in trials:
        logs = {
            share.machine: math.log(share.tps / share.clients)
            for share in trial.machines
            if share.status is not None and share.tps and share.clients
        }
        if machine in logs and len(logs) > 1:
            speeds.append(logs[machine] - median(logs.values()))
    return speeds


def _part(machine: str, trials: Sequence[Trial], logs: Mapping[str, float]) -> MachinePart:
    took_part = [trial for trial in trials if any(share.machine == machine for share in trial.machines)]
    shares = [share for trial in took_part for share in trial.machines if share.machine == machine]
    ended = [share for share in shares if share.status is not None]
    transactions = sum(_known(share.transactions for share in shares))
    of_all = sum(_known(share.transactions for trial in took_part for share in trial.machines))
    of_ended = sum(_known(share.transactions for share in ended))
    cpu_s = sum(_known(time for share in ended for time in (share.cpu_user_s, share.cpu_system_s)))
    speeds = _known(share.tps for share in ended)
    offsets = _known(share.clock_offset_us for share in shares)
    return MachinePart(
        machine=machine,
        address=shares[0].address or None,
        with_lab=shares[-1].with_lab,
        trials=len(shares),
        lost=sum(machine in lost_machines(trial) for trial in took_part),
        clients=max((share.clients for share in shares if share.clients is not None), default=None),
        transactions=round(transactions),
        share=transactions / of_all if of_all else None,
        tps=median(speeds) if speeds else None,
        speed=math.exp(logs[machine]) if machine in logs else None,
        slower_by=slower_by(logs, machine),
        cpu_per_transaction_us=1e6 * cpu_s / of_ended if of_ended and cpu_s else None,
        busiest_thread_share=max(_known(share.busiest_thread_share for share in ended), default=None),
        lag_p99_us=max(_known(share.lag_p99_us for share in ended), default=None),
        start_skew_us=max(_known(share.start_skew_us for share in shares), key=abs, default=None),
        clock_offset_us=median(offsets) if offsets else None,
        offset_error_us=max(_known(share.offset_error_us for share in shares), default=None),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
