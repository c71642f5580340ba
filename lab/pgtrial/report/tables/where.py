"""The tables about what was compared and on which machines: the facts about the arms, the machine on which each part of
the study ran, the network paths to the servers, and the fleet (the machines that make the load together)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pgtrial.model.records.where_it_ran import MachinePart, ServerLocation, WhereItRan
from pgtrial.model.study.fleet import LOCAL
from pgtrial.model.units import plural
from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE, Column, Table, by_position, number, range_text
from pgtrial.verdict.where_it_ran import further_machines

_Facts = Mapping[str, Mapping[str, Any]]
"""The facts of an arm (its settings and other properties), by group and name."""

_NOT_COMPARED = ("probes", "sources", "answers")
"""Groups of facts that are not compared here. Some of them differ each time they are collected. The others describe an
arm relative to the baseline, and `scripts.py` shows them."""

_MOST_UNFOLDED = 20


def facts_tables(data: StudyData) -> list[Table[Sequence[str]]]:
    """Returns first a table of the facts (settings and other properties) in which the arms differ, side by side, then a
    table of what was measured once for each arm, and then, for each group, the facts that are the same in all arms."""
    known = {arm: data.facts[arm].facts for arm in data.plan.arms if arm in data.facts}
    declared = {key for keys in data.plan.declared.values() for key in keys}
    set_somewhere = {name for facts in known.values() for name in facts.get("settings", {})}
    differing: list[Sequence[str]] = []
    shared: dict[str, list[Sequence[str]]] = {}
    for group, name, values in _side_by_side(list(known.values())):
        alike = shared.setdefault(group, [])
        if group == "defaults" and name in set_somewhere:
            continue
        if len(set(values)) > 1:
            key = f"{group}.{name}"
            differing.append([key, *values, "yes" if key in declared else "no"])
        else:
            alike.append([name, values[0]])
    same = [
        Table(
            f"{group}: {plural(len(rows), 'fact')} the same in all arms",
            rows,
            by_position("fact", "value"),
            is_list=True,
        )
        for group, rows in shared.items()
    ]
    caption = "Facts that differ between the arms, and whether the study file declares this difference."
    if data.plan.deployments > 1:
        caption += (
            " If an arm has several deployments, the facts are those of one of them. The findings of the "
            "audit tell what differs between them."
        )
    compared = Table(caption, differing, by_position("fact", *known, "declared"), lambda row: True)
    probes = {arm: facts.get("probes", {}) for arm, facts in known.items()}
    names = dict.fromkeys(name for facts in probes.values() for name in facts)
    # these are always shown side by side, because two measurements are never exactly the same
    measured = Table(
        "Measured once for each arm, with noise: flushes of the volume, round trips.",
        [[name, *(_fact(facts.get(name)) for facts in probes.values())] for name in names],
        by_position("fact", *known),
    )
    return [compared, *([measured] if names else []), *same]


def facts_beside(one: StudyData, other: StudyData, names: tuple[str, str]) -> Table[Sequence[str]]:
    """Returns a table of the facts (settings and other properties) in which the baselines of two studies differ. It has
    no rows if the facts of one of the studies are not known."""
    known = [facts.facts for data in (one, other) if (facts := data.facts.get(data.plan.baseline)) and facts.facts]
    rows: list[Sequence[str]] = [
        [f"{group}.{name}", *values]
        for group, name, values in _side_by_side(known)
        # the digests of data are computed with a key of the machine, so they cannot be compared
        if group not in ("defaults", "data") and len(set(values)) > 1
    ]
    caption = f"Facts that differ between the baselines, {one.plan.baseline} and {other.plan.baseline}."
    return Table(caption, rows, by_position("fact", *names))


def _side_by_side(known: Sequence[_Facts]) -> Iterator[tuple[str, str, list[str]]]:
    """Yields the group, the name and the values (as text) of every fact, such as a setting or the processor, that is
    compared between arms."""
    for group in dict.fromkeys(group for facts in known for group in facts if group not in _NOT_COMPARED):
        for name in dict.fromkeys(name for facts in known for name in facts.get(group, {})):
            yield group, name, [_fact_text(facts, group, name) for facts in known]


def _fact_text(facts: _Facts, group: str, name: str) -> str:
    """Returns a fact of an arm, such as the value of a setting, as text. For a setting that is set in another arm only,
    it returns the default value."""
    known = facts.get(group, {})
    if group == "settings" and name not in known and name in (defaults := facts.get("defaults", {})):
        return f"{_fact(defaults[name])} (default)"
    return _fact(known.get(name))


def _fact(value: Any) -> str:
    match value:
        case None:
            return "unknown"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case int() | float():
            return str(value)
    return json.dumps(value, ensure_ascii=False)


def where_tables(data: StudyData) -> list[Table[Any]]:
    """Returns the tables of the machines on which pgtrial, the load and the servers ran, of the network paths, and of
    the fleet, the machines that made the load together. The result is empty if everything ran on the machine of
    pgtrial."""
    where = data.result.where
    if where is None:
        return []
    return [_pieces(data, where), _ways(where), *([_fleet_ways(where)] if where.ways else []), _fleet(where)]


def _pieces(data: StudyData, where: WhereItRan) -> Table[Sequence[str]]:
    return Table(
        "The parts of the study, and the machine on which each of them ran.",
        [
            ["the lab", "the lab's machine", where.lab or NONE, NONE],
            ["the load", _load(data, where), NONE if where.machines else where.lab or NONE, NONE],
            *(
                [f"the server of {server.arm}", _host(server), server.system or NONE, server.address or NONE]
                for server in where.servers
            ),
        ],
        by_position("piece", "machine", "system", "address"),
    )


def _load(data: StudyData, where: WhereItRan) -> str:
    if where.load == "lab":
        return "the lab's machine"
    number, fleet = len(where.machines), data.spec.fleet
    if fleet is not None and fleet.address == LOCAL:
        return f"the lab's machine, as a fleet of {plural(number, 'engine')}"
    return f"a fleet of {plural(number, 'machine')}" + (f" (Ray, {fleet.address})" if fleet is not None else "")


def _host(server: ServerLocation) -> str:
    if server.by == "this machine":
        return "the lab's machine"
    how = server.by if server.looked_at is None else f"{server.by}, looked at by ssh as {server.looked_at}"
    return f"{server.host} ({how})" + (", the lab's machine" if server.with_lab else "")


def _ways(where: WhereItRan) -> Table[ServerLocation]:
    caption = (
        "The way from the lab to each server. Round trips are of a SELECT 1, the median of 20 before each trial: their "
        "median over the trials, lowest and highest. The bandwidth was measured once, from the server to the lab, and "
        "so was the host's clock: how far it is ahead of the lab's, and how exactly that is known."
    )
    if where.ways:
        caption += " The load did not use these paths but those from the fleet, which the next table has."
    elif where.machines:
        caption += " The fleet has network paths of its own, which show in the speeds of its machines."
    return Table(
        caption,
        where.servers,
        [
            Column("arm", lambda server: server.arm),
            Column("path", lambda server: server.path or None),
            Column("interface", lambda server: server.interface or None),
            number("MTU", lambda server: server.mtu),
            Column("TLS", lambda server: server.tls or None),
            number("round trip, us", lambda server: server.round_trip_us, ",.0f"),
            number("lowest to highest", lambda way: range_text(way.round_trip_lowest_us, way.round_trip_highest_us)),
            number("trials", lambda server: server.trials),
            number("bandwidth, MB/s", lambda server: server.bandwidth_mb_s, ",.0f"),
            number("clock, ms", lambda server: _clock(server.clock_offset_us, server.clock_offset_error_us)),
        ],
    )


def _clock(offset_us: float | None, error_us: float | None) -> str | None:
    """Returns the offset of a clock with its error in milliseconds, such as `+12.40 ± 0.03`."""
    if offset_us is None:
        return None
    return f"{offset_us / 1000:+,.2f}" + ("" if error_us is None else f" ± {error_us / 1000:.2f}")


def _fleet_ways(where: WhereItRan) -> Table[MachinePart]:
    arms = [server.arm for server in where.servers]
    ways = {(way.machine, way.arm): way for way in where.ways}
    further = {(machine, arm) for arm in arms for machine in further_machines(where.ways, arm)}

    def way_to(arm: str, part: MachinePart) -> str | None:
        way = ways.get((part.machine, arm))
        if way is None:
            return None
        lowest_to_highest = range_text(way.round_trip_lowest_us, way.round_trip_highest_us)
        return f"{way.round_trip_us:,.0f} ({lowest_to_highest})" + (" (far)" if (part.machine, arm) in further else "")

    return Table(
        "The network path from each machine of the fleet, which made the load, to each server: round "
        "trips in microseconds by TCP connects, as the median of 7 before each trial. The table has the "
        "median, the lowest and the highest over the trials. A server that is much further from one "
        "machine than from the others is marked. The bandwidth was not measured.",
        where.machines,
        [
            Column("machine", lambda part: part.machine),
            Column("the lab's own", lambda part: part.with_lab, _fact),
            *(number(f"to {arm}", partial(way_to, arm)) for arm in arms),
        ],
        lambda part: any(part.machine == machine for machine, _ in further),
        folded=len(where.machines) > _MOST_UNFOLDED,
    )


def _fleet(where: WhereItRan) -> Table[MachinePart]:
    return Table(
        "The machines of the fleet, over all their trials. Speed: transactions per second and client, "
        "relative to the median machine of the same trial; a machine that is slower than the others by "
        "more than five robust standard deviations is marked. CPU time is that of the engine; the "
        "busiest thread and the lag are those of the highest trial. Start: the delay after the planned "
        "start, in the trial with the largest. Clock: the median difference from the clock of pgtrial's "
        "machine, and its largest error.",
        where.machines,
        [
            Column("machine", lambda part: part.machine + (" (slow)" if part.slower_by is not None else "")),
            Column("address", lambda part: part.address or None),
            number("trials", lambda part: part.trials),
            number("lost", lambda part: part.lost),
            number("clients", lambda part: part.clients, ","),
            number("transactions", lambda part: part.transactions, ","),
            number("share", lambda part: part.share, ".1%"),
            number("tps", lambda part: part.tps, ",.0f"),
            number("speed", lambda part: part.speed, ".2f"),
            number("CPU us a transaction", lambda part: part.cpu_per_transaction_us, ".2f"),
            number("busiest thread", lambda part: part.busiest_thread_share, ".0%"),
            number("lag p99, us", lambda part: part.lag_p99_us, ",.0f"),
            number("start, ms", lambda part: part.start_skew_us, lambda skew: f"{skew / 1000:+.2f}"),
            number("clock, ms", lambda part: _clock(part.clock_offset_us, part.offset_error_us)),
        ],
        lambda part: part.slower_by is not None or part.lost > 0,
        folded=len(where.machines) > _MOST_UNFOLDED,
    )
