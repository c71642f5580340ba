"""Rule on noise: what else used the host while an arm was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgtrial.evidence.audit.case import Case, Concern, is_frequent, listed, rule
from pgtrial.model.records.trial import ClientUse, Trial
from pgtrial.model.records.where_it_ran import MachineShare


@dataclass(frozen=True)
class _Noise:
    limit: float
    """Share of the CPU time, of stalls share of the time, above which a trial is noisy."""
    words: str
    cure: str


_KINDS = {
    "stolen": _Noise(
        0.01,
        "{share:.0%} of the CPU time was taken by the hypervisor for other machines",
        "Use a machine whose CPUs are not shared, or measure at a quieter time.",
    ),
    # below this limit lies the kernel's own work for server and load
    "foreign": _Noise(
        0.10,
        "{share:.0%} of the CPU time went to programs that are no part of the study",
        "Stop what else runs there (top tells what), or measure at a quieter time.",
    ),
    # all processes at once waited for memory, which a server with enough of it never does
    "stalled": _Noise(
        0.05,
        "for {share:.0%} of the time everything waited for memory",
        "Give the machine more memory, or the server and the data less of it.",
    ),
}


@rule("noisy_host", "other work used the host", over_trials=True)
def noisy_host(case: Case) -> Iterator[Concern]:
    """One concern for each kind of noise. The random order spreads it over the arms; it widens the interval."""
    for kind, noise in _KINDS.items():
        known = {
            arm: [share for trial in case.completed(arm) if (share := _shares(trial).get(kind)) is not None]
            for arm in case.plan.arms
        }
        over = {
            arm: noisy for arm, shares in known.items() if (noisy := [share for share in shares if share > noise.limit])
        }
        number, of = sum(map(len, over.values())), sum(map(len, known.values()))
        if is_frequent(number, of):
            yield Concern(
                list(over),
                f"The host was not quiet in {number} of {of} trials, of {listed(over)}: "
                f"up to {noise.words.format(share=max(map(max, over.values())))}.",
                noise.cure,
            )


def _shares(trial: Trial) -> dict[str, float]:
    """The known shares of noise in a completed trial, by kind."""
    host = trial.server_deltas.get("host", {})
    found = {}
    cpu, busy, server = host.get("cpu_s"), host.get("cpu_busy_s"), host.get("server_cpu_s")
    if cpu and "cpu_steal_s" in host:
        found["stolen"] = host["cpu_steal_s"] / cpu
    if cpu and busy is not None and server is not None and trial.client is not None:
        ours = server
        if "lab_cpu_s" in host:  # the lab is where the server runs
            ours += host["lab_cpu_s"] + _loads_cpu_s(trial.client, trial.machines)
        found["foreign"] = max(0.0, busy - ours) / cpu
    if host.get("elapsed_s") and "memory_stall_s" in host:
        found["stalled"] = host["memory_stall_s"] / host["elapsed_s"]
    return found


def _loads_cpu_s(client: ClientUse, machines: Sequence[MachineShare]) -> float:
    """CPU time of the load on the lab's machine: all of it, except that of fleet machines known to be elsewhere."""
    if not any(share.with_lab is False for share in machines):
        return client.cpu_user_s + client.cpu_system_s
    own = [share for share in machines if share.with_lab is not False]
    return sum((share.cpu_user_s or 0.0) + (share.cpu_system_s or 0.0) for share in own)
