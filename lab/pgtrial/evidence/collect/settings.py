"""All settings of the server, apart from those that merely say where this trial's server lives."""

from __future__ import annotations

from typing import Any

from pgtrial.evidence.collect.subject import Subject, collector

PLACES = frozenset(
    {
        "application_name",
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "log_directory",
        "log_filename",
        "port",
        "unix_socket_directories",
    }
)
"""Names, paths and addresses: they differ from trial to trial and say nothing about speed."""

REPORTED_BY_SERVER = frozenset(
    {
        "block_size",
        "data_checksums",
        "debug_assertions",
        "huge_pages_status",
        "in_hot_standby",
        "lc_collate",
        "lc_ctype",
        "server_encoding",
        "server_version",
        "server_version_num",
        "wal_block_size",
        "wal_segment_size",
    }
)
"""Presets, which are facts of the group `server`."""

_QUERY = "SELECT name, current_setting(name, true), source FROM pg_settings ORDER BY name"
_UNSET = ("default", "override", "client", "session")
"""Sources of what nobody set; `client` and `session` are this very connection's, and no property of the arm."""


def _settings(subject: Subject) -> list[tuple[str, str, str]]:
    rows = subject.rows(_QUERY) or []
    left_out = PLACES | REPORTED_BY_SERVER
    return [(name, value, source) for name, value, source in rows if name not in left_out]


@collector("settings")
def settings(subject: Subject) -> dict[str, Any]:
    """What is not at its default, as SHOW prints it."""
    return {name: value for name, value, source in _settings(subject) if source not in _UNSET}


@collector("defaults")
def defaults(subject: Subject) -> dict[str, Any]:
    """What nobody set, as SHOW prints it: built-in defaults, and values that the server works out by itself."""
    return {name: value for name, value, source in _settings(subject) if source in _UNSET}


@collector("sources")
def sources(subject: Subject) -> dict[str, Any]:
    """Where the value of each setting in `settings` comes from, as pg_settings names it."""
    return {name: source for name, _, source in _settings(subject) if source not in _UNSET}
