"""Rules on the way between the load and the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pgtrial.facts.audit import Case, listed, rule
from pgtrial.store.records import Finding
from pgtrial.study.fleet import LOCAL

UNEQUAL = 1.5
_NOTICEABLE_US = 50.0
"""A difference of round trips below this is the noise of the lab's own work."""

_SAME_HOST = "this machine"
_OF_THE_ROUTE = ("path", "interface", "mtu")
COMPARED = (*_OF_THE_ROUTE, "tls")


@rule
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


@rule
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
    if base and own and max(base, own) > UNEQUAL * min(base, own) and abs(base - own) > _NOTICEABLE_US:
        yield f"a round trip of {base:,.0f} us and {own:,.0f} us"


def _bandwidths(case: Case, arm: str) -> Iterator[str]:
    base, own = (case.value(each, "probes", "bandwidth_mb_s") for each in (case.plan.baseline, arm))
    if base and own and max(base, own) > UNEQUAL * min(base, own):
        yield f"a bandwidth of {base:,.0f} MB/s and {own:,.0f} MB/s"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
