"""Tables that unqualified names of the load reach, for sessions of the lab's own, which do not search users' schemas.

The lab's sessions do not have the load's search path, so their queries contain the schemas of it, in its order, as
values.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgtrial.loads.target import Session, schemas_of_load

_QUALIFIED = "format('%%I.%%I', (SELECT n.nspname FROM pg_namespace n WHERE n.oid = c.relnamespace), c.relname)"


def is_reached(session: Session) -> str:
    """Returns an SQL condition for relations that unqualified names of the load reach; pg_class is named `c` in it.

    Raises psycopg.Error.
    """
    path = array_of(schemas_of_load(session))
    earlier, its = (f"array_position({path}, {name}.relnamespace)" for name in ("earlier", "c"))
    return (
        f"(c.relnamespace = ANY ({path}) AND NOT EXISTS (SELECT FROM pg_class earlier "
        f"WHERE earlier.relname = c.relname AND {earlier} < {its}))"
    )


def qualified(session: Session, names: Iterable[str]) -> list[str]:
    """Returns the relations that these names reach, qualified and quoted as SQL has them; other names as they are.

    Raises psycopg.Error.
    """
    wanted = list(names)
    query = f"SELECT c.relname, {_QUALIFIED} FROM pg_class c WHERE c.relname = ANY (%s) AND {is_reached(session)}"
    found: dict[str, str] = dict(session.execute(query.encode(), (wanted,)).fetchall())
    return [found.get(name, name) for name in wanted]


def array_of(oids: Iterable[int]) -> str:
    """Returns SQL of an array of object identifiers."""
    return f"'{{{','.join(map(str, oids))}}}'::oid[]"
