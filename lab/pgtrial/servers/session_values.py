"""Determines the values that settings have in a new session like those of the load, and compares them with the values
that an arm asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from pgtrial.loads.target import CHANGED_BY_LAB, Session, value, values_for_users
from pgtrial.model.quoting import quoted
from pgtrial.servers.setting_values import same_value

_VALUES = """SELECT name, setting, unit, vartype, context, source, sourcefile FROM pg_catalog.pg_settings
    WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])"""
_OF_SESSIONS = ("user", "superuser", "backend", "superuser-backend")
"""The contexts of settings that a session may set for itself."""


@dataclass(frozen=True)
class SessionValue:
    """A setting in a session, as pg_settings shows it."""

    name: str
    setting: str
    unit: str | None
    kind: str
    """The setting's vartype in pg_settings."""
    context: str
    source: str
    file: str | None
    """The configuration file that sets the value. It is None if no file does, or if the role may not see it."""


def session_values(session: Session, names: Sequence[str]) -> dict[str, SessionValue]:
    """Returns the settings with these names by their names in lower case, with the values that they had when the
    session began. Raises psycopg.Error.

    For the query, settings that the lab changes in each of its sessions are reset to the values that they had at the
    beginning.
    """
    lowered = [name.lower() for name in names]
    changed = sorted(set(lowered) & set(CHANGED_BY_LAB))
    known = [name for name in changed if value(session, "SELECT current_setting(%s, true)", name) is not None]
    values = [SessionValue(*row) for row in values_for_users(session, _VALUES, known, lowered)]
    return {in_force.name.lower(): in_force for in_force in values}


def differences(session: Session, settings: Mapping[str, str]) -> dict[str, str]:
    """Compares the settings of a new session with the wanted values. Returns, for each setting that differs, the value
    that the session has. Raises psycopg.Error."""
    present = session_values(session, list(settings))
    unequal = {}
    for name, wanted in settings.items():
        in_session = present.get(name.lower())
        if in_session is None:
            # a setting of an extension that is not loaded is a plain string, and pg_settings does not list it
            text = value(session, "SELECT current_setting(%s, true)", name)
            if text != wanted:
                unequal[name] = "unknown" if text is None else quoted(text)
        elif not same_value(
            in_session.name, in_session.kind, in_session.unit, in_session.setting, wanted
        ) and not _written_so(session, in_session, wanted):
            unequal[name] = quoted(_shown(session, in_session))
    return unequal


def _shown(session: Session, setting: SessionValue) -> str:
    """Returns the value of a setting as SHOW prints it."""
    if setting.unit is None:
        return setting.setting
    return str(value(session, "SELECT current_setting(%s)", setting.name))


def unequal_values(unequal: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Returns a clause for messages on the settings in `unequal`: which value each has in the session, and which value
    the arm asks for."""
    return " and ".join(f"{name} is {shown} instead of {quoted(settings[name])}" for name, shown in unequal.items())


def may_have(session: Session, setting: SessionValue) -> bool:
    """True if a session of this role may set the setting for itself in its connection options."""
    if setting.context not in _OF_SESSIONS:
        return False
    if setting.context in ("user", "backend") or is_superuser(session):
        return True
    may_be_granted = session.info.server_version >= 150000
    return may_be_granted and bool(value(session, "SELECT has_parameter_privilege(%s, 'SET')", setting.name))


def is_superuser(session: Session) -> bool:
    """True if the session's role is a superuser."""
    return bool(value(session, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"))


def _written_so(session: Session, setting: SessionValue, wanted: str) -> bool:
    """True if the wanted value is another way of writing the present value: after this session has set the wanted
    value, the server shows the same text. False if the values differ, or if the session may not set the setting."""
    try:
        with session.transaction(force_rollback=True):
            present = _shown(session, setting)
            return bool(value(session, "SELECT set_config(%s, %s, true)", setting.name, wanted) == present)
    except psycopg.Error:
        if session.broken:
            raise
        return False
