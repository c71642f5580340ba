"""Rule on arms that have hosts of their own: what differs in their hardware is a part of what is compared."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.facts.audit import Case, listed, rule
from pgtrial.store.records import Finding

_SAME = (("cpu", "model", "CPU"), ("cpu", "logical", "logical CPUs"), ("storage", "device_model", "disk"))
_MEMORY = 0.1
"""Systems tell of one machine's memory some percent more or less."""


@rule
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
