"""The workload order-entry: the transactions of the TPC-C specification. The scale is the number of warehouses in its
tables."""

ORDER_ENTRY = "order-entry"

MOST_WAREHOUSES = 10_000
"""The largest number of warehouses that the load engine can make."""
