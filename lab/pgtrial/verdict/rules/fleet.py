"""Rules over the trials of a fleet, which is a group of machines that make the load together. They find machines that
are slow, far away, late or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pgtrial.model.records.trial import Trial
from pgtrial.verdict.rules.case import Case, Concern, is_frequent, listed, rule
from pgtrial.verdict.where_it_ran import further_machines, lost_machines, machine_parts, machine_ways

_UNEVEN = 0.01
"""The machines may start at different times up to this share of the length of the measured part."""


@rule("slow_machine", "a machine of the fleet is slow", over_trials=True)
def slow_machine(case: Case) -> Iterator[Concern]:
    """Finds slow machines. Their clients make fewer transactions than those of other machines, equally for all arms, so
    that no arm gets the whole load."""
    for part in machine_parts(case.completed()):
        if part.slower_by is not None:
            yield Concern(
                case.plan.arms,
                f"The machine {part.machine} of the fleet is slow: its clients made {part.slower_by:.0%} fewer "
                f"transactions each than those of the other machines (median of {part.trials} trials).",
                "It is the same for all arms, and the load is smaller than asked for; find out what else runs "
                "there and how far it is from the servers, or leave it out of the fleet.",
            )


@rule("far_machine", "a machine of the fleet is far away", over_trials=True)
def far_machine(case: Case) -> Iterator[Concern]:
    """Finds machines that are far from a server. Each statement waits for a round trip, so that their clients make
    fewer transactions and measure other latencies."""
    ways = machine_ways(case.completed(), case.plan.arms)
    times = {(way.machine, way.arm): way.round_trip_us for way in ways}
    further: dict[str, dict[str, float]] = {}
    for arm in case.plan.arms:
        for machine, usual in further_machines(ways, arm).items():
            further.setdefault(machine, {})[arm] = usual
    for machine, of_arms in further.items():
        all_arms = len(of_arms) == len(case.plan.arms)
        trips = listed(
            f"{times[machine, arm]:,.0f} us to {arm}, from the others {others:,.0f}" for arm, others in of_arms.items()
        )
        rest = ". It is so for all arms, and latencies are a mixture of both." if all_arms else ", and not to all arms."
        yield Concern(
            list(of_arms),
            f"The machine {machine} of the fleet is further away: a round trip takes {trips}{rest}",
            "Have all machines in one place (zone, switch), equally far from all servers, or leave this one out.",
            "info" if all_arms else "warning",
        )


@rule("lost_machine", "a machine of the fleet was lost", over_trials=True)
def lost_machine(case: Case) -> Iterator[Concern]:
    """Finds machines that were lost during a trial. Such a trial counts as failed, which is the worst result of all,
    although the arm is not to blame."""
    lost = [(trial, machine) for trial in case.trials for machine in lost_machines(trial)]
    if not lost:
        return
    machines, failed = Counter(machine for _, machine in lost), {trial.index: trial.arm for trial, _ in lost}
    by_arm = Counter(failed.values())
    arms = [arm for arm in case.plan.arms if arm in by_arm]
    names = listed(f"{machine}" + (f" ({times} times)" if times > 1 else "") for machine, times in machines.items())
    yield Concern(
        arms,
        f"The fleet lost {names} in mid-trial: {len(failed)} of {len(case.trials)} trials failed by that, "
        f"{listed(f'{by_arm[arm]} of {arm}' for arm in arms)}.",
        "Failed trials count against their arm, by chance against any: use machines that stay (no spot "
        "instances), or more blocks.",
    )


@rule("uneven_start", "machines of the fleet began apart", over_trials=True)
def uneven_start(case: Case) -> Iterator[Concern]:
    """Finds trials in which the machines started at different times. At the beginning and at the end of the measured
    part, a part of the load is then missing."""
    fleet = [trial for trial in case.trials if trial.machines]
    apart = [seconds for trial in fleet if (seconds := _apart_s(trial)) > _UNEVEN * _measured_s(case, trial)]
    if is_frequent(len(apart), len(fleet)):
        yield Concern(
            case.plan.arms,
            f"The machines of the fleet began up to {1000 * max(apart):,.0f} ms apart, in "
            f"{len(apart)} of {len(fleet)} trials by more than {_UNEVEN:.0%} of the measured part: at its ends not all "
            "of the load was there.",
            "Use machines near to each other that do nothing else, or longer trials.",
        )


def _apart_s(trial: Trial) -> float:
    skews = [share.start_skew_us for share in trial.machines if share.start_skew_us is not None]
    return (max(skews) - min(skews)) / 1e6 if skews else 0.0


def _measured_s(case: Case, trial: Trial) -> float:
    """Returns the planned length of a trial in seconds. For tasks, which run until they are done, it is the measured
    length."""
    return case.plan.duration_s or (trial.measured.duration_s if trial.measured else 0.0)
