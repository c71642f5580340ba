"""Rule on the host during the trials: what others took of it while an arm was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgtrial.evidence.audit.cases import TOLERATED, Case, listed
from pgtrial.model.records.machines import MachineShare
from pgtrial.model.records.study import ClientUse, Finding, Trial

_STOLEN = 0.01
_FOREIGN = 0.10
"""Of all CPU time: what is neither the server's nor the load's. Below it lies the kernel's own work for them."""

_STALLED = 0.05
"""Of the time: all processes at once waited for memory. A server with enough of it never does."""

_WORDS = {
    "stolen": "{share:.0%} of the CPU time was taken by the hypervisor for other machines",
    "foreign": "{share:.0%} of the CPU time went to programs that are no part of the study",
    "stalled": "for {share:.0%} of the time everything waited for memory",
}
_LIMITS = {"stolen": _STOLEN, "foreign": _FOREIGN, "stalled": _STALLED}
_CURES = {
    "stolen": "Use a machine whose CPUs are not shared, or measure at a quieter time.",
    "foreign": "Stop what else runs there (top tells what), or measure at a quieter time.",
    "stalled": "Give the machine more memory, or the server and the data less of it.",
}


def noisy_host(case: Case) -> Iterator[Finding]:
    """One finding for each kind of noise. The random order spreads it over the arms; it widens the interval."""
    for kind, limit in _LIMITS.items():
        known = {
            arm: [share for trial in case.of(arm) if (share := _shares(trial).get(kind)) is not None]
            for arm in case.plan.arms
        }
        over = {arm: noisy for arm, shares in known.items() if (noisy := [share for share in shares if share > limit])}
        number, of = sum(map(len, over.values())), sum(map(len, known.values()))
        if number > TOLERATED * of:
            yield Finding(
                rule="noisy_host",
                severity="warning",
                arms=list(over),
                message=f"The host was not quiet in {number} of {of} trials, of {listed(over)}: "
                f"up to {_WORDS[kind].format(share=max(map(max, over.values())))}.",
                cure=_CURES[kind],
            )


def _shares(trial: Trial) -> dict[str, float]:
    """What is known of a completed trial's noise, by kind."""
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
    """What the load took of the lab's machine: all, but for machines of a fleet that are known to be others."""
    if not any(share.with_lab is False for share in machines):
        return client.cpu_user_s + client.cpu_system_s
    own = [share for share in machines if share.with_lab is not False]
    return sum((share.cpu_user_s or 0.0) + (share.cpu_system_s or 0.0) for share in own)
