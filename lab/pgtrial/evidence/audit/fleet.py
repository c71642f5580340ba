"""Rules over the trials of a fleet: machines that are slow, that were lost, or that are a server's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pgtrial.evidence.audit.cases import TOLERATED, Case, listed
from pgtrial.model.records.machines import MachineShare
from pgtrial.model.records.study import Finding, Trial
from pgtrial.statistics.fleet_machines import lost_machines, machine_parts
from pgtrial.statistics.where_it_ran import further_machines, machine_ways

_UNEVEN = 0.01
"""Share of the measured part by which machines may begin apart."""


def slow_machine(case: Case) -> Iterator[Finding]:
    """Its clients do less than those of the others: all arms have that in common, and none gets the whole load."""
    for part in machine_parts([trial for trial in case.trials if trial.status == "completed"]):
        if part.slower_by is not None:
            yield Finding(
                rule="slow_machine",
                severity="warning",
                arms=case.plan.arms,
                message=f"The machine {part.machine} of the fleet is slow: its clients made {part.slower_by:.0%} fewer "
                f"transactions each than those of the other machines (median of {part.trials} trials).",
                cure="It is the same for all arms, and the load is smaller than asked for; find out what else runs "
                "there and how far it is from the servers, or leave it out of the fleet.",
            )


def far_machine(case: Case) -> Iterator[Finding]:
    """Each statement waits for a round trip: one machine's clients do less, and their latencies are others'."""
    ways = machine_ways([trial for trial in case.trials if trial.status == "completed"], case.plan.arms)
    times = {(way.machine, way.arm): way.round_trip_us for way in ways}
    found: dict[str, dict[str, float]] = {}
    for arm in case.plan.arms:
        for machine, usual in further_machines(ways, arm).items():
            found.setdefault(machine, {})[arm] = usual
    for machine, of_arms in found.items():
        all_arms = len(of_arms) == len(case.plan.arms)
        told = listed(
            f"{times[machine, arm]:,.0f} us to {arm}, from the others {others:,.0f}" for arm, others in of_arms.items()
        )
        yield Finding(
            rule="far_machine",
            severity="info" if all_arms else "warning",
            arms=case.plan.arms if all_arms else list(of_arms),
            message=f"The machine {machine} of the fleet is further away: a round trip takes {told}"
            + (
                ". It is so for all arms, and latencies are a mixture of both."
                if all_arms
                else ", and not to all arms."
            ),
            cure="Have all machines in one place (zone, switch), equally far from all servers, or leave this one out.",
        )


def lost_machine(case: Case) -> Iterator[Finding]:
    """A trial that lost a machine has failed, and counts as the worst rank, whatever the arm did."""
    lost = [(trial, machine) for trial in case.trials for machine in lost_machines(trial)]
    if not lost:
        return
    machines, failed = Counter(machine for _, machine in lost), {trial.index: trial.arm for trial, _ in lost}
    arms = Counter(failed.values())
    told = listed(f"{machine}" + (f" ({times} times)" if times > 1 else "") for machine, times in machines.items())
    yield Finding(
        rule="lost_machine",
        severity="warning",
        arms=[arm for arm in case.plan.arms if arm in arms],
        message=f"The fleet lost {told} in mid-trial: {len(failed)} of {len(case.trials)} trials failed by that, "
        f"{listed(f'{arms[arm]} of {arm}' for arm in case.plan.arms if arm in arms)}.",
        cure="Failed trials count against their arm, by chance against any: use machines that stay (no spot "
        "instances), or more blocks.",
    )


def uneven_start(case: Case) -> Iterator[Finding]:
    """Where machines begin apart, a part of the load is missing at both ends of the measured part."""
    fleet = [trial for trial in case.trials if trial.machines]
    apart = {
        trial.index: seconds for trial in fleet if (seconds := _apart_s(trial)) > _UNEVEN * _measured_s(case, trial)
    }
    if len(apart) > TOLERATED * len(fleet):
        yield Finding(
            rule="uneven_start",
            severity="warning",
            arms=case.plan.arms,
            message=f"The machines of the fleet began up to {1000 * max(apart.values()):,.0f} ms apart, in "
            f"{len(apart)} of {len(fleet)} trials by more than {_UNEVEN:.0%} of the measured part: at its ends not all "
            "of the load was there.",
            cure="Use machines near to each other that do nothing else, or longer trials.",
        )


def _apart_s(trial: Trial) -> float:
    skews = [share.start_skew_us for share in trial.machines if share.start_skew_us is not None]
    return (max(skews) - min(skews)) / 1e6 if skews else 0.0


def _measured_s(case: Case, trial: Trial) -> float:
    """As planned; of tasks, which run to their end, as long as it was."""
    return case.plan.duration_s or (trial.measured.duration_s if trial.measured else 0.0)


def fleet_on_the_servers_host(case: Case) -> Iterator[Finding]:
    """A machine of the fleet that serves an arm takes CPU time from that server."""
    machines = {share.machine: share for trial in case.trials for share in trial.machines}
    shared = {
        arm: found
        for arm in case.plan.arms
        if (found := [name for name, share in machines.items() if _is_host(case, arm, share)])
    }
    if not shared:
        return
    told = listed(f"{listed(found)} (of {arm})" for arm, found in shared.items())
    all_arms = len(shared) == len(case.plan.arms)
    yield Finding(
        rule="client_on_server_host",
        severity="info" if all_arms else "warning",
        arms=list(shared) if all_arms else case.plan.arms,
        message=f"A part of the load runs on a server's own machine, {told}, and takes CPU time there"
        + (": it is so for all arms." if all_arms else ", not from the others."),
        cure="Keep the servers' hosts out of the fleet.",
    )


def _is_host(case: Case, arm: str, share: MachineShare) -> bool:
    if {share.machine, share.address} & _names(case, arm):
        return True
    # where nothing but the lab's machine reaches the server, the facts have told already
    here = case.value(arm, "client", "connection") == "this machine"
    return here and bool(share.with_lab) and case.value(arm, "network", "path") not in ("unix socket", "loopback")


def _names(case: Case, arm: str) -> set[str]:
    """How an arm's hosts may be called: addresses, and names without a user."""
    return {
        name
        for host in case.plan.hosts.get(arm, [])
        for name in (host.address, host.label.rpartition("@")[2], (host.looked_at or "").rpartition("@")[2])
        if name
    }
