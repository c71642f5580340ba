"""How two forms of a query, or of the schema, are compared: what people look for who give SQL in place of a set-up."""

from __future__ import annotations

TWO_FORMS = (
    "all arms run the same load; to compare two forms of a query, write a study file in which each arm makes a view or "
    'a function of one name by setup_sql, such as setup_sql = "CREATE VIEW form AS SELECT ...", and in which [load] '
    'has query = "SELECT * FROM form"'
)
"""Ends a message; a clause of its own."""

OBJECTS = (
    "an index, a view or a function is compared by a study file in which an arm makes it by setup_sql:\n"
    "  [arms.without]\n"
    "  [arms.index]\n"
    '  setup_sql = "CREATE INDEX ON orders (customer)"'
)
"""Ends a message on SQL that stands where a set-up is expected; a clause of its own, and lines for a study file."""

KEYS_OF_ALL_ARMS = ("query", "workload")
"""Keys of [load] that people write into an arm when they have two forms of a query."""
