"""How far the machines of a fleet are from the servers. Pure functions of stored trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from pgtrial.analyse.where_records import MachineWay
from pgtrial.store.records import Trial

_FURTHER = 1.5
_NOTICEABLE_US = 50.0
"""A difference below this is the noise of machines that have other work."""


def machine_ways(trials: Sequence[Trial], arms: Iterable[str]) -> list[MachineWay]:
    """One for each machine and arm of which round trips are known, by machines."""
    machines = dict.fromkeys(share.machine for trial in trials for share in trial.machines)
    arms = list(arms)
    return [way for machine in machines for arm in arms if (way := _way(trials, machine, arm)) is not None]


def further_machines(ways: Sequence[MachineWay], arm: str) -> dict[str, float]:
    """The machines that are much further from the arm's server than the others, each with the others' median, us."""
    own = {way.machine: way.round_trip_us for way in ways if way.arm == arm}
    found = {}
    for machine, time in own.items():
        others = [other for name, other in own.items() if name != machine]
        if others and time > _FURTHER * (usual := median(others)) and time - usual > _NOTICEABLE_US:
            found[machine] = usual
    return found


def loads_round_trip(trial: Trial) -> float | None:
    """From those who made the load to the server, microseconds: the mean over a fleet's machines, which have even parts
    of the clients; None where no machine told it."""
    known = [share.round_trip_us for share in trial.machines if share.round_trip_us is not None]
    return fmean(known) if known else None


def _way(trials: Iterable[Trial], machine: str, arm: str) -> MachineWay | None:
    times = [
        share.round_trip_us
        for trial in trials
        for share in trial.machines
        if trial.arm == arm and share.machine == machine and share.round_trip_us is not None
    ]
    if not times:
        return None
    return MachineWay(
        machine=machine,
        arm=arm,
        trials=len(times),
        round_trip_us=median(times),
        round_trip_lowest_us=min(times),
        round_trip_highest_us=max(times),
    )
