"""The settings that the lab itself makes: the same in every embedded arm, all of them in this one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pgtrial.loads.data.data import LOADING_WAL_MB, Data, prefilled_wal_mb
from pgtrial.model.errors import StudyError

LAB_SETTINGS = {
    "listen_addresses": "",  # nobody but the private socket's owner can connect
    "log_checkpoints": "on",  # a checkpoint inside the measured part has to be seen
    "log_autovacuum_min_duration": "0",  # so has an autovacuum
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "lc_messages": "C",
}
"""Beyond these, an arm has PostgreSQL's defaults and what the study says; a study's own value wins."""

_RESERVED = {
    "data_directory": "every trial has a data directory of its own",
    "config_file": "every trial has a configuration of its own",
    "hba_file": "access is by the private socket alone",
    "ident_file": "access is by the private socket alone",
    "unix_socket_directories": "every server has a private socket directory",
    "unix_socket_permissions": "every server has a private socket directory",
    "external_pid_file": "pgtrial finds its servers by their data directory",
    "logging_collector": "the server's log belongs to the trial",
    "log_destination": "the server's log belongs to the trial",
    "include": "it is a directive and no setting",
    "include_dir": "it is a directive and no setting",
    "include_if_exists": "it is a directive and no setting",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")

CONFIGURATION = "pgtrial.conf"
"""File in the data directory, included last by its postgresql.conf."""


def loading_settings(data: Data) -> dict[str, str]:
    """Settings while a template is loaded: fast and not durable, for the template is flushed as a whole afterwards."""
    return {
        "fsync": "off",
        "synchronous_commit": "off",
        "autovacuum": "off",
        "shared_buffers": "256MB",
        "maintenance_work_mem": "256MB",
        "max_wal_size": f"{LOADING_WAL_MB}MB",
        "min_wal_size": f"{prefilled_wal_mb(data)}MB",
    }


def check_settings(arm: str, settings: Mapping[str, str]) -> None:
    """Raise StudyError for a name that is none, or that pgtrial keeps to itself."""
    for name in settings:
        if not _NAME.fullmatch(name):
            raise StudyError(f"arms.{arm}: {name!r} is not the name of a PostgreSQL setting; correct it")
        if name.lower() in _RESERVED:
            raise StudyError(f"arms.{arm}: {name} cannot be set, because {_RESERVED[name.lower()]}; remove it")


def configuration(settings: Mapping[str, str], socket_directory: Path) -> str:
    """The included file: the lab's settings, then the arm's."""
    chosen = {name.lower(): value for name, value in settings.items()}
    everything = {**LAB_SETTINGS, **chosen, "unix_socket_directories": str(socket_directory)}
    return "".join(f"{name} = {_quoted(value)}\n" for name, value in everything.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"
