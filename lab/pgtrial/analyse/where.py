"""Where each piece of a study ran: the lab, the servers, the fleet. Pure functions of the plan, trials and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Literal

from pgtrial.analyse.machines import machine_parts
from pgtrial.analyse.ways import machine_ways
from pgtrial.analyse.where_records import ServerPlace, WhereItRan
from pgtrial.store.machines import ServerHost
from pgtrial.store.records import Facts, Plan, Trial

THIS_MACHINE: Literal["this machine"] = "this machine"
"""Label of the lab's own machine, and of a connection that stays on it."""


def where_it_ran(plan: Plan, trials: Sequence[Trial], facts: Mapping[str, Facts]) -> WhereItRan | None:
    """Which machine did what; None where the lab's machine did everything."""
    servers = [_server(plan, arm, trials, facts.get(arm)) for arm in plan.arms]
    machines = machine_parts(trials)
    if not machines and all(_is_here(server) for server in servers):
        return None
    labs = [found for arm in plan.arms if (found := _system(facts.get(arm), "client"))]
    return WhereItRan(
        lab=labs[0] if labs else None,
        load="fleet" if machines else "lab",
        servers=servers,
        machines=machines,
        ways=machine_ways(trials, plan.arms),
    )


def _is_here(server: ServerPlace) -> bool:
    return server.by == THIS_MACHINE if server.with_lab is None else server.with_lab


def _server(plan: Plan, arm: str, trials: Sequence[Trial], facts: Facts | None) -> ServerPlace:
    connection = _fact(facts, "client", "connection")
    with_lab = None if connection is None else connection == THIS_MACHINE
    # plans that are older than this record say nothing of a given server's host
    elsewhere = ServerHost(label="a given server", by="dsn")
    hosts = plan.hosts.get(arm, [elsewhere if with_lab is False else ServerHost(label=THIS_MACHINE, by=THIS_MACHINE)])
    times = [t.round_trip_us for t in trials if t.arm == arm and t.round_trip_us is not None]
    addresses = [host.address for host in hosts if host.address is not None]
    return ServerPlace(
        arm=arm,
        host=", ".join(host.label for host in hosts),
        by=hosts[0].by,
        address=", ".join(addresses) or None,
        looked_at=hosts[0].looked_at,
        system=_system(facts, "os"),
        with_lab=with_lab,
        path=_fact(facts, "network", "path"),
        interface=_fact(facts, "network", "interface"),
        mtu=_fact(facts, "network", "mtu"),
        tls=_fact(facts, "network", "tls"),
        trials=len(times),
        round_trip_us=median(times) if times else None,
        round_trip_lowest_us=min(times, default=None),
        round_trip_highest_us=max(times, default=None),
        bandwidth_mb_s=_fact(facts, "probes", "bandwidth_mb_s"),
        clock_offset_us=_fact(facts, "probes", "clock_offset_us"),
        clock_offset_error_us=_fact(facts, "probes", "clock_offset_error_us"),
    )


def _system(facts: Facts | None, group: str) -> str | None:
    """`Debian GNU/Linux 12 (bookworm), 6.1.0-26-amd64`."""
    name = _fact(facts, group, "distribution") or _fact(facts, group, "system")
    return ", ".join(part for part in (name, _fact(facts, group, "kernel")) if part) or None


def _fact(facts: Facts | None, group: str, name: str) -> Any:
    return None if facts is None else facts.facts.get(group, {}).get(name)
