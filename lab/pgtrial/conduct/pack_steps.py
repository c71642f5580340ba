"""What the lab does with a pack around a load: its checks, what measure.sql finds out, and the session of hold.sql."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal

from pgtrial.loads.sql_files import SqlFiles
from pgtrial.loads.target import Target, value
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.study.packs import CHECK, HOLD, MEASURE
from pgtrial.model.units import plural

_SHOWN = 3
"""How many rows of a check a message quotes."""


def check(files: SqlFiles, target: Target, when: str) -> None:
    """Run check.sql, if the pack has one. Raises TrialError with the rows that it returns, each of which is a failure.

    `when`: `before the load`, for the message.
    """
    if CHECK not in files:
        return
    with target.connect() as session:
        rows = list(files.rows(session, CHECK))
    if rows:
        told = "; ".join(" ".join(str(column) for column in row) for row in rows[:_SHOWN])
        more = f"; and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        raise TrialError(f"{CHECK} of the pack {files.pack} failed {when}: {told}{more}")


def measure(files: SqlFiles, target: Target) -> float | None:
    """The number that measure.sql returns, in a session with the arm's settings; None: the pack has no such file.

    Raises StudyError where it returns no number.
    """
    if MEASURE not in files:
        return None
    with target.connect() as session:
        rows = list(files.rows(session, MEASURE))
    found = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None
    if isinstance(found, int | float | Decimal) and math.isfinite(found):
        return float(found)
    raise StudyError(
        f"the pack {files.pack}: {MEASURE} has to return one row with one number, and it returns "
        f"{_told(rows)}; correct its last SELECT"
    )


def _told(rows: list[tuple[object, ...]]) -> str:
    if len(rows) != 1:
        return plural(len(rows), "row")
    return ", ".join("NULL" if column is None else str(column) for column in rows[0])


@contextmanager
def held(files: SqlFiles | None, setting: str | None, target: Target) -> Iterator[None]:
    """A session in which hold.sql was run, open until the end, if the setting of this name is on in the arm."""
    if files is None or setting is None:
        yield
        return
    # closed without a COMMIT, which a server that is gone would answer with an error
    with closing(target.connect()) as session:
        if str(value(session, "SELECT current_setting(%s, true)", setting) or "off").lower() in _ON:
            files.run(session, HOLD)
        yield


_ON = ("on", "true", "yes", "1")
