"""How two forms of a query are compared: what people look for who give two queries, or one to each arm."""

from __future__ import annotations

TWO_FORMS = (
    "all arms run the same load; to compare two forms of a query, write a study file in which each arm makes a view or "
    'a function of one name by setup_sql, such as setup_sql = "CREATE VIEW form AS SELECT ...", and in which [load] '
    'has query = "SELECT * FROM form"'
)
"""Ends a message; a clause of its own."""

KEYS_OF_ALL_ARMS = ("query", "workload")
"""Keys of [load] that people write into an arm when they have two forms of a query."""
