"""Sets the settings of an arm on a given server by ALTER SYSTEM for the time of a trial, and restores the former
settings afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psycopg

from pgtrial.loads.target import TIME_LIMITS, Session, Target
from pgtrial.model.errors import ArmError, StudyError, TrialError, one_line
from pgtrial.model.quoting import quoted
from pgtrial.servers.auto_conf import read_auto_conf
from pgtrial.servers.server_record import write_down
from pgtrial.servers.session_values import differences, unequal_values
from pgtrial.servers.settings_check import SettingsCheck, unloaded, winner, words
from pgtrial.servers.settings_record import SettingsRecord, put_back, put_back_anew, reload, write

_SETTLE_S = 5.0
"""The time for which a new session may still have a value from before the last reload, in seconds. This happens if
another reload was in progress at the same time."""


@dataclass
class GivenSettings:
    """The settings of an arm on one given server. `connect` opens a session in the same way as the load does, and
    raises ArmError."""

    arm: str
    target: Target
    settings: Mapping[str, str]
    connect: Callable[[], Session]
    notes: list[str]
    """A list to which sentences for the user are appended: what pgtrial will change on the server, and which settings
    somebody else has changed during a trial."""

    def check(self) -> None:
        """Checks that the settings can be changed by ALTER SYSTEM, would take effect, and can be restored. Changes
        nothing. Raises StudyError."""
        with closing(self.connect()) as session:
            rows = self._check.values(session)
            if (obstacle := winner(session, rows)) is not None:
                raise StudyError(f"arms.{self.arm}: {obstacle}")
            self._check.record(session, self.target, rows)
            not_loaded = unloaded(session)
            self._check.try_in_session(session, self.target, rows)
        label, names = self.target.label, ", ".join(row.name for row in rows)
        self.notes.append(
            f"{self.arm}: for each trial pgtrial sets {names} of {label} by ALTER SYSTEM, and restores the former "
            "values afterwards"
        )
        if not_loaded:
            waiting = ", ".join(not_loaded)
            self.notes.append(
                f"{self.arm}: pgtrial reloads the configuration of {label}, by which changes of these settings in its "
                f"files that are not loaded yet take effect: {waiting}"
            )

    @cached_property
    def _check(self) -> SettingsCheck:
        return SettingsCheck(self.arm, self.settings)

    @contextmanager
    def in_force(self, run: Path) -> Iterator[None]:
        """Sets the settings, so that sessions that begin within the context have them. On exit, the same database
        session restores the former settings.

        Raises ArmError if the settings cannot be changed or restored, also if that was still possible when `check` ran.
        Raises TrialError if a new session has another value than the arm's.
        """
        with closing(self.connect()) as session:
            _lift_limits(session, self.settings)
            with self._as_arm_error("the server refuses the settings"):
                record = self._record_to_make(session)
            entry = write_down(record, run)
            try:
                with self._as_arm_error("the server refuses the settings"):
                    for name, text in record.written.items():
                        write(session, name, text)
                    reload(session)
                self._try_new_session()
                yield
            finally:
                self._put_back(session, record)
                entry.unlink()

    def _record_to_make(self, session: Session) -> SettingsRecord:
        if read_auto_conf(session) is None:
            reload(
                session
            )  # without the right to read the configuration files, a session sees their values only after a reload
        try:
            with closing(self.connect()) as fresh:
                rows = self._check.values(fresh)
                if (obstacle := winner(fresh, rows)) is not None:
                    raise TrialError(obstacle)
            return self._check.record(session, self.target, rows)
        except StudyError as error:
            raise ArmError(str(error)) from None

    def _try_new_session(self) -> None:
        """Opens new sessions like those of the load until one has the values of the arm. Raises TrialError if none does
        within some seconds, and ArmError if no session can start."""
        deadline = time.monotonic() + _SETTLE_S
        while True:
            try:
                with closing(self.target.connect()) as fresh:
                    unequal = differences(fresh, self.settings)
            except psycopg.Error as error:
                raise ArmError(
                    f"arms.{self.arm}: with {_assigned(self.settings)} no session of {self.target.label} can start: "
                    f"{words(error)}; correct the settings"
                ) from None
            if not unequal:
                return
            if time.monotonic() > deadline:
                raise TrialError(f"{unequal_values(unequal, self.settings)} in new sessions of {self.target.label}")
            time.sleep(0.1)

    def _put_back(self, session: Session, record: SettingsRecord) -> None:
        try:
            try:
                left = put_back(session, record)
            except psycopg.OperationalError:
                left = put_back_anew(record, self.connect)
        except (psycopg.Error, ArmError) as error:
            reason = one_line(error).removeprefix(f"arms.{self.arm}: ")
            raise ArmError(
                f"arms.{self.arm}: the server's settings could not be restored ({reason}); run pgtrial cleanup to try "
                "again"
            ) from None
        self.notes += left

    @contextmanager
    def _as_arm_error(self, what: str) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise ArmError(f"arms.{self.arm}: {what}: {words(error)}") from None


def _lift_limits(session: Session, settings: Mapping[str, str]) -> None:
    """Turns off those time limits in this session that the study sets on the server, since the session is idle for as
    long as the trial takes."""
    for name in {name.lower() for name in settings} & set(TIME_LIMITS):
        session.execute(f"SET {name} = 0".encode())


def _assigned(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {quoted(text)}" for name, text in settings.items())
