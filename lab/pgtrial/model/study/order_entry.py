"""The workload order-entry: the transactions of the TPC-C specification, on tables whose scale is their warehouses."""

from __future__ import annotations

from collections.abc import Sequence

ORDER_ENTRY = "order-entry"

MOST_WAREHOUSES = 10_000
"""The engine's limit."""


def refusal_of_order_entry(workloads: Sequence[str], scales: Sequence[int], *, check: bool) -> str | None:
    """What a load asks for that order-entry does not have, one sentence, or None."""
    if ORDER_ENTRY not in workloads:
        return f"check is for the workload {ORDER_ENTRY}; set it, or remove check" if check else None
    if max(scales) > MOST_WAREHOUSES:
        return f"scale is the number of warehouses of {ORDER_ENTRY}, at most {MOST_WAREHOUSES:,}"
    return None
