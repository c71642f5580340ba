"""Finds the tables that unqualified names in the load refer to, for the lab's own sessions, whose own search path has
no schema of a user.

Queries of these sessions contain the OIDs of the schemas in the load's search path, in the order of the path.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgtrial.loads.target import Session, schemas_of_load

_QUALIFIED = "format('%%I.%%I', (SELECT n.nspname FROM pg_namespace n WHERE n.oid = c.relnamespace), c.relname)"


def is_reached(session: Session) -> str:
    """Returns an SQL condition for the relations that unqualified names in the load refer to. In the condition pg_class
    has the alias `c`.

    Raises psycopg.Error if the query for the load's search path fails.
    """
    path = array_of(schemas_of_load(session))
    earlier, its = (f"array_position({path}, {name}.relnamespace)" for name in ("earlier", "c"))
    return (
        f"(c.relnamespace = ANY ({path}) AND NOT EXISTS (SELECT FROM pg_class earlier "
        f"WHERE earlier.relname = c.relname AND {earlier} < {its}))"
    )


def qualified(session: Session, names: Iterable[str]) -> list[str]:
    """Returns, for each unqualified name, the qualified and quoted name of the relation that it refers to in the load.
    A name that refers to no relation is returned unchanged.

    Raises psycopg.Error if a query fails.
    """
    wanted = list(names)
    query = f"SELECT c.relname, {_QUALIFIED} FROM pg_class c WHERE c.relname = ANY (%s) AND {is_reached(session)}"
    found: dict[str, str] = dict(session.execute(query.encode(), (wanted,)).fetchall())
    return [found.get(name, name) for name in wanted]


def array_of(oids: Iterable[int]) -> str:
    """Returns an SQL literal for an array of OIDs."""
    return f"'{{{','.join(map(str, oids))}}}'::oid[]"
