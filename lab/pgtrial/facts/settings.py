"""All settings of the server, apart from those that merely say where this trial's server lives."""

from __future__ import annotations

from typing import Any

from pgtrial.facts.collect import Subject, collector

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


def _settings(subject: Subject) -> list[tuple[str, str, bool]]:
    rows = subject.rows(_QUERY) or []
    left_out = PLACES | REPORTED_BY_SERVER
    # `client` and `session` are this very connection's, and no property of the arm
    return [(name, value, source in _UNSET) for name, value, source in rows if name not in left_out]


@collector("settings")
def settings(subject: Subject) -> dict[str, Any]:
    """What is not at its default, as SHOW prints it."""
    return {name: value for name, value, unset in _settings(subject) if not unset}


@collector("defaults")
def defaults(subject: Subject) -> dict[str, Any]:
    """What nobody set, as SHOW prints it: built-in defaults, and values that the server works out by itself."""
    return {name: value for name, value, unset in _settings(subject) if unset}
