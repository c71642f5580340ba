"""Rules on the network between the load and the servers. Some read the facts (settings and other properties), others
the trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pgtrial.model.study.fleet import LOCAL
from pgtrial.statistics.describe import DEVIATIONS, robust_sd
from pgtrial.verdict.rules.case import Case, Concern, as_shown, listed, rule, unlike
from pgtrial.verdict.where_it_ran import NOTICEABLE_US, loads_round_trip

_ROUTE = ("path", "interface", "mtu")
COMPARED = (*_ROUTE, "tls")

_UNEQUAL = 1.5
"""Two values that pgtrial has measured only once, such as two round-trip times, count as unequal if their ratio is
above this factor."""

_UNEQUAL_IN_TRIALS = 1.2
"""Two medians over the trials, such as those of round-trip times, count as unequal if their ratio is above this
factor."""

_NO_WAY = ("unix socket", "loopback")
"""Paths without a network. The time of a round trip on them is the work of the server and the client, so that it is
longer for slow servers."""

_NOTICEABLE_ELSEWHERE_US = 10.0
"""Smaller differences of round trips than this, in microseconds, count as noise. This limit is for servers that are
reached over a network, where the spread over the trials shows how much noise there is."""


@rule("unequal_network_path", "network paths differ")
def unequal_network_path(case: Case) -> Iterator[Concern]:
    """Finds unequal network paths. Their round trips are a part of every transaction, and so of the comparison.

    The facts (settings and other properties) describe the paths from the machine on which pgtrial runs. If a fleet on
    other machines makes the load, its paths are different ones, which the trials describe. Only the encryption is then
    the same, because both request it in the same way.
    """
    fleet = case.design.spec.fleet
    elsewhere = fleet is not None and fleet.address != LOCAL
    for arm in case.others:
        measured = [*_measured(case, arm, round_trips=fleet is None or elsewhere)]
        ways = [*_differences(case, arm, ("tls",) if elsewhere else COMPARED), *([] if elsewhere else measured)]
        if ways:
            yield Concern(
                [case.baseline, arm],
                f"The load reaches {case.baseline} and {arm} by unequal network paths: {listed(ways)}.",
                "Run the load from a machine that is equally far from all servers, over the same kind of "
                "connection; as it is, the way is a part of what is compared.",
            )
        if elsewhere and (ways := [*_differences(case, arm, _ROUTE), *measured]):
            yield Concern(
                [case.baseline, arm],
                f"The lab, which makes no load, reaches {case.baseline} and {arm} by unequal network paths: "
                f"{listed(ways)}. The load uses the paths from the fleet.",
                "Look at the round trips from the fleet's machines (Where it ran); where those are equal there is "
                "nothing to do.",
                "info",
            )


def _differences(case: Case, arm: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        base, other = case.both(arm, "network", name)
        if base is not None and other is not None and base != other:
            yield f"{name} {as_shown(base)} and {as_shown(other)}"


def _measured(case: Case, arm: str, *, round_trips: bool) -> Iterator[str]:
    """Yields the measured properties of the path that differ, in words. If a fleet (a group of machines that makes the
    load) runs on pgtrial's own machine, round trips are left out, since the trials have the round trips of the load
    itself."""
    if _without_way(case, arm):
        return
    if round_trips and _unequal_round_trips(case, arm):
        base, other = case.both(arm, "probes", "round_trip_median_us")
        yield f"a round trip of {base:,.0f} us and {other:,.0f} us"
    base, other = case.both(arm, "probes", "bandwidth_mb_s")
    if unlike(base, other, _UNEQUAL):
        yield f"a bandwidth of {base:,.0f} MB/s and {other:,.0f} MB/s"


def _without_way(case: Case, arm: str) -> bool:
    """True if both servers are reached by the same path, and this path does not leave the machine on which pgtrial
    runs."""
    base, other = case.both(arm, "network", "path")
    return base == other and base in _NO_WAY


def _unequal_round_trips(case: Case, arm: str) -> bool:
    """True if the round trips that pgtrial measured when it collected the facts (settings and other properties) differ
    notably."""
    return unlike(*case.both(arm, "probes", "round_trip_median_us"), _UNEQUAL, NOTICEABLE_US)


@rule("unequal_network_path", "network paths differ", over_trials=True)
def unequal_round_trips(case: Case) -> Iterator[Concern]:
    """Finds unequal round trips in the trials, since the path to a server may change during a study.

    The round trips from the fleet's machines are compared if they are known for both arms, and otherwise the round
    trips from the machine on which pgtrial runs.
    """
    for arm in case.others:
        by_fleet = all(_of_the_load(case, name) for name in (case.baseline, arm))
        known = [(_of_the_load if by_fleet else _of_the_lab)(case, name) for name in (case.baseline, arm)]
        # the rule over the facts has already reported a difference of the round trips from pgtrial's own machine
        if not all(known) or (not by_fleet and (_without_way(case, arm) or _unequal_round_trips(case, arm))):
            continue
        base, other = map(median, known)
        if unlike(base, other, _UNEQUAL_IN_TRIALS, _noise_us(case, arm, known)):
            which = "from the fleet, mean of its machines: " if by_fleet else ""
            yield Concern(
                [case.baseline, arm],
                f"A round trip takes {base:,.0f} us to {case.baseline} and {other:,.0f} us to {arm} "
                f"({which}medians over the trials): each statement of a transaction waits for one.",
                "Run the load from a machine that is equally far from all servers; as it is, the way is a part of "
                "what is compared.",
            )


def _of_the_lab(case: Case, arm: str) -> list[float]:
    return [trial.round_trip_us for trial in case.completed(arm) if trial.round_trip_us is not None]


def _of_the_load(case: Case, arm: str) -> list[float]:
    return [time for trial in case.completed(arm) if (time := loads_round_trip(trial)) is not None]


def _noise_us(case: Case, arm: str, known: Sequence[Sequence[float]]) -> float:
    """Returns the largest difference from the baseline, in microseconds, that noise can explain."""
    if set(case.both(arm, "client", "connection")) != {"over the network"}:
        return NOTICEABLE_US
    spread = max(robust_sd(times, median(times)) for times in known)
    return max(_NOTICEABLE_ELSEWHERE_US, DEVIATIONS * spread)
