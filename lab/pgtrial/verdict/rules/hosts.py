"""Rules on hosts: hosts with unequal or emulated hardware, a load that runs on a server's host, other work on a host,
and a named host on which the server does not run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pgtrial.model.records.trial import ClientUse, Trial
from pgtrial.model.records.where_it_ran import MachineShare
from pgtrial.model.study.servers import Given
from pgtrial.model.units import grouped
from pgtrial.verdict.rules.case import Case, Concern, is_frequent, listed, rule, unlike

_SAME = (("cpu", "model", "CPU"), ("cpu", "logical", "logical CPUs"), ("storage", "device_model", "disk"))
_MEMORY = 1.1
"""Sizes of memory count as unequal if their ratio is above this factor. Operating systems report the memory of the same
machine with some percent of difference."""

_TCG = "QEMU TCG CPU"
"""The processor name that QEMU's software emulation reports for machines of the type `max`."""

_EMULATORS = frozenset({"qemu", "bochs"})
"""The names of emulators in systemd-detect-virt(1). QEMU with hardware support is called `kvm` there."""


@rule("unequal_hosts", "hosts differ")
def unequal_hosts(case: Case) -> Iterator[Concern]:
    """Finds hosts with unequal hardware. The study declares that the arms run on different hosts, but it seldom wants
    to compare their hardware."""
    for arm in case.others:
        unlike_parts = [*_unlike_parts(case, arm)] if case.declared(arm, "server.host") else []
        if unlike_parts:
            yield Concern(
                [case.baseline, arm],
                f"The hosts of {case.baseline} and {arm} are not equal: {listed(unlike_parts)}.",
                "Use equal machines, or run both systems as guests of the same machine, one after the other; as it is, "
                "the hardware is a part of what is compared.",
            )


def _unlike_parts(case: Case, arm: str) -> Iterator[str]:
    for group, name, word in _SAME:
        base, other = case.both(arm, group, name)
        if base is not None and other is not None and base != other:
            yield f"{word} {base} and {other}"
    base, other = case.both(arm, "memory", "total_mb")
    if unlike(base, other, _MEMORY):
        yield f"memory {base:,} MB and {other:,} MB"


@rule("another_host", "the named host runs no server of pgtrial")
def another_host(case: Case) -> Iterator[Concern]:
    """Finds hosts that the study names although the server does not run there. The facts (settings and other
    properties) and counters of such a host are misleading."""
    for arm in case.where("server", "process_seen", False):
        server = case.design.servers[arm]
        login = server.ssh if isinstance(server, Given) else None
        yield Concern(
            [arm],
            f"{login}, which the study names as the host of {arm}, has no process of PostgreSQL "
            "that serves pgtrial's connection: its facts and counters may be those of another machine.",
            "Name the host that the server runs on. A server in a container, or behind a connection pooler, is not "
            "recognised, and the login must be allowed to see the processes of other accounts.",
        )


@rule("emulated_machine", "the machine is emulated")
def emulated_machine(case: Case) -> Iterator[Concern]:
    """Finds emulated machines. Translated instructions behave differently from those of a processor in caches, page
    walks and clock."""
    models = case.known("cpu", "model")
    detected = case.where("os", "virtualisation", *_EMULATORS)
    arms = [arm for arm in case.arms if arm in detected or _TCG in models.get(arm, "")]
    if arms:
        model = models.get(arms[0])
        yield Concern(
            arms,
            f"The machine of {listed(arms)} is emulated in software"
            + (f" (its CPU is a {model})" if model else "")
            + ": times, and ratios of times, tell nothing of hardware.",
            "Use this study only to see that the arms work and which settings were in force; measure on a real "
            "machine, or on a virtual one whose hypervisor uses the processor (KVM).",
        )


@rule("client_on_server_host", "the load runs on the server's host")
def client_on_the_servers_host(case: Case) -> Iterator[Concern]:
    """Finds servers that run on the machine that makes the load. The load takes CPU time from them."""
    # if a fleet makes the load, only the trials show whether one of its machines is a server's host; but a server with
    # a local connection is reached from this machine alone
    lab_makes_load = case.design.spec.fleet is None
    arms = [arm for arm in case.arms if case.on_labs_machine(arm) and (lab_makes_load or _is_local(case, arm))]
    cpus = case.value(arms[0], "cpu", "logical") if arms else None
    if arms and len(arms) == len(case.arms):
        yield Concern(
            arms,
            "The load runs on the servers' own machine"
            + (f" and shares its {cpus} CPUs: " if cpus is not None else ": ")
            + "it is fair to all arms, and leaves each less than the whole machine.",
            "For figures of a whole machine run pgtrial on another one and give the servers by ssh or dsn.",
            "info",
        )
    elif arms:
        yield Concern(
            case.arms,
            f"The load runs on the machine of {listed(arms)} and takes CPU time there, not from the others.",
            "Run pgtrial on a machine that serves none of the arms.",
        )


@rule("client_on_server_host", "the load runs on the server's host", over_trials=True)
def fleet_on_the_servers_host(case: Case) -> Iterator[Concern]:
    """Finds machines of the fleet on which a server runs too. The load of such a machine takes CPU time from the
    server."""
    machines = {share.machine: share for trial in case.trials for share in trial.machines}
    shared = grouped(
        (arm, name) for arm in case.plan.arms for name, share in machines.items() if _is_host(case, arm, share)
    )
    if not shared:
        return
    hosts = listed(f"{listed(names)} (of {arm})" for arm, names in shared.items())
    all_arms = len(shared) == len(case.plan.arms)
    yield Concern(
        case.plan.arms,
        f"A part of the load runs on a server's own machine, {hosts}, and takes CPU time there"
        + (": it is so for all arms." if all_arms else ", not from the others."),
        "Keep the servers' hosts out of the fleet.",
        "info" if all_arms else "warning",
    )


def _is_host(case: Case, arm: str, share: MachineShare) -> bool:
    """True if a machine of the fleet (the machines that make the load together) is the host of an arm's server: by its
    name or address, or because both are the machine on which pgtrial runs.

    The result is false for servers with a local connection. Another rule reports them already from the facts, before
    any trial has run.
    """
    names = {
        name
        for host in case.plan.hosts.get(arm, [])
        for name in (host.address, host.label.rpartition("@")[2], (host.looked_at or "").rpartition("@")[2])
        if name
    }
    if {share.machine, share.address} & names:
        return True
    return case.on_labs_machine(arm) and bool(share.with_lab) and not _is_local(case, arm)


def _is_local(case: Case, arm: str) -> bool:
    """True if the connection to the server can only come from the machine on which pgtrial runs."""
    return case.value(arm, "network", "path") in ("unix socket", "loopback")


_NOISE = {
    "stolen": (
        0.01,
        "{share:.0%} of the CPU time was taken by the hypervisor for other machines",
        "Use a machine whose CPUs are not shared, or measure at a quieter time.",
    ),
    # the kernel's own work for server and load is below this limit
    "foreign": (
        0.10,
        "{share:.0%} of the CPU time went to programs that are no part of the study",
        "Stop what else runs there (top tells what), or measure at a quieter time.",
    ),
    # all processes waited for memory at the same time, which never happens on a server with enough memory
    "stalled": (
        0.05,
        "for {share:.0%} of the time everything waited for memory",
        "Give the machine more memory, or the server and the data less of it.",
    ),
}
"""The kinds of noise. Each has three values: the share of the CPU time (for stalls, of the time) above which a trial
counts as noisy, the words of the finding, and its cure."""


@rule("noisy_host", "other work used the host", over_trials=True)
def noisy_host(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each kind of noise from other work on a host. The random order of the trials
    spreads such noise over the arms, so that it does not favour one of them, but it makes the intervals wider."""
    noise = [(trial.arm, _noise(case, trial, group)) for trial, group in _with_groups(case)]
    for kind, (limit, words, cure) in _NOISE.items():
        known = [(arm, shares[kind]) for arm, shares in noise if kind in shares]
        noisy = [(arm, share) for arm, share in known if share > limit]
        if is_frequent(len(noisy), len(known)):
            arms = [arm for arm in case.plan.arms if arm in dict(noisy)]
            most = max(share for _, share in noisy)
            yield Concern(
                arms,
                f"The host was not quiet in {len(noisy)} of {len(known)} trials, of {listed(arms)}: "
                f"up to {words.format(share=most)}.",
                cure,
            )


def _with_groups(case: Case) -> Iterator[tuple[Trial, list[Trial]]]:
    """Yields each completed trial, in order, with the completed trials of its block at its load point, in order."""
    of_block: defaultdict[tuple[int, int], list[Trial]] = defaultdict(list)
    groups: dict[int, list[Trial]] = {}
    for number, point in enumerate(case.plan.load_points):
        for trial in case.completed(None, point):
            group = groups[trial.index] = of_block[number, trial.block]
            group.append(trial)
    for trial in case.completed():
        yield trial, groups.get(trial.index, [trial])


def _noise(case: Case, trial: Trial, group: Sequence[Trial]) -> dict[str, float]:
    """Returns the shares of noise on the host of a completed trial, by kind, as far as they are known. If the trials of
    its `group` took turns in slices, the shares are those of the whole group."""
    if not any(other.host_deltas for other in group):
        host = trial.server_deltas.get("host", {})
        return _shares(host, host.get("server_cpu_s"), [trial])
    # the results of the first trial are read first, before the lab asks the other servers for theirs
    on_several_hosts = any(case.declared(arm, "server.host") for arm in case.others)
    first = trial if on_several_hosts else group[0]
    servers = [
        deltas["host"]["server_cpu_s"]
        for other in group
        for deltas in (other.server_deltas, other.shared_deltas)
        if "server_cpu_s" in deltas.get("host", {})
    ]
    # an arm that has left the study, because all its claims were decided, takes no part in later blocks
    planned = sum(trial.block < case.plan.left.get(arm, case.plan.max_blocks) for arm in case.plan.arms)
    # servers on other hosts are subtracted too, which makes the work of others too small rather than too large
    complete = len(group) == planned and len(servers) == (1 if case.plan.shares_server else len(group))
    return _shares(first.host_deltas, sum(servers) if complete else None, group)


def _shares(host: Mapping[str, float], server_cpu_s: float | None, trials: Sequence[Trial]) -> dict[str, float]:
    """Returns the shares of noise, by kind, as far as they are known, from the counters of a host and the CPU time of
    the servers of these trials on it."""
    shares = {}
    cpu, busy = host.get("cpu_s"), host.get("cpu_busy_s")
    if cpu and "cpu_steal_s" in host:
        shares["stolen"] = host["cpu_steal_s"] / cpu
    clients = [(trial.client, trial.machines) for trial in trials if trial.client is not None]
    if cpu and busy is not None and server_cpu_s is not None and len(clients) == len(trials):
        ours = server_cpu_s
        if "lab_cpu_s" in host:  # pgtrial runs on the server's host
            ours += host["lab_cpu_s"] + sum(_loads_cpu_s(client, machines) for client, machines in clients)
        shares["foreign"] = max(0.0, busy - ours) / cpu
    if host.get("elapsed_s") and "memory_stall_s" in host:
        shares["stalled"] = host["memory_stall_s"] / host["elapsed_s"]
    return shares


def _loads_cpu_s(client: ClientUse, machines: Sequence[MachineShare]) -> float:
    """Returns the CPU time in seconds that the load used on the machine on which pgtrial runs. Machines of the fleet
    that are known to be other machines are left out."""
    if not any(share.with_lab is False for share in machines):
        return client.cpu_user_s + client.cpu_system_s
    beside_lab = [share for share in machines if share.with_lab is not False]
    return sum((share.cpu_user_s or 0.0) + (share.cpu_system_s or 0.0) for share in beside_lab)
