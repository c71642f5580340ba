"""Rules on the hosts of the arms: unlike hardware, emulated processors, and a host that the server does not run on."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.evidence.audit.cases import Case, listed
from pgtrial.model.records.study import Finding

_SAME = (("cpu", "model", "CPU"), ("cpu", "logical", "logical CPUs"), ("storage", "device_model", "disk"))
_MEMORY = 0.1
"""Systems tell of one machine's memory some percent more or less."""


def unequal_hosts(case: Case) -> Iterator[Finding]:
    """That the hosts are others is declared; that they are unlike seldom is what the study asks."""
    for arm in case.arms:
        told = [*_unlike(case, arm)] if case.declared(arm, "server.host") else []
        if told:
            yield Finding(
                rule="unequal_hosts",
                severity="warning",
                arms=[case.plan.baseline, arm],
                message=f"The hosts of {case.plan.baseline} and {arm} are not alike: {listed(told)}.",
                cure="Use equal machines, or one machine with one system after the other as its guest; as it is, the "
                "hardware is a part of what is compared.",
            )


def _unlike(case: Case, arm: str) -> Iterator[str]:
    for group, name, word in _SAME:
        base, own = (case.value(each, group, name) for each in (case.plan.baseline, arm))
        if base is not None and own is not None and base != own:
            yield f"{word} {base} and {own}"
    base, own = (case.value(each, "memory", "total_mb") for each in (case.plan.baseline, arm))
    if base and own and max(base, own) > (1 + _MEMORY) * min(base, own):
        yield f"memory {base:,} MB and {own:,} MB"


def another_host(case: Case) -> Iterator[Finding]:
    """Facts and counters of the wrong host are worse than none."""
    for arm in case.arms:
        if case.value(arm, "server", "process_seen") is False:
            login = case.spec.resolved(arm).ssh
            yield Finding(
                rule="another_host",
                severity="warning",
                arms=[arm],
                message=f"{login}, which the study names as the host of {arm}, has no process of PostgreSQL that "
                "serves pgtrial's connection: its facts and counters may be those of another machine.",
                cure="Name the host that the server runs on. One in a container, or behind a pool of connections, is "
                "not recognised; and the login has to see the processes of others.",
            )


_MODEL = "QEMU TCG CPU"
"""How QEMU's software emulation names the processor of its machines of kind `max`."""

_DETECTED = frozenset({"qemu", "bochs"})
"""Emulators as systemd-detect-virt(1) names them; QEMU with hardware support is `kvm` there."""


def emulated_machine(case: Case) -> Iterator[Finding]:
    """Translated instructions have no cache, no page walk and no clock of a processor."""
    arms = [arm for arm in case.arms if _emulated(case, arm)]
    if not arms:
        return
    model = case.value(arms[0], "cpu", "model")
    yield Finding(
        rule="emulated_machine",
        severity="warning",
        arms=arms,
        message=f"The machine of {listed(arms)} is emulated in software"
        + (f" (its CPU is a {model})" if model else "")
        + ": times, and ratios of times, tell nothing of hardware.",
        cure="Take from this study that the arms work and what was in force; measure on a real machine, or on a "
        "virtual one whose hypervisor uses the processor (KVM).",
    )


def _emulated(case: Case, arm: str) -> bool:
    model = case.value(arm, "cpu", "model") or ""
    return _MODEL in model or case.value(arm, "os", "virtualisation") in _DETECTED
