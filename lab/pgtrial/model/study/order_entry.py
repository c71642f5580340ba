"""The workload order-entry: the transactions of the TPC-C specification, on tables whose scale is their warehouses."""

ORDER_ENTRY = "order-entry"

MOST_WAREHOUSES = 10_000
"""The most warehouses that the engine can make."""
