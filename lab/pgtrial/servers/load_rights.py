"""Refuses loads on a given server that run as a superuser and would run code of other roles with a superuser's rights.

Functions that belong to triggers, rules, views, defaults, policies, indexes and operators run with the rights of the
role that uses the table. Among overloaded functions and operators, PostgreSQL chooses the one whose types fit best. If
the load of a superuser uses such an object of another role, that role can run its code as a superuser. pgtrial refuses
such a load before it changes anything. A load that runs as a role without superuser has only the rights of that role,
and is not refused.

pgtrial does not try to find out from the text of a user's statements which objects they use: names can be put together
from variables, and functions, casts and foreign keys lead to further objects. If a superuser's load has statements of
the user, pgtrial therefore refuses any database in which roles without superuser own objects. The statements of
pgtrial's own loads are known exactly, so that only the objects that they use matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.names import array_of, is_reached
from pgtrial.loads.target import Session, schemas_of_load, value
from pgtrial.servers.arm import Needs

_SHOWN = 3
"""The number of objects that an error message names."""

_IS_MIGHTY = """EXISTS (SELECT FROM unnest(ARRAY(SELECT oid FROM pg_roles WHERE rolsuper
        OR rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
        OR rolcreaterole AND current_setting('server_version_num')::int < 160000)) AS mighty
    WHERE pg_has_role(r.oid, mighty, 'MEMBER'))"""
"""The SQL condition that is true if the role `r` is a superuser or can become one: as a direct or indirect member of a
superuser role, or through programs and files on the server's machine. Before PostgreSQL 16, a role with CREATEROLE
counts too, since it may make itself a member of any role that is not a superuser, and so of the roles for such programs
and files."""

_IS_SUPERUSER = f"SELECT bool_or({_IS_MIGHTY}) FROM pg_roles r WHERE r.rolname IN (current_user, session_user)"
"""The query that tells whether this session has the rights of a superuser. The current role and the role that has
logged in both count, since code that runs in a session can switch back to the latter (RESET ROLE)."""

_OBJECTS = """SELECT o.class::regclass::text, o.shown, r.rolname, o.schema = ANY ({path}), o.is_overload, {used}
    FROM (
        SELECT 'pg_class'::regclass::oid, c.oid, c.oid::regclass::text, c.relowner, c.relnamespace,
            false, {of_data}
            FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
        UNION ALL SELECT 'pg_proc'::regclass, p.oid, p.oid::regprocedure::text, p.proowner, p.pronamespace,
            EXISTS (SELECT FROM pg_proc s WHERE s.proname = p.proname AND s.pronamespace = 'pg_catalog'::regnamespace),
            false FROM pg_proc p
        UNION ALL SELECT 'pg_operator'::regclass, x.oid, x.oid::regoperator::text, x.oprowner,
            x.oprnamespace, EXISTS (SELECT FROM pg_operator s
                WHERE s.oprname = x.oprname AND s.oprnamespace = 'pg_catalog'::regnamespace),
            false FROM pg_operator x
        UNION ALL SELECT 'pg_type'::regclass, t.oid, t.oid::regtype::text, t.typowner, t.typnamespace,
            EXISTS (SELECT FROM pg_type s WHERE s.typname = t.typname AND s.typnamespace = 'pg_catalog'::regnamespace),
            false FROM pg_type t WHERE t.typtype <> 'p'
                AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind <> 'c')
    ) AS o (class, oid, shown, owner, schema, is_overload, of_data) JOIN pg_roles r ON r.oid = o.owner
    WHERE NOT {is_mighty} ORDER BY 1, 2"""
"""The query for the objects of roles that are not superusers and cannot become superusers. Its columns are the catalog,
the object's name for messages, its owner, whether the schema is in the search path, whether pg_catalog has an object of
the same name, and whether the load's data or an object of a superuser uses the object."""

_USED = """o.of_data OR EXISTS (SELECT FROM pg_event_trigger e
        WHERE o.class = 'pg_proc'::regclass AND e.evtfoid = o.oid AND e.evtenabled <> 'D')
    OR EXISTS (SELECT FROM pg_inherits h JOIN pg_class parent ON parent.oid = h.inhparent
        JOIN pg_roles of_parent ON of_parent.oid = parent.relowner
        WHERE o.class = 'pg_class'::regclass AND h.inhrelid = o.oid AND of_parent.rolsuper)
    OR EXISTS (SELECT FROM pg_constraint f JOIN pg_class target ON target.oid = f.confrelid
        JOIN pg_roles of_target ON of_target.oid = target.relowner
        WHERE o.class = 'pg_class'::regclass AND f.contype = 'f' AND f.conrelid = o.oid AND of_target.rolsuper)
    OR EXISTS (SELECT FROM pg_depend d
        LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
        LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
        LEFT JOIN pg_attrdef a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
        LEFT JOIN pg_policy y ON d.classid = 'pg_policy'::regclass AND y.oid = d.objid
        LEFT JOIN pg_constraint n ON d.classid = 'pg_constraint'::regclass AND n.oid = d.objid AND n.contype = 'c'
        LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
        LEFT JOIN pg_index i ON i.indexrelid = c.oid
        LEFT JOIN pg_class by_it ON by_it.oid
            = coalesce(g.tgrelid, w.ev_class, a.adrelid, y.polrelid, nullif(n.conrelid, 0), i.indrelid, c.oid)
        LEFT JOIN pg_type t ON t.oid = CASE d.classid WHEN 'pg_type'::regclass THEN d.objid ELSE n.contypid END
        LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
        LEFT JOIN pg_operator x ON d.classid = 'pg_operator'::regclass AND x.oid = d.objid
        {statistics}
        JOIN pg_roles of_it ON of_it.oid
            = coalesce(by_it.relowner, t.typowner, p.proowner, x.oprowner, {statistics_owner})
        WHERE d.refclassid = o.class AND d.refobjid = o.oid AND of_it.rolsuper)"""
"""The SQL condition that is true if the load's data or an object of a superuser uses the object `o`: through event
triggers, triggers, rules and views, defaults, policies, checks, indexes, domains, operators, functions or statistics. A
foreign key that references a table of a superuser counts too, since deleting or changing rows of that table fires
triggers on the referencing table."""

_STATISTICS = "LEFT JOIN pg_statistic_ext s ON d.classid = 'pg_statistic_ext'::regclass AND s.oid = d.objid"
"""The part of `_USED` for statistics on expressions, which ANALYZE computes. PostgreSQL has them from version 14 on."""


@dataclass(frozen=True)
class _Object:
    catalog: str
    shown: str
    owner: str
    is_in_path: bool
    is_overload: bool
    is_used: bool

    @property
    def is_met(self) -> bool:
        """True if PostgreSQL may choose this object instead of a built-in one for a statement of pgtrial's own loads,
        since it overloads a built-in name and is in the search path."""
        return self.is_overload and self.is_in_path


def obstacle(session: Session, needs: Needs) -> str | None:
    """Returns the reason why the load must not run on this database as a superuser, as one sentence without a full
    stop. Returns None if the load may run.

    `session` is a session of the lab with the role of the load. Raises psycopg.Error.
    """
    if not _is_superuser(session):
        return None
    found = [one for one in _objects(session, needs.data) if needs.has_users_sql or one.is_used or one.is_met]
    return _refusal(session, found, "the load")


def obstacle_to_sql(session: Session, what: str) -> str | None:
    """Returns the reason why the user's own SQL must not run with the rights of this session's role, or None, like
    `obstacle`. Raises psycopg.Error.

    `what` names in the message what would run, such as `its SQL`.
    """
    return _refusal(session, _objects(session, []), what) if _is_superuser(session) else None


def _refusal(session: Session, found: list[_Object], what: str) -> str | None:
    if not found:
        return None
    names = [f"{one.shown} of {one.owner}" for one in found[:_SHOWN]]
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    tables = [one for one in found if one.catalog == "pg_class"]
    owner = (tables or found)[0].owner
    return (
        f"{what} would run as {session.info.user}, a superuser, on objects of roles without superuser "
        f"({', '.join(names)}{more}), whose triggers, functions and operators would run with a superuser's rights; "
        f"name a role without superuser in the dsn, such as user={owner}"
    )


def _is_superuser(session: Session) -> bool:
    with suppress(psycopg.errors.InsufficientPrivilege):  # a role that may not read pg_roles is not a superuser
        return bool(value(session, _IS_SUPERUSER))
    return False


def _objects(session: Session, load: Iterable[Data]) -> list[_Object]:
    reached = is_reached(session)
    of_data = " OR ".join(f"({data.relations(session)}) AND {reached}" for data in load) or "false"
    statistics, owner = (_STATISTICS, "s.stxowner") if session.info.server_version >= 140000 else ("", "NULL")
    used = _USED.format(statistics=statistics, statistics_owner=owner)
    query = _OBJECTS.format(path=array_of(schemas_of_load(session)), used=used, of_data=of_data, is_mighty=_IS_MIGHTY)
    return [_Object(*row) for row in session.execute(query.encode()).fetchall()]
