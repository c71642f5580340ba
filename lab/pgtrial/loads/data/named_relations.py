"""Finds the relations of a server that the SQL of a load uses: those that the SQL names, and those on which they
depend.

PostgreSQL knows the dependencies of views, and of functions with a body BEGIN ATOMIC. Other functions are only texts to
PostgreSQL, so pgtrial searches them for names like the load's own SQL. Names that a program composes at run time are
not found.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass, field

from pgtrial.loads.named_objects import NAME, QUALIFIED
from pgtrial.loads.target import Session

_SYSTEM = "SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_' OR nspname = 'information_schema'"
_RELATIONS = f"""SELECT oid, relname, relkind::text FROM pg_class
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace NOT IN ({_SYSTEM})"""
_FUNCTIONS = """SELECT p.oid, p.proname, p.prosrc || coalesce({body}, '')
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE l.lanname NOT IN ('internal', 'c') AND p.pronamespace NOT IN ({system})"""
_BODY_SINCE = 140000
_DEPENDENCIES = """SELECT 'relation', r.ev_class, d.refclassid = 'pg_proc'::regclass, d.refobjid
    FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
    UNION SELECT 'function', d.objid, d.refclassid = 'pg_proc'::regclass, d.refobjid FROM pg_depend d
    WHERE d.classid = 'pg_proc'::regclass AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
    UNION SELECT 'relation', inhparent, false, inhrelid FROM pg_inherits
    UNION SELECT 'changed', tgrelid, true, tgfoid FROM pg_trigger WHERE NOT tgisinternal"""
"""SQL that lists dependencies between objects. A row has the kind and the OID of the dependent object, whether the
object on which it depends is a function, and the OID of that object."""

_CHANGES = re.compile(
    r"\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?|refresh\s+materialized\s+view"
    rf"(?:\s+concurrently)?|copy(?=\s+{QUALIFIED}\s*(?:\([^)]*\)\s*)?from\b)|"
    rf"create\s+(?:unlogged\s+)?table(?:\s+if\s+not\s+exists)?)\s+(?:only\s+)?({QUALIFIED})",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w$]+")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""The translation of an unquoted name to lower case as PostgreSQL does it in UTF-8: letters beyond ASCII stay as they
are."""

_Object = tuple[str, int]
"""An object as a pair of its kind and its OID. The kind is `relation`, `function` or `changed`, which is a relation
that the load changes."""


@dataclass(frozen=True)
class UsedRelations:
    """The OIDs of all relations that a load uses (`used`), and of the relations that its SQL changes (`changed`)."""

    used: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()


def used_relations(session: Session, texts: Iterable[str]) -> UsedRelations:
    """Returns the relations on a server that SQL texts use, as far as the texts name them. Raises psycopg.Error if a
    query on the server's catalogs fails.

    If the texts change a relation, the relations that its trigger functions use are included.
    """
    search = _Search(session)
    for text in texts:
        search.read(text)
    return UsedRelations(
        frozenset(oid for kind, oid in search.found if kind == "relation"),
        frozenset(oid for kind, oid in search.found if kind == "changed"),
    )


def changed_in(texts: Iterable[str]) -> set[str]:
    """Returns the names, without schemas, of the tables that statements in these SQL texts change or create."""
    names = (re.findall(NAME, qualified)[-1] for text in texts for qualified in _CHANGES.findall(text))
    return {_as_stored(name) for name in names}


def _as_stored(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.translate(_LOWER)


@dataclass
class _Search:
    """A search on one server: the objects that were found so far, and the contents of the server's catalogs, by which
    the objects that they use are found."""

    session: Session
    found: set[_Object] = field(default_factory=set)

    def __post_init__(self) -> None:
        body = "pg_get_function_sqlbody(p.oid)" if self.session.info.server_version >= _BODY_SINCE else "NULL"
        functions = self.session.execute(_FUNCTIONS.format(body=body, system=_SYSTEM).encode()).fetchall()
        self._texts: dict[_Object, str] = {("function", oid): str(text) for oid, _, text in functions}
        self._named: dict[str, list[_Object]] = {}
        relations = self.session.execute(_RELATIONS.encode()).fetchall()
        self._copies = {oid for oid, _, kind in relations if kind == "m"}
        for kind, objects in (("relation", relations), ("function", functions)):
            for oid, name, _ in objects:
                self._named.setdefault(str(name), []).append((kind, oid))
        self._odd_names = [name for name in self._named if not _WORD.fullmatch(name)]
        self._uses: dict[_Object, list[_Object]] = {}
        for kind, user, is_function, used in self.session.execute(_DEPENDENCIES.encode()).fetchall():
            self._uses.setdefault((kind, user), []).append(("function" if is_function else "relation", used))

    def read(self, text: str) -> None:
        """Adds the relations and functions that an SQL text names, and all objects that they use in turn."""
        words = {form for word in _WORD.findall(text) for form in (word, word.lower(), word.translate(_LOWER))}
        # a name that is not a single word, such as "order-items", is in quotes, or is an argument of format()
        names = {*words, *(name for name in self._odd_names if name.replace('"', '""') in text)}
        self._add(one for name in names for one in self._named.get(name, ()))
        self._add(
            ("changed", oid)
            for name in changed_in([text])
            for kind, oid in self._named.get(name, ())
            if kind != "function"
        )

    def _add(self, objects: Iterable[_Object]) -> None:
        todo = list(objects)
        while todo:
            one = todo.pop()
            if one in self.found:
                continue
            self.found.add(one)
            kind, oid = one
            todo += self._uses.get(one, ())
            if kind == "changed" and oid not in self._copies:
                # a statement that changes a table or view changes its partitions or underlying tables too; REFRESH of a
                # materialized view changes only the view itself
                todo += [("changed", used) for of, used in self._uses.get(("relation", oid), ()) if of == "relation"]
            if (text := self._texts.pop(one, None)) is not None:
                self.read(text)
