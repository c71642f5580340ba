"""Rule on the deployments of one arm: they were ordered alike, and are to be alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pgtrial.facts.audit import Case, compared, known_value, listed, rule, shortened
from pgtrial.store.records import Facts, Finding


@rule
def unlike_deployments(case: Case) -> Iterator[Finding]:
    """One finding for each fact in which an arm's deployments differ; unknown values are no difference."""
    for arm, deployments in case.deployments.items():
        for group, name in compared(deployments):
            told = _values(deployments, group, name)
            if len(told) > 1:
                values = listed(f"{shortened(value)} in {_numbers(numbers)}" for value, numbers in told)
                yield Finding(
                    rule="unlike_deployments",
                    severity="warning",
                    arms=[arm],
                    message=f"The deployments of {arm} differ in {group}.{name}: {values} (numbered from 1).",
                    cure="Order them alike, or give those that differ as arms of their own; as it is, the difference "
                    "is a part of what tells deployments apart.",
                )


def _values(deployments: Sequence[Facts], group: str, name: str) -> list[tuple[Any, list[int]]]:
    """Each known value with the deployments that have it, in the order of their numbers."""
    found: list[tuple[Any, list[int]]] = []
    for facts in deployments:
        value = known_value(facts, group, name)
        if value is None:
            continue
        known = next((numbers for other, numbers in found if other == value), None)
        if known is None:
            found.append((value, known := []))
        known.append(1 + (facts.deployment or 0))
    return found


def _numbers(numbers: Sequence[int]) -> str:
    return f"deployment{'s' if len(numbers) > 1 else ''} {listed(map(str, numbers))}"
