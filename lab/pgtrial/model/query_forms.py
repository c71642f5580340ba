"""The advice that ends a message when a user gave SQL where a set-up is expected: how two forms of a query or a schema
are compared."""

from __future__ import annotations

TWO_FORMS = (
    "all arms would run it; to compare two forms of a query or two scripts, give each arm its own: "
    "'old=query=SELECT ...' 'new=query=SELECT ...', or old=workload=old.sql new=workload=new.sql"
)
"""The end of a message: a clause of its own that tells how to give each arm its own query or script."""

OBJECTS = (
    "an index, a view or a function is compared by a study file in which an arm makes it by setup_sql:\n"
    "  [arms.without]\n"
    "  [arms.index]\n"
    '  setup_sql = "CREATE INDEX ON orders (customer)"\n'
    "and two forms of a query by 'old=query=SELECT ...' 'new=query=SELECT ...'"
)
"""The end of a message about SQL that was given where a set-up is expected: a clause of its own, and lines for a study
file."""

KEYS_OF_SCRIPTS = ("query", "workload")
"""The keys of [load] and of an arm that say which script is run."""
