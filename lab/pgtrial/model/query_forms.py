"""How two forms of a query, or of the schema, are compared: what people look for who give SQL in place of a set-up."""

from __future__ import annotations

TWO_FORMS = (
    "all arms would run it; to compare two forms of a query or two scripts, give each arm its own: "
    "'old=query=SELECT ...' 'new=query=SELECT ...', or old=workload=old.sql new=workload=new.sql"
)
"""Ends a message; a clause of its own."""

OBJECTS = (
    "an index, a view or a function is compared by a study file in which an arm makes it by setup_sql:\n"
    "  [arms.without]\n"
    "  [arms.index]\n"
    '  setup_sql = "CREATE INDEX ON orders (customer)"\n'
    "and two forms of a query by 'old=query=SELECT ...' 'new=query=SELECT ...'"
)
"""Ends a message on SQL that stands where a set-up is expected; a clause of its own, and lines for a study file."""

KEYS_OF_SCRIPTS = ("query", "workload")
"""The keys of [load] and of an arm that say which script is run."""
