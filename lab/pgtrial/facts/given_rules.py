"""Rules over the trials of servers that are not embedded: the way to them, and what they do not permit the lab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pgtrial.analyse.canaries import DEVIATIONS
from pgtrial.analyse.mad import robust_sd
from pgtrial.analyse.ways import loads_round_trip
from pgtrial.facts.audit import listed
from pgtrial.facts.network_rules import UNEQUAL
from pgtrial.facts.trial_audit import TrialCase, trial_rule
from pgtrial.store.records import Finding

_UNEQUAL = 1.2
_NOTICEABLE_US = 50.0
"""A difference of round trips below this is the noise of the lab's own work, where it may share the server's CPUs."""

_NOTICEABLE_ELSEWHERE_US = 10.0
"""The same over a network, where the trials themselves tell the noise."""


@trial_rule
def unequal_round_trips(case: TrialCase) -> Iterator[Finding]:
    """The round trip before each trial: the way to a server may be longer, and change, in the course of a study.

    Of a fleet it is that from its machines, where it is known to both arms; else the lab's.
    """
    for arm in case.others:
        by_fleet = all(_of_the_load(case, each) for each in (case.plan.baseline, arm))
        known = [(_of_the_load if by_fleet else _of_the_lab)(case, each) for each in (case.plan.baseline, arm)]
        if not all(known) or (not by_fleet and _told_by_facts(case, arm)):
            continue
        base, own = map(median, known)
        if max(base, own) > _UNEQUAL * min(base, own) and abs(base - own) > _noise_us(case, arm, known):
            which = "from the fleet, mean of its machines: " if by_fleet else ""
            yield Finding(
                rule="unequal_network_path",
                severity="warning",
                arms=[case.plan.baseline, arm],
                message=f"A round trip takes {base:,.0f} us to {case.plan.baseline} and {own:,.0f} us to {arm} "
                f"({which}medians over the trials): each statement of a transaction waits for one.",
                cure="Run the load from a machine that is equally far from all servers; as it is, the way is a part of "
                "what is compared.",
            )


@trial_rule
def not_permitted(case: TrialCase) -> Iterator[Finding]:
    """What trials had to do without, once for all arms that it is true of."""
    things = sorted({thing for trial in case.trials for thing in trial.not_permitted})
    for thing in things:
        arms = [arm for arm in case.plan.arms if any(thing in trial.not_permitted for trial in case.of(arm))]
        if arms:
            unequal = len(arms) < len(case.plan.arms)
            yield Finding(
                rule="not_permitted",
                severity="warning" if unequal else "info",
                arms=arms,
                message=f"On {listed(arms)} pgtrial may not {thing}"
                + ("; the other arms do not have that handicap." if unequal else "."),
                cure="Grant it where the provider lets you"
                + (", or compare with arms that lack it too." if unequal else "; it is the same for all arms."),
            )


def _of_the_lab(case: TrialCase, arm: str) -> list[float]:
    return [trial.round_trip_us for trial in case.of(arm) if trial.round_trip_us is not None]


def _of_the_load(case: TrialCase, arm: str) -> list[float]:
    return [time for trial in case.of(arm) if (time := loads_round_trip(trial)) is not None]


def _noise_us(case: TrialCase, arm: str, known: Sequence[Sequence[float]]) -> float:
    """What a difference from the baseline has to exceed."""
    arms = (case.plan.baseline, arm)
    if any(case.value(each, "client", "connection") != "over the network" for each in arms):
        return _NOTICEABLE_US
    spread = max(robust_sd(times, median(times)) for times in known)
    return max(_NOTICEABLE_ELSEWHERE_US, DEVIATIONS * spread)


def _told_by_facts(case: TrialCase, arm: str) -> bool:
    """Whether the audit of the facts has said so already, from the round trips that it measured."""
    base, own = (case.value(each, "probes", "round_trip_median_us") for each in (case.plan.baseline, arm))
    return bool(base and own and max(base, own) > UNEQUAL * min(base, own) and abs(base - own) > _NOTICEABLE_US)
