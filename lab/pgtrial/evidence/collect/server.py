"""Collects the server: version, build, locale, extensions, settings, provider; and the engine that makes the load."""

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
from pgtrial.store.machine_key import not_told


class Signs(Record):
    """The names of settings, roles and functions that only one provider's servers have. A server with one of them is
    that provider's."""

    provider: str
    settings: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()


SIGNS = [Signs(**signs) for signs in NAMES["signs"]]


def provider_of(settings: Set[str], roles: Set[str], functions: Set[str]) -> str | None:
    """Returns the provider whose signs are among the names of a server; None if no known provider's are."""
    matching = (
        signs for signs in SIGNS if settings & signs.settings or roles & signs.roles or functions & signs.functions
    )
    return next((signs.provider for signs in matching), None)


@collector("server", server=True)
def provider(subject: Subject) -> dict[str, Any]:
    """Returns the managed service that the server belongs to; null for the user's own servers and unknown services."""
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
    """Returns, for a server that is not the lab's, as `process_seen` whether the host has the process that serves the
    lab."""
    if subject.ours or subject.machine in (None, LOCAL):
        return {}
    return {"process_seen": subject.server_process is not None}


_PROGRAM = resource("program.sh", __package__)
"""The script that prints the path of a process's program and its digest, with the tools of each system: procstat is
FreeBSD's, and on macOS ps prints the path."""


@collector("server", server=True)
def server(subject: Subject) -> dict[str, Any]:
    """Returns the facts that initdb and the build decided. The build is unknown to roles that may not call
    pg_config."""
    pg_config = dict(subject.rows("SELECT name, setting FROM pg_config()") or [])
    return {
        "version": (_setting(subject, "server_version") or "").split(" ")[0] or None,  # without the packager's words
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
    """Returns the facts of the machine and the program that make the load."""
    return {
        "pgtrial": __version__,
        "engine": _engine_version(),
        "cpus": _client_cpus(),
        "connection": "this machine" if subject.here else "over the network",
    }


def _program(subject: Subject) -> dict[str, Any]:
    """Returns the server's program file and its digest, since two builds of one version may differ in nothing else."""
    if subject.server_process is None:
        return {}
    lines = (subject.host.output("sh", "-c", _PROGRAM, "sh", str(subject.server_process)) or "").splitlines()
    return {"program": lines[0], "program_sha256": lines[1].split()[0]} if len(lines) == 2 else {}


def _setting(subject: Subject, name: str) -> Any:
    return subject.value("SELECT current_setting(%s, true)", name)


def _locale(subject: Subject) -> dict[str, Any]:
    # the column of the provider's locale has another name in each version; the row as JSON has any of them
    row = subject.value("SELECT to_json(d) FROM pg_database d WHERE datname = current_database()") or {}
    providers = {"c": "libc", "i": "icu", "b": "builtin"}
    return {
        "encoding": _setting(subject, "server_encoding"),
        # before PostgreSQL 15 a database could not choose its provider
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
    """Returns the number of CPUs that the load may use."""
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
"""The texts of settings without a value. `(disabled)` is archive_command's if archive_mode is off."""
_UNSET = ("default", "override", "session")
"""The sources of settings that nobody set. `session` is a setting of this connection, and no property of the arm."""
_LABS_OWN = ("client", "client_encoding")
"""The source and the name of the setting that the lab's connections ask for. All other settings with the source
`client` come from the arm's connection parameters."""


def _settings(subject: Subject, *, chosen: bool) -> list[tuple[str, str, str]]:
    """Returns name, value and source of the settings that somebody set, or (not `chosen`) of all others.

    Settings that only name places of the server are left out. The values are those of the load's sessions, whose role
    and database may have settings of their own; a value that this role may not see is the one that the lab's role sees.
    A text that may hold a secret is stored as a digest, which shows whether two arms differ in it, and not the text.
    """
    shown = {row[0]: row for row in subject.measured(lambda session: rows_for_users(session, _SETTINGS)) or []}
    if (of_load := subject.load_connection) is not None:
        with suppress(psycopg.Error):
            shown |= {row[0]: row for row in rows_for_users(of_load, _SETTINGS) if row[1] is not None}
    left_out = {*KNOWN.places, *KNOWN.decided, *KNOWN.reported_by_server}
    return [
        (name, value if value in _EMPTY or KNOWN.is_told(name, kind) else not_told(name, value), source)
        for name, value, source, kind in shown.values()
        if name not in left_out and (source not in _UNSET and (source, name) != _LABS_OWN) == chosen
    ]


@collector("settings")
def settings(subject: Subject) -> dict[str, Any]:
    """Returns the settings that are not at their default, as SHOW prints them."""
    return {name: value for name, value, _ in _settings(subject, chosen=True)}


@collector("defaults")
def defaults(subject: Subject) -> dict[str, Any]:
    """Returns the settings that nobody set, as SHOW prints them: defaults, and values that the server computes
    itself."""
    return {name: value for name, value, _ in _settings(subject, chosen=False)}


@collector("sources")
def sources(subject: Subject) -> dict[str, Any]:
    """Returns the source of each setting in `settings`, as pg_settings names it."""
    return {name: source for name, _, source in _settings(subject, chosen=True)}
