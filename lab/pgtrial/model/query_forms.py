"""Texts for messages that tell the user how to compare two forms of a query or of a schema. Messages end with one of
these texts if the user gave SQL where pgtrial expected the set-up of an arm."""

from __future__ import annotations

TWO_FORMS = (
    "all arms would run the same SQL; to compare two forms of a query or two scripts, give each arm its own: "
    "'old=query=SELECT ...' 'new=query=SELECT ...', or old=workload=old.sql new=workload=new.sql"
)
"""A clause for the end of a message. It tells the user how to give each arm a query or script of its own."""

OBJECTS = (
    "an index, a view or a function is compared by arms that run SQL on their own copies of the data: "
    "'without=' 'index=setup=CREATE INDEX ON orders (customer)'; and two forms of a query by "
    "'old=query=SELECT ...' 'new=query=SELECT ...'"
)
"""A clause for the end of a message about SQL that the user gave where pgtrial expected the set-up of an arm. It tells
how to compare with and without an index, and how to compare two forms of a query."""

KEYS_OF_SQL = {"query": "query", "setup": "setup_sql", "setup_sql": "setup_sql"}
"""The keys of a set-up on the command line whose value is SQL, each with the key of an arm in the study file that it
sets."""

KEYS_OF_SCRIPTS = ("query", "workload")
"""The keys of `[load]` and of an arm that name the script or the query to run."""
