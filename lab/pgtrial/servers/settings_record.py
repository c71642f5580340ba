"""The record of the settings that a study has changed on a given server, and the functions that restore the former
settings.

If somebody else has changed a line of postgresql.auto.conf in the meantime, that line stays as it is.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import psycopg

from pgtrial.loads.target import TIME_LIMITS, Session, Target, value
from pgtrial.machines.journal import NotUndone, Occasion
from pgtrial.machines.machine import Machine
from pgtrial.model.errors import ArmError, one_line
from pgtrial.model.quoting import quoted
from pgtrial.servers.auto_conf import alter_system, moved, read_auto_conf, values_of
from pgtrial.servers.server_record import ServerRecord

_OF_ANY_ROLE = ("local_preload_libraries",)
_OF_SUPERUSERS = ("session_preload_libraries",)
"""The setting for libraries that each session loads at its start, which only superusers may override for a session. Any
role may override the similar setting in `_OF_ANY_ROLE`."""
_LIBRARY_PATH = "dynamic_library_path"
"""The setting for the directories in which the server looks for libraries that a session loads."""
_OF_CONNECTIONS = dict.fromkeys((*TIME_LIMITS, "post_auth_delay"), "0") | {"exit_on_error": "off"}
"""Settings, in addition to those for libraries, that can end or delay each session at its start. Each has the value
with which it has no such effect. Any role may set them for a session."""
_RELOAD_TIMEOUT_S = 60.0
_POLL_S = 0.02
_GONE_S = 5.0
"""The time to wait for the end of the session of a killed lab, in seconds. That session may still execute a
statement."""
_PAST_LIMITS_S = 10.0
_ENDED_BY_LIMIT = re.compile("due to .* timeout")
"""The message with which PostgreSQL ends a session at one of TIME_LIMITS."""
_SESSION = """SELECT pid::text, extract(epoch FROM backend_start)::text, system_identifier::text
    FROM pg_stat_activity, pg_control_system() WHERE pid = pg_backend_pid()"""
_STILL_THERE = """SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND pid::text = %s
    AND extract(epoch FROM backend_start)::text = %s"""


@dataclass(frozen=True)
class SettingsRecord(ServerRecord):
    """The values that a study writes into postgresql.auto.conf, and the values that the file had before."""

    of_what = "settings"
    prefix = "given-settings-"

    former: Mapping[str, str | None]
    """The value of each setting before the study; None if the file had no line for it."""
    written: Mapping[str, str | None]
    """The value that the study writes for each setting; None if the study removes the line."""
    order: Sequence[str] | None
    """The names of all settings in the file before the study, in their order. It is None if the role may not read the
    file; then the file had no line for any setting of `former`."""
    maker: Mapping[str, str]
    """Identifies the session that makes the changes: its `pid`, its start time as `start`, and the system identifier of
    its server as `system`."""

    @property
    def what(self) -> str:
        return f"settings {', '.join(self.former)} of {self.target.label}"

    def changed(self) -> Mapping[str, Any]:
        return {
            "former": dict(self.former),
            "written": dict(self.written),
            "order": None if self.order is None else list(self.order),
            "maker": dict(self.maker),
        }

    @classmethod
    def of_changed(cls, arm: str, target: Target, content: Mapping[str, Any]) -> Self:
        return cls(arm, target, content["former"], content["written"], content["order"], content["maker"])

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Restores the former settings. Returns a sentence for each setting that somebody else has changed in the
        meantime, and that stays as it is."""
        try:
            return [f"{sentence}." for sentence in put_back_anew(self, self.target.connect)]
        except (psycopg.Error, ArmError) as error:
            raise NotUndone(
                f"The {self.what} could not be restored ({one_line(error)}); once that server can be reached, run "
                f"pgtrial cleanup with PGPASSWORD or .pgpass set for it{_superuser(self)}",
                "if that server is gone for good",
            ) from None


def put_back(session: Session, record: SettingsRecord) -> list[str]:
    """Restores the former lines of postgresql.auto.conf in their former order, and reloads the configuration. Returns a
    sentence for each setting that stays, because somebody else has changed it.

    Raises psycopg.Error, and ArmError if ALTER SYSTEM cannot write a value or the server does not reload.
    """
    left = []
    errors: list[psycopg.Error | ArmError] = []
    file = read_auto_conf(session)
    for name, former in record.former.items():
        present = former if file is None else file.text(name)
        if file is not None and present == former:
            continue
        if file is not None and present != record.written[name]:
            left.append(
                f"somebody else has changed {name} on {record.target.label} in the meantime, so it stays as it is"
            )
            continue
        try:
            write(session, name, former)
        except (psycopg.Error, ArmError) as error:  # restore the other settings nevertheless
            if session.broken:
                raise
            errors.append(error)
    if record.order is not None:
        _put_in_order(session, record.order)
    reload(session)
    if errors:
        raise errors[0]
    return left


def put_back_anew(record: SettingsRecord, connect: Callable[[], Session]) -> list[str]:
    """Restores the former settings by a new session, after the session that made the changes has ended.

    Raises the same errors as `put_back`, and those of `connect`: psycopg.OperationalError or ArmError.
    """
    with closing(_way_in(record, connect)) as session:
        if maker(session)["system"] != record.maker["system"]:
            raise ArmError("another server than that of the record answers at this address")
        _wait_until_gone(session, record)
        return put_back(session, record)


def maker(session: Session) -> dict[str, str]:
    """Returns the values that identify this session in the field `maker` of a record: its PID, its start time, and the
    server's system identifier. Raises psycopg.Error."""
    row = session.execute(_SESSION).fetchone()
    assert row is not None, "a session sees itself"
    return {"pid": row[0], "start": row[1], "system": row[2]}


def write(session: Session, name: str, text: str | None) -> None:
    """Writes a setting's line in postgresql.auto.conf with this value, or removes the line if the value is None. Raises
    psycopg.Error, and ArmError if ALTER SYSTEM cannot write the value."""
    values = [] if text is None else values_of(session, name, text)
    if values is None:
        raise ArmError(f"ALTER SYSTEM cannot write {name} = {quoted(text)}")
    session.execute(alter_system(name, *values))


def reload(session: Session) -> None:
    """Makes the server reload its configuration files, and waits until it has done so. Raises psycopg.Error, and
    ArmError if it does not.

    The function waits until its own session has reloaded the files. The postmaster, from which new sessions get their
    values, reloads them before.
    """
    loaded = value(session, "SELECT pg_conf_load_time()")
    session.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + _RELOAD_TIMEOUT_S
    while value(session, "SELECT pg_conf_load_time()") == loaded:
        if time.monotonic() > deadline:
            raise ArmError("the server did not reload its settings; see its log")
        time.sleep(_POLL_S)


def _wait_until_gone(session: Session, record: SettingsRecord) -> None:
    """Waits until the session that made the changes has ended, but only for some seconds.

    The server ends that session when it notices that the client is gone. If the network was cut, it notices that late;
    waiting longer is not necessary, since the session has nothing left to execute.
    """
    deadline = time.monotonic() + _GONE_S
    while value(session, _STILL_THERE, record.maker["pid"], record.maker["start"]) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _put_in_order(session: Session, order: Sequence[str]) -> None:
    """Brings the lines of postgresql.auto.conf back into their former order, by writing those lines again that came
    after the restored lines. Stops at the first line that the role may not write; the lines after it keep their
    positions. No value changes."""
    file = read_auto_conf(session)
    if file is None:
        return
    for name in moved([line.name for line in file.lines], order):
        present = read_auto_conf(session)
        text = None if present is None else present.text(name)
        if text is None or (values := values_of(session, name, text)) is None:
            return
        try:
            session.execute(alter_system(name, *values))
        except psycopg.Error:
            if session.broken:
                raise
            return


def _way_in(record: SettingsRecord, connect: Callable[[], Session]) -> Session:
    """Returns the session that `connect` opens. If that fails, returns a session that overrides settings of the study
    which can prevent sessions from starting.

    If no session can be opened, raises the error of `connect`: psycopg.Error or ArmError.
    """
    try:
        return connect()
    except (psycopg.Error, ArmError):
        for way in _overriding(record):
            with suppress(psycopg.Error):
                return _past_limits(way)
        raise


def _past_limits(way: Target) -> Session:
    """Opens a session with settings that override time limits. Tries again while the session is ended by such a limit.
    Raises psycopg.Error.

    The limits of the server apply until the session has read its connection options, so that a very short limit can end
    the session before.
    """
    deadline = time.monotonic() + _PAST_LIMITS_S
    while True:
        try:
            return way.connect()
        except psycopg.OperationalError as error:
            if _ENDED_BY_LIMIT.search(str(error)) is None or time.monotonic() > deadline:
                raise
        time.sleep(_POLL_S)


def _overriding(record: SettingsRecord) -> Iterator[Target]:
    """Yields addresses for sessions that override the settings of the study which can prevent sessions from starting:
    libraries that each new session loads, and time limits. The role is that of the record, and then that of PGUSER,
    which may be a superuser."""
    changed = {name.lower() for name in record.former}
    limits = {name: harmless for name, harmless in _OF_CONNECTIONS.items() if name in changed}
    if limits:
        yield record.target.with_settings(limits)
    if not _may_lock(record):
        return
    of_any_role, of_superusers = (dict.fromkeys(names, "") | limits for names in (_OF_ANY_ROLE, _OF_SUPERUSERS))
    yield record.target.with_settings(of_any_role)
    yield record.target.with_settings(of_any_role | of_superusers)
    user = os.environ.get("PGUSER")
    if user and user != record.target.user:
        yield replace(record.target, user=user).with_settings(of_any_role | of_superusers)


def _may_lock(record: SettingsRecord) -> bool:
    """True if the study has changed settings for libraries that a session loads at its start, which can prevent
    sessions from starting."""
    return not {name.lower() for name in record.former}.isdisjoint((*_OF_ANY_ROLE, *_OF_SUPERUSERS, _LIBRARY_PATH))


def _superuser(record: SettingsRecord) -> str:
    return ", and PGUSER naming a superuser if new sessions cannot start" if _may_lock(record) else ""
