"""Rules on the network between load and servers, over facts and over trials; and what given servers do not permit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import median

from pgtrial.evidence.audit.cases import Case, listed
from pgtrial.model.records.study import Finding
from pgtrial.model.study.fleet import LOCAL
from pgtrial.statistics.canaries import DEVIATIONS
from pgtrial.statistics.levels import robust_sd
from pgtrial.statistics.where_it_ran import NOTICEABLE_US, loads_round_trip

UNEQUAL = 1.5
_SAME_HOST = "this machine"
_OF_THE_ROUTE = ("path", "interface", "mtu")
COMPARED = (*_OF_THE_ROUTE, "tls")


def unequal_network_path(case: Case) -> Iterator[Finding]:
    """A round trip is a part of every transaction: arms reached by different ways are not compared alone.

    What is known here are the lab's ways. Of a fleet's the trials tell, and where it is elsewhere the lab's are not the
    load's, but for the encryption, which both ask for alike.
    """
    elsewhere = case.spec.fleet is not None and case.spec.fleet.address != LOCAL
    for arm in case.arms:
        if arm == case.plan.baseline:
            continue
        measured = [] if _within_one_machine(case, arm) else [*_round_trips(case, arm), *_bandwidths(case, arm)]
        told = [*_differences(case, arm, ("tls",) if elsewhere else COMPARED), *([] if elsewhere else measured)]
        if told:
            yield Finding(
                rule="unequal_network_path",
                severity="warning",
                arms=[case.plan.baseline, arm],
                message=f"The load reaches {case.plan.baseline} and {arm} by unequal ways: {listed(told)}.",
                cure="Run the load from a machine that is equally far from all servers, over the same kind of "
                "connection; as it is, the way is a part of what is compared.",
            )
        if elsewhere and (told := [*_differences(case, arm, _OF_THE_ROUTE), *measured]):
            yield Finding(
                rule="unequal_network_path",
                severity="info",
                arms=[case.plan.baseline, arm],
                message=f"The lab, which makes no load, reaches {case.plan.baseline} and {arm} by unequal ways: "
                f"{listed(told)}. The load's ways are those from the fleet.",
                cure="Look at the round trips from the fleet's machines (Where it ran); where those are equal there is "
                "nothing to do.",
            )


def client_on_the_servers_host(case: Case) -> Iterator[Finding]:
    """The load takes CPU time from a server on its own machine."""
    arms = [arm for arm in case.arms if _load_is_here(case, arm)]
    cpus = case.value(arms[0], "cpu", "logical") if arms else None
    if arms and len(arms) == len(case.arms):
        yield Finding(
            rule="client_on_server_host",
            severity="info",
            arms=arms,
            message="The load runs on the servers' own machine"
            + (f" and shares its {cpus} CPUs: " if cpus is not None else ": ")
            + "it is fair to all arms, and leaves each less than the whole machine.",
            cure="For figures of a whole machine run pgtrial on another one and give the servers by ssh or dsn.",
        )
    elif arms:
        yield Finding(
            rule="client_on_server_host",
            severity="warning",
            arms=case.arms,
            message=f"The load runs on the machine of {listed(arms)} and takes CPU time there, not from the others.",
            cure="Run pgtrial on a machine that serves none of the arms.",
        )


def _load_is_here(case: Case, arm: str) -> bool:
    """Whether the load has the server on its own machine, as far as the lab's connection tells.

    A fleet is elsewhere, unless nothing but this machine reaches the server; else its trials tell.
    """
    if case.value(arm, "client", "connection") != _SAME_HOST:
        return False
    return case.spec.fleet is None or case.value(arm, "network", "path") in ("unix socket", "loopback")


def _within_one_machine(case: Case, arm: str) -> bool:
    """Whether both are reached by Unix sockets: the ways are equal, and a difference of round trips is noise."""
    return all(case.value(each, "network", "path") == "unix socket" for each in (case.plan.baseline, arm))


def _differences(case: Case, arm: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        base, own = (case.value(each, "network", name) for each in (case.plan.baseline, arm))
        if base is not None and own is not None and base != own:
            yield f"{name} {_text(base)} and {_text(own)}"


def _round_trips(case: Case, arm: str) -> Iterator[str]:
    if case.spec.fleet is not None and case.spec.fleet.address == LOCAL:
        return  # the trials tell those of the load itself
    base, own = (case.value(each, "probes", "round_trip_median_us") for each in (case.plan.baseline, arm))
    if base and own and max(base, own) > UNEQUAL * min(base, own) and abs(base - own) > NOTICEABLE_US:
        yield f"a round trip of {base:,.0f} us and {own:,.0f} us"


def _bandwidths(case: Case, arm: str) -> Iterator[str]:
    base, own = (case.value(each, "probes", "bandwidth_mb_s") for each in (case.plan.baseline, arm))
    if base and own and max(base, own) > UNEQUAL * min(base, own):
        yield f"a bandwidth of {base:,.0f} MB/s and {own:,.0f} MB/s"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_UNEQUAL = 1.2
_NOTICEABLE_ELSEWHERE_US = 10.0
"""The same over a network, where the trials themselves tell the noise."""


def unequal_round_trips(case: Case) -> Iterator[Finding]:
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


def not_permitted(case: Case) -> Iterator[Finding]:
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


def _of_the_lab(case: Case, arm: str) -> list[float]:
    return [trial.round_trip_us for trial in case.of(arm) if trial.round_trip_us is not None]


def _of_the_load(case: Case, arm: str) -> list[float]:
    return [time for trial in case.of(arm) if (time := loads_round_trip(trial)) is not None]


def _noise_us(case: Case, arm: str, known: Sequence[Sequence[float]]) -> float:
    """What a difference from the baseline has to exceed."""
    arms = (case.plan.baseline, arm)
    if any(case.value(each, "client", "connection") != "over the network" for each in arms):
        return NOTICEABLE_US
    spread = max(robust_sd(times, median(times)) for times in known)
    return max(_NOTICEABLE_ELSEWHERE_US, DEVIATIONS * spread)


def _told_by_facts(case: Case, arm: str) -> bool:
    """Whether the audit of the facts has said so already, from the round trips that it measured."""
    base, own = (case.value(each, "probes", "round_trip_median_us") for each in (case.plan.baseline, arm))
    return bool(base and own and max(base, own) > UNEQUAL * min(base, own) and abs(base - own) > NOTICEABLE_US)
