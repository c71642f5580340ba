"""Checks, before anything is changed, whether pgtrial can set an arm's settings on a given server by ALTER SYSTEM and
restore the former values afterwards.

Only the configuration files show for certain which values were set before. A session shows the value that is in force
in the session, which can come from a role or a database, or differ from the files because these were not reloaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import NoReturn

import psycopg

from pgtrial.loads.target import Session, Target, value
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.servers.auto_conf import (
    CONNINFO,
    AutoConf,
    list_text,
    moved,
    quote_all,
    read_auto_conf,
    read_listed,
    values_of,
)
from pgtrial.servers.configured_values import unknown_setting
from pgtrial.servers.session_values import SessionValue, differences, is_superuser, may_have, session_values
from pgtrial.servers.setting_values import LIBRARIES, Domain, elements, is_list
from pgtrial.servers.settings_record import SettingsRecord, maker

_COULD_NOT = "setting could not be applied"
"""The error that pg_file_settings shows for a value that takes effect only after a restart. Any other error prevents
the server from loading all the files."""

_NO_WAY_BACK = frozenset(("db_user_namespace", "pre_auth_delay"))
"""Settings that pgtrial refuses to change, since they take effect in a new session before the session can override
them. A bad value could prevent the session from starting that restores the former value."""

_OF_FILES = """SELECT name FROM pg_settings WHERE source = 'configuration file' AND sourcefile IS NOT NULL
    AND context NOT IN ('postmaster', 'internal')"""

_DOMAIN = "SELECT min_val, max_val, enumvals FROM pg_settings WHERE name = %s"

_WINNERS = {
    "command line": ("the server's command line", "remove it there"),
    "global": ("ALTER ROLE ALL", "ALTER ROLE ALL RESET {name}"),
    "database": ("ALTER DATABASE {dbname}", "ALTER DATABASE {dbname} RESET {name}"),
    "user": ("ALTER ROLE {user}", "ALTER ROLE {user} RESET {name}"),
    "database user": (
        "ALTER ROLE {user} IN DATABASE {dbname}",
        "ALTER ROLE {user} IN DATABASE {dbname} RESET {name}",
    ),
    "client": ("an option of the connection (dsn, PGOPTIONS)", "remove it there"),
    "session": ("a login event trigger or the pooler", "remove it for the study"),
    "override": ("the server itself", "which pgtrial cannot change"),
}
"""For each `source` in pg_settings that has precedence over postgresql.auto.conf: a phrase that says where the value is
set, and the advice how to remove it."""


@dataclass(frozen=True)
class SettingsCheck:
    """Compares the settings of an arm with what a given server reports about them. Changes nothing. All methods raise
    psycopg.Error."""

    arm: str
    settings: Mapping[str, str]

    def values(self, session: Session) -> list[SessionValue]:
        """Returns the settings with the values that a session of the load has now. Raises StudyError if one of them
        cannot be set by ALTER SYSTEM."""
        rows = session_values(session, list(self.settings))
        for name in self.settings:
            if name.lower() not in rows:
                self._refuse_unknown(session, name)
            self._check_kind(session, rows[name.lower()])
        self._check_may_reload(session)
        if value(session, "SELECT current_setting('allow_alter_system', true)") == "off":
            self._refuse("allow_alter_system is off on the server; set it on, or remove the settings from the study")
        return [rows[name.lower()] for name in self.settings]

    def _refuse_unknown(self, session: Session, name: str) -> NoReturn:
        if value(session, "SELECT current_setting(%s, true)", name) is not None:
            if "." not in name:
                self._refuse(f"{name} exists only in a session, and cannot be set for a server; remove it")
            self._refuse(
                f"no library that the server has loaded defines {name}, so the server does not show where its value "
                "comes from; load that library by shared_preload_libraries, or remove the setting from the study"
            )
        hidden = "" if is_superuser(session) else f", or hides it from {session.info.user} (pg_read_all_settings)"
        known = [row[0] for row in session.execute("SELECT name FROM pg_settings").fetchall()]
        cure = unknown_setting(name, known)
        self._refuse(
            f"the server does not know the setting {name}{hidden}; "
            f"{cure}{'' if '?' in cure else ', or install the extension that defines it'}"
        )

    def _check_kind(self, session: Session, row: SessionValue) -> None:
        name = row.name
        if row.context in ("internal", "postmaster"):
            self._refuse(
                f"{name} takes effect at a restart only, and pgtrial does not restart given servers; "
                "set it there yourself and remove it from the study"
            )
        if name in _NO_WAY_BACK:
            self._refuse(
                f"{name} can prevent all sessions from starting, including the session that would restore the former "
                "value if pgtrial were killed; remove it"
            )
        if name == CONNINFO:
            self._refuse(
                f"{name} may contain a password, which pgtrial would have to store in a file for the undo; remove it"
            )
        if not _may_alter(session, name):
            can_be_granted = session.info.server_version >= 150000
            grants = f"grant it (GRANT ALTER SYSTEM ON PARAMETER {name} TO {session.info.user})"
            self._refuse(
                f"the role {session.info.user} may not set {name} by ALTER SYSTEM; "
                f"{grants if can_be_granted else 'name a superuser in the dsn'}, or remove the setting from the study"
            )
        self._check_value(session, row)

    def _check_value(self, session: Session, row: SessionValue) -> None:
        name = row.name
        if "\n" in self._wanted(row):
            self._refuse(
                f"{name} = {quoted(self._wanted(row))} has a line break, which ALTER SYSTEM refuses; remove it"
            )
        domain = Domain(row.kind, row.unit, *(session.execute(_DOMAIN, (name,)).fetchone() or ()))
        if not domain.may_have(self._wanted(row)):
            unit = f" (in {row.unit})" if row.unit else ""
            takes = (
                f"from {domain.lowest} to {domain.highest}{unit}"
                if domain.lowest
                else ", ".join(domain.choices or ("on", "off"))
            )
            self._refuse(f"{name} cannot be {quoted(self._wanted(row))}: the server accepts {takes}; correct it")
        if is_list(name, session.info.server_version):
            try:
                elements(name, self._wanted(row))
            except ValueError:
                self._refuse(
                    f"{name} = {quoted(self._wanted(row))} is not a list of names separated by commas; correct it"
                )

    def _check_may_reload(self, session: Session) -> None:
        if not value(session, "SELECT has_function_privilege('pg_reload_conf()', 'EXECUTE')"):
            user = session.info.user
            self._refuse(
                f"the role {user} may not make the server reload its settings; grant it (GRANT EXECUTE ON FUNCTION "
                f"pg_reload_conf() TO {user}), or remove the settings from the study"
            )

    def record(self, session: Session, target: Target, rows: Sequence[SessionValue]) -> SettingsRecord:
        """Returns the record of the values that pgtrial will write into postgresql.auto.conf, and of the former values.
        Raises StudyError if the former values are not known or ALTER SYSTEM could not restore them."""
        file = read_auto_conf(session)
        if file is not None and file.trouble:
            self._refuse(
                f"postgresql.auto.conf of the server {file.trouble}, and ALTER SYSTEM, which writes the whole file "
                "again, could not restore that; run any ALTER SYSTEM yourself, which brings the file into its usual "
                "form, or remove the settings from the study"
            )
        listed = read_listed(session) or []
        for line in listed:
            if line.error and line.error != _COULD_NOT:
                where = f"{line.file}, line {line.number}" if line.number else line.file
                self._refuse(f"the server cannot load its settings: {line.error} in {where}; correct that file")
        if file is None:
            for row in rows:
                self._check_absent(session, row)
        else:
            invalid = {(line.name or "").lower() for line in listed if line.own and line.error}
            self._check_comes_back(session, file, [row.name for row in rows], invalid)
        quote_all(session, "off")
        written = {}
        for row in rows:
            others = [line.file for line in listed if not line.own and line.text and _same(line.name, row.name)]
            written[row.name if file is None else file.spelling(row.name)] = self._text(session, row, others)
        former = {name: None if file is None else file.text(name) for name in written}
        order = None if file is None else [line.name for line in file.lines]
        return SettingsRecord(self.arm, target, former, written, order, maker(session))

    def _check_absent(self, session: Session, row: SessionValue) -> None:
        """Raises StudyError unless the setting's value comes from elsewhere than postgresql.auto.conf. It is called for
        a role that may not read the files, for which this is the only proof that postgresql.auto.conf does not set the
        setting."""
        elsewhere = row.file is not None and not row.file.endswith("postgresql.auto.conf")
        if row.source == "configuration file" and not elsewhere:
            self._refuse(
                f"the role {session.info.user} cannot see how postgresql.auto.conf of the server sets {row.name}, so "
                "pgtrial could not restore it; grant the right (GRANT SELECT ON pg_file_settings, GRANT EXECUTE ON "
                "FUNCTION pg_show_all_file_settings(), GRANT pg_read_all_settings), or remove the setting from the "
                "study"
            )

    def _check_comes_back(self, session: Session, file: AutoConf, names: Sequence[str], invalid: set[str]) -> None:
        """Raises StudyError if ALTER SYSTEM could not restore the changed lines, or write the lines again that have to
        be moved back to their former positions.

        `invalid` has the names of the settings whose values in the file the server has not accepted, including those
        that take effect only after a restart.
        """
        changed = {name.lower() for name in names}
        stay = [line.name for line in file.lines if line.name.lower() not in changed]
        back = [line.name for line in file.lines if line.name.lower() in changed]
        again = [*back, *moved([*stay, *back], [line.name for line in file.lines])]
        waits = "SELECT context = 'postmaster' FROM pg_settings WHERE lower(name) = lower(%s)"
        for name in again:
            wrong = name.lower() in invalid and not value(session, waits, name)
            unwritable = wrong or values_of(session, name, file.text(name) or "") is None
            if unwritable and _may_alter(session, name):
                self._refuse(
                    f"ALTER SYSTEM could not restore the line of {name} in the server's postgresql.auto.conf as it is "
                    "written there; set it yourself by ALTER SYSTEM, or remove the settings from the study"
                )

    def _text(self, session: Session, row: SessionValue, others: Sequence[str]) -> str | None:
        """Returns the text that ALTER SYSTEM stores for the arm's value. Returns None if the setting's line has to be
        removed, which is the only way to make a list of libraries empty. `others` are the other configuration files
        that set this setting."""
        wanted = self._wanted(row)
        if not is_list(row.name, session.info.server_version):
            return wanted
        listed = [element for element in elements(row.name, wanted) if element]
        if not listed and row.name in LIBRARIES:
            if others:
                self._refuse(f"ALTER SYSTEM cannot make {row.name} empty while {others[0]} sets it; remove it there")
            return None
        return list_text(session, listed or [""])

    def _wanted(self, row: SessionValue) -> str:
        return next(text for name, text in self.settings.items() if name.lower() == row.name.lower())

    def try_in_session(self, session: Session, target: Target, rows: Sequence[SessionValue]) -> None:
        """Starts another session with those of the arm's values that a session may set for itself, to find out whether
        the server accepts them.

        Raises StudyError with the server's message if it does not. Does nothing behind a pooler that accepts no
        connection options; the first trial finds such errors then.
        """
        values = {row.name: self._wanted(row) for row in rows if may_have(session, row)}
        if not values:
            return
        try:
            with closing(target.with_settings(values).connect()) as fresh:
                differences(fresh, values)
        except psycopg.OperationalError as error:
            with suppress(psycopg.OperationalError):
                target.with_settings({"search_path": "pg_catalog"}).connect().close()
                self._refuse(f"no session can have these settings: {words(error)}; correct them")

    def _refuse(self, sentence: str) -> NoReturn:
        raise StudyError(f"arms.{self.arm}: {sentence}")


def unloaded(session: Session) -> list[str]:
    """Returns the names of the settings whose values a reload of the configuration files would change, as far as the
    role may see that. Raises psycopg.Error."""
    listed = read_listed(session)
    if listed is None:
        return []
    in_files = {line.name.lower(): line.text or "" for line in listed if line.name is not None and line.error is None}
    present = session_values(session, list(in_files))
    loaded = {name: text for name, text in in_files.items() if name in present and _is_of_files(present[name])}
    removed = session.execute(_OF_FILES).fetchall()
    return sorted([*differences(session, loaded), *(name for (name,) in removed if name.lower() not in in_files)])


def _is_of_files(row: SessionValue) -> bool:
    return row.context not in ("postmaster", "internal") and row.source in ("default", "configuration file")


def _same(name: str | None, other: str) -> bool:
    return name is not None and name.lower() == other.lower()


def winner(session: Session, rows: Sequence[SessionValue]) -> str | None:
    """Returns a sentence on the first setting whose value by ALTER SYSTEM would have no effect, since another source
    has precedence; None if there is no such setting. Raises psycopg.Error."""
    row = next((row for row in rows if row.source in _WINNERS), None)
    if row is None:
        return None
    names = (session.info.user, session.info.dbname)
    user, dbname = (str(value(session, "SELECT quote_ident(%s)", name)) for name in names)
    who, cure = (text.format(user=user, dbname=dbname, name=row.name) for text in _WINNERS[row.source])
    return (
        f"a value of {row.name} by ALTER SYSTEM cannot take effect, since {who} sets it with precedence in sessions of "
        f"the load; {cure}, or remove the setting from the study"
    )


def _may_alter(session: Session, name: str) -> bool:
    if session.info.server_version >= 150000:
        return bool(value(session, "SELECT has_parameter_privilege(%s, 'ALTER SYSTEM')", name))
    return is_superuser(session)


def words(error: psycopg.Error) -> str:
    """Returns the server's error message as one line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = next((line for line in lines if "FATAL:" in line or "failed: " in line), lines[0])
    return line.rpartition("FATAL:")[2].rpartition("failed: ")[2].strip().removesuffix(".")
