"""Reads the value of a metric that the user defined in the study file: the number that an SQL query returns, or that a
program prints."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import psycopg

from pgtrial.files.trust import refusal_to_run_command
from pgtrial.loads.job_command import command_environment
from pgtrial.loads.printed_numbers import checked, number_in
from pgtrial.loads.target import Session, Target
from pgtrial.machines.interrupt import held_off
from pgtrial.model.errors import TrialError, one_line
from pgtrial.model.quoting import quoted
from pgtrial.model.study.own_metrics import MetricSection
from pgtrial.model.study.programs import words_of
from pgtrial.model.units import format_duration, plural, shortened

_SHOWN = 60
"""The length to which quoted texts are cut, in characters."""

_MISSING = frozenset(("42P01", "3F000", "42703", "42883", "42704"))
"""The SQLSTATEs of errors about objects that do not exist."""


class NoNumber(TrialError):
    """The error for a metric whose number could not be read."""

    def __init__(self, reason: str, *, names_missing: bool = False) -> None:
        super().__init__(reason)
        self.names_missing = names_missing
        """True if the number could not be read because the SQL names an object that does not exist. The load may create
        the object later."""


class OwnNumber:
    """Reads a metric that the user defined, on one server. As a context manager, it keeps a session of the load's role
    open if the metric is read by SQL."""

    def __init__(self, name: str, section: MetricSection, target: Target) -> None:
        self._name, self._section, self._target = name, section, target
        self._session: Session | None = None

    def __enter__(self) -> Self:
        """Opens the session, if the metric is read by SQL. Raises psycopg.OperationalError if the server does not
        accept it."""
        if self._section.sql is not None:
            self._session = self._target.connect_as_load()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._session is not None:
            self._session.close()

    def read(self) -> float:
        """Returns the current number of the metric. Raises TrialError, mostly as NoNumber, if it cannot be read, and
        psycopg.OperationalError if the session is lost."""
        number = self.read_or_none()
        if number is None:
            raise NoNumber("its SQL returned no row, or NULL")
        return number

    def read_or_none(self) -> float | None:
        """Returns the current number of the metric; None if the SQL returned NULL or no row. Raises the same errors as
        `read`."""
        if self._session is None:
            return self._printed()
        return self._number_of(self._rows(self._session))

    def stop(self) -> None:
        """Cancels the SQL that is running, so that `read` ends. It is called by another thread than the one that
        reads."""
        if self._session is not None:
            self._session.cancel()

    def _rows(self, session: Session) -> list[tuple[Any, ...]]:
        """Runs the metric's SQL in a read-only transaction, and returns the rows of its last statement."""
        sql = self._section.sql
        assert sql is not None
        try:
            with session.transaction(force_rollback=True):
                session.execute("SET TRANSACTION READ ONLY")
                session.execute(f"SET LOCAL statement_timeout = {math.ceil(1000 * self._section.limit)}".encode())
                cursor = session.execute(sql.encode())
                while cursor.nextset():
                    pass
                return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            if session.broken:
                raise
            raise NoNumber(f"PostgreSQL says: {one_line(error)}", names_missing=error.sqlstate in _MISSING) from None

    def _number_of(self, rows: Sequence[tuple[Any, ...]]) -> float | None:
        if len(rows) > 1:
            raise NoNumber(f"its SQL returned {plural(len(rows), 'row')}, but it must return exactly one")
        if rows and len(rows[0]) != 1:
            raise NoNumber(f"its SQL returned {plural(len(rows[0]), 'column')}, but it must return exactly one")
        found = rows[0][0] if rows else None
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
            raise NoNumber(f"its SQL returned {quoted(shortened(str(found), _SHOWN))}, which is not a number")
        return checked(float(found), self._name, "its SQL")

    def _printed(self) -> float:
        """Runs the program and returns the number that it prints."""
        words = words_of(self._section.command or "")
        env = command_environment(self._target)
        program = shutil.which(words[0], path=env.get("PATH"))
        why = refusal_to_run_command(words, Path.cwd(), Path(program) if program is not None else None)
        if why is not None:
            raise NoNumber(why)
        if program is None:
            raise NoNumber(f"there is no program {words[0]}; install it, or correct the command")
        output, complaint, status = self._run(words, program, env)
        if status != 0:
            lines = [line.strip() for line in complaint.splitlines() if line.strip()]
            raise NoNumber(f"{words[0]} ended with status {status}: {lines[-1] if lines else 'it wrote no message'}")
        return number_in(output, self._section, self._name, words[0])

    def _run(self, words: Sequence[str], program: str, env: dict[str, str]) -> tuple[str, str, int]:
        try:
            with held_off():
                process = subprocess.Popen(
                    words,
                    executable=program,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    errors="replace",
                    process_group=0,
                )
        except OSError as error:
            raise NoNumber(f"{words[0]} cannot be run: {error.strerror}") from None
        try:
            return (*process.communicate(timeout=self._section.limit), process.returncode)
        except subprocess.TimeoutExpired:
            limit = format_duration(self._section.limit)
            raise NoNumber(
                f"{words[0]} was still running after its time limit of {limit}, and pgtrial killed it"
            ) from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
