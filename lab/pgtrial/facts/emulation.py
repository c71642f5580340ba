"""Rule on machines whose processor is a program: what is slow there tells nothing of hardware."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.facts.audit import Case, listed, rule
from pgtrial.store.records import Finding

_MODEL = "QEMU TCG CPU"
"""How QEMU's software emulation names the processor of its machines of kind `max`."""

_DETECTED = frozenset({"qemu", "bochs"})
"""Emulators as systemd-detect-virt(1) names them; QEMU with hardware support is `kvm` there."""


@rule
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
