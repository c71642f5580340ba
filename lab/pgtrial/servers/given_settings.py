"""Settings of a given server that a study changes: by ALTER SYSTEM, written down before, and put back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from pgtrial.loads.target import Session, Target, value
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import SECRETS

_PREFIX = "given-settings-"


def write_down(run: Path, arm: str, target: Target, previous: dict[str, str | None]) -> Path:
    """Record in a run's directory the values (None: not set by ALTER SYSTEM) that `restore` puts back.

    The file, one per arm, is on disk when this returns, and is to be removed when the values are back. No password is
    written.
    """
    path = run / f"{_PREFIX}{arm.encode().hex()}.json"
    address = {"host": target.host, "port": target.port, "user": target.user, "dbname": target.dbname}
    address |= {"name": target.name} if target.name is not None else {}
    extra = {name: value for name, value in target.extra.items() if name not in SECRETS}
    content = {"arm": arm, "target": address, "extra": extra, "previous": previous}
    LOCAL.write_text(path, json.dumps(content), mode=0o600, durable=True)
    return path


def restore(target: Target, previous: dict[str, str | None]) -> None:
    """Put the former ALTER SYSTEM values back and reload. Raises psycopg.Error."""
    with target.connect() as connection:
        for name, value in previous.items():
            connection.execute(alter_system(name, value))
        connection.execute("SELECT pg_reload_conf()")


def alter_system(name: str, value: str | None) -> sql.Composed:
    """ALTER SYSTEM SET, or RESET for None; a dotted name is quoted part by part."""
    setting = sql.Identifier(*name.split("."))
    if value is None:
        return sql.SQL("ALTER SYSTEM RESET {}").format(setting)
    return sql.SQL("ALTER SYSTEM SET {} = {}").format(setting, sql.Literal(value))


def pending(run: Path) -> list[str]:
    """The settings that the run of a crashed lab has changed, in words; no server is asked."""
    return [f"settings {', '.join(content['previous'])} of {target.label}" for _, content, target in _records(run)]


def undo(run: Path) -> list[str]:
    """Put back what a run changed and left so; returns a sentence for each journal that could not be obeyed."""
    failures = []
    for path, content, target in _records(run):
        try:
            restore(target, content["previous"])
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[-1]
            failures.append(
                f"The settings {', '.join(content['previous'])} of {target.label} could not be put back ({reason}); "
                "once it can be reached, run pgtrial cleanup with PGPASSWORD or .pgpass set for it."
            )
        else:
            path.unlink()
    return failures


def _records(run: Path) -> Iterator[tuple[Path, dict[str, Any], Target]]:
    for path in sorted(run.glob(f"{_PREFIX}*.json")):
        content = json.loads(path.read_text())
        yield path, content, Target(**content["target"], password=os.environ.get("PGPASSWORD"), extra=content["extra"])


def previous_value(connection: Session, arm: str, name: str) -> str | None:
    """The present ALTER SYSTEM value of a setting; None: there is none. Raises StudyError if it may not be changed."""
    row = connection.execute(
        "SELECT context, source, sourcefile, reset_val FROM pg_settings WHERE lower(name) = lower(%s)", (name,)
    ).fetchone()
    if row is None:
        raise StudyError(f"arms.{arm}: the server knows no setting {name}; correct it, or install what defines it")
    context, source, file, present = row
    if context in ("internal", "postmaster"):
        raise StudyError(
            f"arms.{arm}: {name} takes effect at a restart only, and pgtrial does not restart given servers; "
            "set it there yourself and remove it from the study"
        )
    if not _may_alter(connection, name) or (source == "configuration file" and file is None):
        can_be_granted = connection.info.server_version >= 150000
        grants = "grant it (GRANT ALTER SYSTEM ON PARAMETER, pg_read_all_settings)"
        raise StudyError(
            f"arms.{arm}: the role {connection.info.user} may not set {name} by ALTER SYSTEM and see its former value; "
            f"{grants if can_be_granted else 'name a superuser in the dsn'}, or remove the setting from the study"
        )
    return str(present) if file is not None and file.endswith("postgresql.auto.conf") else None


def _may_alter(connection: Session, name: str) -> bool:
    if connection.info.server_version >= 150000:
        return bool(value(connection, "SELECT has_parameter_privilege(%s, 'ALTER SYSTEM')", name))
    return bool(value(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"))


def is_in_force(connection: Session, name: str) -> bool:
    """Whether the value that ALTER SYSTEM has set is the one that counts in this session."""
    query = (
        "SELECT source = 'configuration file' AND coalesce(sourcefile LIKE '%%postgresql.auto.conf', true) "
        "FROM pg_settings WHERE lower(name) = lower(%s)"
    )
    return bool(value(connection, query, name))
