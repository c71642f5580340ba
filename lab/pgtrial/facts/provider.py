"""Who runs the server, as far as SQL tells: managed services leave settings, roles and functions of their own."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from pgtrial.facts.collect import Subject, collector


@dataclass(frozen=True)
class Signs:
    """What only one provider's servers have; any one of them tells."""

    provider: str
    settings: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()


SIGNS = (
    # Aurora has the signs of RDS too, and so comes first
    Signs("Amazon Aurora", functions=frozenset({"aurora_version"})),
    Signs("Amazon RDS", frozenset({"rds.extensions"}), frozenset({"rdsadmin"})),
    Signs("Google AlloyDB", roles=frozenset({"alloydbsuperuser"})),
    Signs("Google Cloud SQL", frozenset({"cloudsql.supported_extensions"}), frozenset({"cloudsqlsuperuser"})),
    Signs("Azure Database for PostgreSQL", frozenset({"azure.extensions"}), frozenset({"azure_pg_admin"})),
    Signs("Neon", frozenset({"neon.timeline_id"}), frozenset({"neon_superuser"})),
    Signs("Supabase", frozenset({"supautils.reserved_roles"}), frozenset({"supabase_admin"})),
)


def provider_of(settings: Set[str], roles: Set[str], functions: Set[str]) -> str | None:
    """The provider whose signs are among the names of a server; None: none that is known."""
    for signs in SIGNS:
        if settings & signs.settings or roles & signs.roles or functions & signs.functions:
            return signs.provider
    return None


@collector("server")
def provider(subject: Subject) -> dict[str, Any]:
    """The managed service that the server belongs to. Null for a server of one's own, and for services not known."""
    if subject.connection is None:
        return {}
    known = [sorted(set().union(*(getattr(signs, kind) for signs in SIGNS))) for kind in _QUERIES]
    found = [
        frozenset(row[0] for row in subject.rows(query, names) or [])
        for query, names in zip(_QUERIES.values(), known, strict=True)
    ]
    return {"provider": provider_of(*found)}


_QUERIES = {
    "settings": "SELECT name FROM pg_settings WHERE name = ANY (%s)",
    "roles": "SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)",
    "functions": "SELECT proname FROM pg_proc WHERE proname = ANY (%s)",
}
