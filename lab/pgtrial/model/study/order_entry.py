"""The workload order-entry: the transactions of the TPC-C specification, on tables whose scale is their warehouses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ORDER_ENTRY = "order-entry"

MOST_WAREHOUSES = 10_000
"""The engine's limit."""


def refusal_of_order_entry(workloads: Sequence[str], scales: Sequence[int], own: Mapping[str, bool]) -> str | None:
    """What a load asks for that order-entry does not have, one sentence, or None; `own` are the keys for it alone."""
    if ORDER_ENTRY not in workloads:
        given = next((key for key, is_set in own.items() if is_set), None)
        return f"{given} is for the workload {ORDER_ENTRY}; set it, or remove {given}" if given else None
    if max(scales) > MOST_WAREHOUSES:
        return f"scale is the number of warehouses of {ORDER_ENTRY}, at most {MOST_WAREHOUSES:,}"
    return None
