"""Compares the rows that a statement returned on two versions, in any order, and finds the first value that differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from pgtrial.loads.script_answers import row_digests
from pgtrial.model.records.upgrade import OtherRows
from pgtrial.model.units import shortened

_SEARCHED = 1000
"""The largest number of rows of the new version in which the lab searches for the one that is most similar to a row of
the old version."""
_LONGEST = 100
"""The largest number of characters of a value that a report shows."""
_BEFORE = 20
"""The number of characters that are shown before the first differing character, if that is far from the beginning of
the value."""
_FLOATS = (700, 701)
"""The OIDs of `real` and `double precision`, whose values can differ in their last digits alone."""
_NULL = "NULL"


def other_rows(old: Sequence[PGresult], new: Sequence[PGresult], *, counts_alone: bool = False) -> OtherRows | None:
    """Returns the first difference between the results of the same statements on two versions, or None. With
    `counts_alone`, only the numbers of rows are compared."""
    for before, after in zip(old, new, strict=False):
        if (found := _other_rows(before, after, counts_alone=counts_alone)) is not None:
            return found
    return None


def _other_rows(old: PGresult, new: PGresult, *, counts_alone: bool) -> OtherRows | None:
    counts = OtherRows(old_rows=_rows(old), new_rows=_rows(new))
    if counts_alone or ExecStatus.TUPLES_OK not in (old.status, new.status):
        return counts if counts.old_rows != counts.new_rows else None
    columns = _columns(old)
    if columns != (others := _columns(new)):
        return counts.model_copy(update={"old_columns": columns, "new_columns": others})
    exact = [column for column in range(old.nfields) if old.ftype(column) != new.ftype(column)]
    digests = [list(row_digests(result, exact)) for result in (old, new)]
    alone = [_without_equal(digests[0], digests[1]), _without_equal(digests[1], digests[0])]
    if not any(alone):
        return None
    if not all(alone):
        result, row = (old, alone[0][0]) if alone[0] else (new, alone[1][0])
        text = ", ".join(_text(result, row, at) for at in range(result.nfields))
        return counts.model_copy(update={"row": shortened(text, _LONGEST)})
    row = alone[0][0]
    like = max(alone[1][:_SEARCHED], key=lambda candidate: _equal_values(old, row, new, candidate))
    differing = [at for at in range(old.nfields) if old.get_value(row, at) != new.get_value(like, at)]
    column = min(differing, key=lambda at: old.ftype(at) in _FLOATS, default=0)
    values = _around(_value(old, row, column), _value(new, like, column))
    return counts.model_copy(update={"column": columns[column], "old_value": values[0], "new_value": values[1]})


def _rows(result: PGresult) -> int:
    """Returns the number of rows that a statement returned or changed."""
    return result.ntuples if result.status == ExecStatus.TUPLES_OK else result.command_tuples or 0


def _columns(result: PGresult) -> list[str]:
    return [(result.fname(column) or b"").decode(errors="replace") for column in range(result.nfields)]


def _without_equal(digests: Sequence[bytes], others: Sequence[bytes]) -> list[int]:
    """Returns the numbers of the rows for which the other result has no equal row, from 0. A row that occurs several
    times needs as many equal rows."""
    left = Counter(others)
    alone = []
    for row, digest in enumerate(digests):
        if left[digest] > 0:
            left[digest] -= 1
        else:
            alone.append(row)
    return alone


def _equal_values(old: PGresult, row: int, new: PGresult, other: int) -> int:
    return sum(old.get_value(row, at) == new.get_value(other, at) for at in range(old.nfields))


def _value(result: PGresult, row: int, column: int) -> str | None:
    value = result.get_value(row, column)
    return None if value is None else value.decode(errors="replace")


def _text(result: PGresult, row: int, column: int) -> str:
    value = _value(result, row, column)
    return _NULL if value is None else value


def _around(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Returns the parts of two values around the first character that differs. None stands for NULL."""
    if old is None or new is None:
        return old and shortened(old, _LONGEST), new and shortened(new, _LONGEST)
    pairs = enumerate(zip(old, new, strict=False))
    same = next((at for at, (before, after) in pairs if before != after), min(len(old), len(new)))
    begin = same - _BEFORE if same > _LONGEST // 2 else 0
    parts = [shortened(f"…{value[begin:]}" if begin else value, _LONGEST) for value in (old, new)]
    return parts[0], parts[1]
