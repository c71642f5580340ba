"""Advice for messages: what to write in order to compare two forms of a query or of a schema. Messages end with it if
the user gave SQL where a set-up is expected."""

from __future__ import annotations

TWO_FORMS = (
    "all arms would run it; to compare two forms of a query or two scripts, give each arm its own: "
    "'old=query=SELECT ...' 'new=query=SELECT ...', or old=workload=old.sql new=workload=new.sql"
)
"""A clause at the end of a message. It says how to give each arm a query or script of its own."""

OBJECTS = (
    "an index, a view or a function is compared by arms that run SQL on their own copies of the data: "
    "'without=' 'index=setup=CREATE INDEX ON orders (customer)'; and two forms of a query by "
    "'old=query=SELECT ...' 'new=query=SELECT ...'"
)
"""A clause at the end of a message about SQL that was given where a set-up is expected."""

KEYS_OF_SQL = {"query": "query", "setup": "setup_sql", "setup_sql": "setup_sql"}
"""The keys of a set-up on the command line whose value is SQL, each with the key of an arm that it stands for."""

KEYS_OF_SCRIPTS = ("query", "workload")
"""The keys of `[load]` and of an arm that name the script or the query to run."""
