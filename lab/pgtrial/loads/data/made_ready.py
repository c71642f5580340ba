"""Creates the roles, schemas and extensions that a dump needs in a new database. A superuser does this before the
statements of the dump run.

At this time the database has no function of the dump yet that these statements, with their superuser rights, could
call. The rows come later, and are inserted by the role that owns them.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from pgtrial.loads.data.restored_statements import DumpNeeds, Extension
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import Session
from pgtrial.model.errors import ArmError

_ROLES = "SELECT rolname FROM pg_catalog.pg_roles"
_WRAPPERS = "SELECT fdwname FROM pg_catalog.pg_foreign_data_wrapper"
_FIXED_SCHEMA = """SELECT schema FROM pg_catalog.pg_available_extension_versions
    WHERE name OPERATOR(pg_catalog.=) %s::pg_catalog.name AND schema IS NOT NULL"""
_PUBLIC = "public"


def make_ready(session: Session, needs: DumpNeeds, owner: str | None) -> list[str]:
    """Creates what the dumps need, in a session of a superuser. `owner` is the role that owns the database; None if the
    role of the session restores the dumps itself.

    Returns the roles that were created. Raises ArmError for an extension that PostgreSQL cannot create.
    """
    present = {str(name) for (name,) in session.execute(_ROLES).fetchall()}
    roles = [role for role in needs.roles if role not in present]
    for role in roles:
        _run(session, "CREATE ROLE {} NOLOGIN", role)
        if owner is not None:
            # with this GRANT a load may SET ROLE to the new role, which has only the rights that the owner grants it
            _run(session, "GRANT {} TO {}", role, owner)
    for group, member in needs.members:
        if {group, member} <= {*roles}:
            _run(session, "GRANT {} TO {}", group, member)
    for extension in needs.extensions.values():
        try:
            _create(session, extension, owner)
        except psycopg.Error as error:
            words = message_of(error)
            raise ArmError(
                f"the dump needs the extension {extension.name}, but CREATE EXTENSION failed: PostgreSQL says: {words}"
            ) from None
    if owner is not None:
        for (wrapper,) in session.execute(_WRAPPERS).fetchall():
            _run(session, "GRANT USAGE ON FOREIGN DATA WRAPPER {} TO {}", wrapper, owner)
    return roles


def _create(session: Session, extension: Extension, owner: str | None) -> None:
    fixed = session.execute(_FIXED_SCHEMA, (extension.name,)).fetchone()
    schema = extension.schema or (None if fixed else _PUBLIC)
    if schema is not None and not schema.startswith("pg_") and schema != _PUBLIC:
        authorization = sql.SQL("" if owner is None else " AUTHORIZATION {}").format(sql.Identifier(owner or ""))
        create = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
        session.execute(sql.Composed([create, authorization]))
    command = sql.SQL("CREATE EXTENSION IF NOT EXISTS {}{}{} CASCADE").format(
        sql.Identifier(extension.name),
        sql.SQL("" if schema is None else " SCHEMA {}").format(sql.Identifier(schema or "")),
        sql.SQL("" if extension.version is None else " VERSION {}").format(sql.Literal(extension.version or "")),
    )
    session.execute(command)


def _run(session: Session, statement: str, *names: str) -> None:
    session.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
