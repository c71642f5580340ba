"""Collects the facts of the server (version, build, locale, extensions, settings, provider) and of the client that
makes the load."""

from __future__ import annotations

import os
from collections.abc import Set
from contextlib import suppress
from typing import Any

import psutil
import psycopg

from pgtrial import __version__
from pgtrial.evidence.collect.files import NAMES
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.loads.process import engine_path
from pgtrial.loads.target import rows_for_users
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.posix import BOOT_ID
from pgtrial.model.errors import PgtrialError
from pgtrial.model.known_settings import KNOWN
from pgtrial.model.records import Record
from pgtrial.model.resources import resource
from pgtrial.store.machine_key import not_shown


class Signs(Record):
    """The names of settings, roles and functions by which the servers of one provider can be recognised. One of these
    names is enough."""

    provider: str
    settings: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()


SIGNS = [Signs(**signs) for signs in NAMES["signs"]]


def provider_of(settings: Set[str], roles: Set[str], functions: Set[str]) -> str | None:
    """Returns the provider to which one of a server's names of settings, roles or functions belongs; None if they
    belong to no known provider."""
    matching = (
        signs for signs in SIGNS if settings & signs.settings or roles & signs.roles or functions & signs.functions
    )
    return next((signs.provider for signs in matching), None)


@collector("server", server=True)
def provider(subject: Subject) -> dict[str, Any]:
    """Returns the fact `provider`: the managed service that the server belongs to; None for the user's own servers and
    for unknown services."""
    names_of = {}
    for kind, query in _QUERIES.items():
        names = sorted(set().union(*(getattr(signs, kind) for signs in SIGNS)))
        names_of[kind] = {row[0] for row in subject.rows(query, names) or []}
    return {"provider": provider_of(**names_of)}


_QUERIES = {
    "settings": "SELECT name FROM pg_settings WHERE name = ANY (%s)",
    "roles": "SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)",
    "functions": "SELECT proname FROM pg_proc WHERE proname = ANY (%s)",
}


@collector("server", server=True)
def seen_on_its_host(subject: Subject) -> dict[str, Any]:
    """Returns the fact `process_seen`, if pgtrial did not start the server: true if the server's process that serves
    this session exists on the machine that the study names as its host."""
    if subject.ours or subject.machine in (None, LOCAL):
        return {}
    return {"process_seen": subject.server_process is not None}


_PROGRAM = resource("program.sh", __package__)
"""The script that prints the path of a process's program file and its digest, with the tools of each operating system:
on FreeBSD procstat prints the path, and on macOS ps."""


@collector("server", server=True)
def server(subject: Subject) -> dict[str, Any]:
    """Returns the facts about the server itself: its version, the properties that initdb and the build of its programs
    have fixed (such as the locale), its extensions, and the settings that wait for a restart. Facts of the build are
    None if the role has no right to call pg_config()."""
    pg_config = dict(subject.rows("SELECT name, setting FROM pg_config()") or [])
    return {
        "version": (_setting(subject, "server_version") or "").split(" ")[0]
        or None,  # without the words that a packager added
        "version_full": subject.value("SELECT version()"),
        **{name: pg_config.get(key) for name, key in NAMES["build"].items()},
        **_program(subject),
        **{name: _setting(subject, name) for name in KNOWN.decided},
        **_locale(subject),
        "extensions": _extensions(subject),
        "pending_restart": [row[0] for row in subject.rows("SELECT name FROM pg_settings WHERE pending_restart") or []],
    }


@collector("client", files=[BOOT_ID])
def client(subject: Subject) -> dict[str, Any]:
    """Returns the facts of the client that makes the load: versions of pgtrial and its engine, and the CPUs of the
    lab's machine."""
    return {
        "pgtrial": __version__,
        "engine": _engine_version(),
        "cpus": _client_cpus(),
        "connection": "this machine" if subject.here else "over the network",
    }


def _program(subject: Subject) -> dict[str, Any]:
    """Returns the path and the digest of the server's program file. Two builds of one version may differ only in the
    digest."""
    if subject.server_process is None:
        return {}
    lines = (subject.host.output("sh", "-c", _PROGRAM, "sh", str(subject.server_process)) or "").splitlines()
    return {"program": lines[0], "program_sha256": lines[1].split()[0]} if len(lines) == 2 else {}


def _setting(subject: Subject, name: str) -> Any:
    return subject.value("SELECT current_setting(%s, true)", name)


def _locale(subject: Subject) -> dict[str, Any]:
    # the column with the provider's locale has a different name in each version, so the row is read as JSON
    row = subject.value("SELECT to_json(d) FROM pg_database d WHERE datname = current_database()") or {}
    providers = {"c": "libc", "i": "icu", "b": "builtin"}
    return {
        "encoding": _setting(subject, "server_encoding"),
        # before PostgreSQL 15 a database could not choose the provider of its locale
        "locale_provider": providers.get(row.get("datlocprovider", "c")) if row else None,
        "collate": row.get("datcollate"),
        "ctype": row.get("datctype"),
        "provider_locale": row.get("datlocale") or row.get("daticulocale"),
        "collation_version": row.get("datcollversion"),
    }


def _extensions(subject: Subject) -> list[str] | None:
    rows = subject.rows("SELECT extname || ' ' || extversion FROM pg_extension ORDER BY extname")
    return None if rows is None else [row[0] for row in rows]


def _client_cpus() -> int | None:
    """Returns the number of CPUs of the lab's machine that this process, and thus a load that it starts, may use."""
    with suppress(AttributeError, psutil.Error):  # macOS has no CPU affinity
        return len(psutil.Process().cpu_affinity() or []) or None
    return os.cpu_count()


def _engine_version() -> str | None:
    with suppress(PgtrialError):
        return LOCAL.tool([engine_path().absolute(), "--version"]).partition("\n")[0] or None
    return None


_SETTINGS = """SELECT name, pg_catalog.current_setting(name, true), source, vartype FROM pg_catalog.pg_settings
    ORDER BY name"""
_EMPTY = (None, "", "(disabled)")
"""The values of settings that are not set. archive_command is `(disabled)` if archive_mode is off."""
_UNSET = ("default", "override", "session")
"""The sources, in pg_settings, of settings that nobody has set. `session` means that this connection has set it, which
is not a property of the arm."""
_LABS_OWN = ("client", "client_encoding")
"""The values of `source` and `name` in pg_settings for the one setting that the lab asks for in its own connections,
which is therefore not a fact of the arm. All other settings with the source `client` come from the connection
parameters of the arm."""


def _settings(subject: Subject, *, chosen: bool) -> list[tuple[str, str, str]]:
    """Returns name, value and source: with `chosen`, of the settings that somebody has set, otherwise of all others.

    Settings that only name paths of the server are left out. The values are those of the load's sessions, whose role
    and database may have settings of their own. If the load's role has no right to see a value, it is the value in the
    lab's session. A value that may be a secret is replaced by a digest, which still shows whether two arms differ in
    it.
    """
    shown = {row[0]: row for row in subject.measured(lambda session: rows_for_users(session, _SETTINGS)) or []}
    if (of_load := subject.load_connection) is not None:
        with suppress(psycopg.Error):
            shown |= {row[0]: row for row in rows_for_users(of_load, _SETTINGS) if row[1] is not None}
    left_out = {*KNOWN.locations, *KNOWN.decided, *KNOWN.reported_by_server}
    return [
        (name, value if value in _EMPTY or KNOWN.may_be_shown(name, kind) else not_shown(name, value), source)
        for name, value, source, kind in shown.values()
        if name not in left_out and (source not in _UNSET and (source, name) != _LABS_OWN) == chosen
    ]


@collector("settings")
def settings(subject: Subject) -> dict[str, Any]:
    """Returns the settings of the server that somebody has set (in a file, on the command line, or for the role or
    database), with their values as SHOW prints them."""
    return {name: value for name, value, _ in _settings(subject, chosen=True)}


@collector("defaults")
def defaults(subject: Subject) -> dict[str, Any]:
    """Returns the settings that nobody has set, with their values as SHOW prints them: defaults, and values that the
    server computes."""
    return {name: value for name, value, _ in _settings(subject, chosen=False)}


@collector("sources")
def sources(subject: Subject) -> dict[str, Any]:
    """Returns where the value of each setting in `settings` comes from, in the words of pg_settings.source."""
    return {name: source for name, _, source in _settings(subject, chosen=True)}
