"""The tables of where each piece of a study ran, the ways to the servers, and what each machine of the fleet did."""

from __future__ import annotations

from pgtrial.model.records.where_it_ran import MachinePart, MachineWay, ServerPlace, WhereItRan
from pgtrial.model.study.fleet import LOCAL
from pgtrial.model.units import plural
from pgtrial.report.data import StudyData
from pgtrial.report.tables import NONE, Table
from pgtrial.statistics.where_it_ran import further_machines

_MOST_UNFOLDED = 20
_YES_NO = {True: "yes", False: "no", None: NONE}


def where_tables(data: StudyData) -> list[Table]:
    """None where the lab's machine did everything."""
    where = data.result.where
    if where is None:
        return []
    return [_pieces(data, where), _ways(where), *([_fleet_ways(where)] if where.ways else []), _fleet(where)]


def _pieces(data: StudyData, where: WhereItRan) -> Table:
    rows = [
        ["the lab", "the lab's machine", where.lab or NONE, NONE],
        ["the load", _load(data, where), NONE if where.machines else where.lab or NONE, NONE],
        *(
            [f"the server of {server.arm}", _host(server), server.system or NONE, server.address or NONE]
            for server in where.servers
        ),
    ]
    return Table(
        "Each piece of the study, and the machine that it ran on.", ["piece", "machine", "system", "address"], rows
    )


def _load(data: StudyData, where: WhereItRan) -> str:
    if where.load == "lab":
        return "the lab's machine"
    number, fleet = len(where.machines), data.spec.fleet
    if fleet is not None and fleet.address == LOCAL:
        return f"the lab's machine, as a fleet of {plural(number, 'engine')}"
    return f"a fleet of {plural(number, 'machine')}" + (f" (Ray, {fleet.address})" if fleet is not None else "")


def _host(server: ServerPlace) -> str:
    if server.by == "this machine":
        return "the lab's machine"
    how = server.by if server.looked_at is None else f"{server.by}, looked at by ssh as {server.looked_at}"
    return f"{server.host} ({how})" + (", the lab's machine" if server.with_lab else "")


def _ways(where: WhereItRan) -> Table:
    rows = [
        [
            server.arm,
            server.path or NONE,
            server.interface or NONE,
            str(server.mtu) if server.mtu is not None else NONE,
            server.tls or NONE,
            _us(server.round_trip_us),
            NONE
            if server.round_trip_lowest_us is None
            else f"{_us(server.round_trip_lowest_us)} to {_us(server.round_trip_highest_us)}",
            str(server.trials),
            NONE if server.bandwidth_mb_s is None else f"{server.bandwidth_mb_s:,.0f}",
            _clock(server.clock_offset_us, server.clock_offset_error_us),
        ]
        for server in where.servers
    ]
    caption = (
        "The way from the lab to each server. Round trips are of a SELECT 1, the median of 20 before each trial: their "
        "median over the trials, lowest and highest. The bandwidth was measured once, from the server to the lab, and "
        "so was the host's clock: how far it is ahead of the lab's, and how exactly that is known."
    )
    if where.ways:
        caption += " The load did not take these ways but those from the fleet, which the next table has."
    elif where.machines:
        caption += " The fleet has ways of its own, of which the speeds of its machines tell."
    heads = ["arm", "path", "interface", "MTU", "TLS", "round trip, us", "lowest to highest", "trials",
             "bandwidth, MB/s", "clock, ms"]  # fmt: skip
    return Table(caption, heads, rows, frozenset({3, 5, 6, 7, 8, 9}))


def _fleet_ways(where: WhereItRan) -> Table:
    arms = [server.arm for server in where.servers]
    ways = {(way.machine, way.arm): way for way in where.ways}
    further = {(machine, arm) for arm in arms for machine in further_machines(where.ways, arm)}
    rows = []
    for part in where.machines:
        cells = [
            _span(way) + (" (far)" if (part.machine, arm) in further else "")
            if (way := ways.get((part.machine, arm)))
            else NONE
            for arm in arms
        ]
        rows.append([part.machine, _YES_NO[part.with_lab], *cells])
    caption = (
        "The way from each machine of the fleet, which made the load, to each server: round trips in microseconds, by "
        "TCP connects, the median of 7 before each trial; their median over the trials, lowest and highest. A server "
        "that is much further from one machine than from the others is marked. No bandwidth was measured from here."
    )
    heads = ["machine", "the lab's own", *(f"to {arm}" for arm in arms)]
    marked = frozenset(i for i, part in enumerate(where.machines) if any(part.machine == name for name, _ in further))
    return Table(caption, heads, rows, frozenset(range(2, len(heads))), marked, folded=len(rows) > _MOST_UNFOLDED)


def _span(way: MachineWay) -> str:
    """`120 (110 to 190)`."""
    return f"{_us(way.round_trip_us)} ({_us(way.round_trip_lowest_us)} to {_us(way.round_trip_highest_us)})"


def _fleet(where: WhereItRan) -> Table:
    rows = [_row(part) for part in where.machines]
    caption = (
        "The fleet, over all trials of each machine. Speed: transactions by second and client, against the median "
        "machine of the same trial; one that is slower than the others by more than the rule for canaries tolerates is "
        "marked. CPU time is the engine's; the busiest thread and the lag are of the highest trial. Start: how much "
        "later than planned it began, in the furthest trial. Clock: how far it is ahead of the lab's, median, and the "
        "largest error."
    )
    heads = ["machine", "address", "trials", "lost", "clients", "transactions", "share", "tps", "speed",
             "CPU us a transaction", "busiest thread", "lag p99, us", "start, ms", "clock, ms"]  # fmt: skip
    marked = frozenset(i for i, part in enumerate(where.machines) if part.slower_by is not None or part.lost)
    return Table(caption, heads, rows, frozenset(range(2, len(heads))), marked, folded=len(rows) > _MOST_UNFOLDED)


def _row(part: MachinePart) -> list[str]:
    return [
        part.machine + (" (slow)" if part.slower_by is not None else ""),
        part.address or NONE,
        str(part.trials),
        str(part.lost),
        NONE if part.clients is None else f"{part.clients:,}",
        f"{part.transactions:,}",
        NONE if part.share is None else f"{part.share:.1%}",
        NONE if part.tps is None else f"{part.tps:,.0f}",
        NONE if part.speed is None else f"{part.speed:.2f}",
        NONE if part.cpu_per_transaction_us is None else f"{part.cpu_per_transaction_us:.2f}",
        NONE if part.busiest_thread_share is None else f"{part.busiest_thread_share:.0%}",
        _us(part.lag_p99_us),
        NONE if part.start_skew_us is None else f"{part.start_skew_us / 1000:+.2f}",
        _clock(part.clock_offset_us, part.offset_error_us),
    ]


def _us(time: float | None) -> str:
    return NONE if time is None else f"{time:,.0f}"


def _clock(offset_us: float | None, error_us: float | None) -> str:
    """`+12.40 ± 0.03`."""
    if offset_us is None:
        return NONE
    error = "" if error_us is None else f" ± {error_us / 1000:.2f}"
    return f"{offset_us / 1000:+,.2f}{error}"
