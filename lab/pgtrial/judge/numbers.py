"""Reads the numbers of another benchmark program: a table as text, with a line for each run.

The first line names the columns. The table needs the column `arm` and a column of values. The column `block` says which
runs belong together, and `time` in which order the runs were made; without `time` it is the order of the lines. Other
columns are ignored. A table with a line that cannot be read is refused, with the number of the line and the name of the
column, because a run that is silently left out would change the result.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path

from pgtrial.files.reading import MOST_BYTES, read_bytes
from pgtrial.model.errors import StudyError, one_line
from pgtrial.model.quoting import quoted
from pgtrial.model.units import grouped, plural

STDIN = "-"
"""The name that stands for the standard input in place of a file."""

MOST_ARMS = 50
"""The largest number of arms. If the column `arm` has more different names, it probably has something else, such as the
numbers of runs."""

_ARM, _BLOCK, _TIME = "arm", "block", "time"
_SEPARATORS = ",;\t"
_SEPARATOR_LINE = re.compile(r"sep=(.)")
"""Matches a first line such as `sep=;`, with which Excel names the separator of the table."""

_LEAST, _MOST = 1e-100, 1e100
"""The smallest and the largest value that is accepted. Sums and ratios of values in this range are finite numbers."""

_OF_TIMES = re.compile(
    r"[mnuµ]?s|secs?|seconds?|min(ute)?s?|times?|latenc(y|ies)|duration|elapsed|wait(ed|ing)?|response|p(50|9\d+)|"
    r"(milli|micro|nano)seconds?|errors?|failures?|cost"
)
_OF_RATES = re.compile(r"per|tps|qps|ops|rps|rate|throughput|transactions|queries|requests|nopm|tpmc?")
"""The patterns of the words in the name of a column by which smaller numbers (`_OF_TIMES`) or larger numbers
(`_OF_RATES`) are usually better."""

_WITH_COMMA = re.compile(r"[-+]?[\d.]*,[\d.,]*")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Numbers:
    """The measured values in the order in which they were measured. All columns have the same length."""

    source: str
    """The name of the file in messages, such as `numbers.csv` or `the standard input`."""
    column: str
    """The name of the column that has the values."""
    arms: Sequence[str]
    values: Sequence[float]
    lines: Sequence[int]
    """The line of each value in the file. Lines are counted from 1."""
    blocks: Sequence[str] | None = None
    """The name of each value's block; None if the file has no column `block`."""

    @cached_property
    def names(self) -> list[str]:
        """Returns the arms in the order in which the file first names them."""
        return list(dict.fromkeys(arm for _, arm in sorted(zip(self.lines, self.arms, strict=True))))

    @cached_property
    def by_arm(self) -> dict[str, list[float]]:
        """Returns the values of each arm in the order in which they were measured."""
        return grouped(zip(self.arms, self.values, strict=True))


def is_of_times(column: str) -> bool:
    """True if the name of a column, such as `latency [ms]`, says that smaller numbers are probably better."""
    words = re.findall(r"[^\W\d_]+\d*", column.casefold())
    return "/" not in column and any(map(_OF_TIMES.fullmatch, words)) and not any(map(_OF_RATES.fullmatch, words))


def read_numbers(source: str, column: str) -> Numbers:
    """Returns the numbers of a file, or of the standard input. `column` is the name of the column with the values.
    Raises StudyError if the table cannot be read."""
    name = "the standard input" if source == STDIN else source
    rows = _rows(name, _text(name, _content(source, name)))
    header = next(rows, None)
    if header is None:
        raise StudyError(
            f"{name} is empty; write a first line with the names of the columns, such as {_ARM},{column}, and a "
            "line for each run"
        )
    return _numbers(name, header.fields, rows, column)


def _content(source: str, name: str) -> bytes:
    try:
        if source != STDIN:
            return read_bytes(Path(source))
        content = sys.stdin.buffer.read(MOST_BYTES + 1) if sys.stdin is not None else b""
    except OSError as error:
        raise StudyError(
            f"{name} cannot be read ({error.strerror or one_line(error)}); name a file with the columns arm and value, "
            "or - for the standard input"
        ) from None
    if len(content) > MOST_BYTES:
        raise StudyError(f"{name} is longer than {MOST_BYTES // 2**20} MB; write one value for each run")
    return content


def _text(name: str, content: bytes) -> str:
    if content.startswith(_UTF_16):
        raise StudyError(f"{name} is text in UTF-16; save it as CSV in UTF-8")
    try:
        # the same name may be written with composed letters and with combining accents
        return unicodedata.normalize("NFC", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{name}, line {line}: this line is not text in UTF-8; save the file as CSV in UTF-8"
        ) from None


@dataclass(frozen=True)
class _Row:
    line: int
    fields: list[str]


def _rows(name: str, text: str) -> Iterator[_Row]:
    """Yields the rows that are not empty. The first of them has the names of the columns. Lines before it that begin
    with # are comments."""
    lines = iter(io.StringIO(text, newline=""))
    before, separator, first = 0, None, ""
    for first in lines:
        marked = _SEPARATOR_LINE.fullmatch(first.strip())
        if marked is not None:
            separator = marked[1]
        elif first.strip() and not first.startswith("#"):
            break
        before += 1
    else:
        return
    reader = csv.reader(chain([first], lines), delimiter=separator or max(_SEPARATORS, key=first.count), strict=True)
    try:
        for fields in reader:
            stripped = [field.strip() for field in fields]
            if any(stripped):
                yield _Row(before + reader.line_num, stripped)
    except csv.Error as error:
        raise StudyError(
            f"{name}, line {before + reader.line_num}: this line cannot be read ({error}); look for a quotation mark "
            "that is not closed"
        ) from None


@dataclass(frozen=True)
class _Columns:
    """The positions of the columns in a row, and the number of columns."""

    arm: int
    value: int
    block: int | None
    time: int | None
    number: int


def _columns(name: str, header: Sequence[str], column: str) -> _Columns:
    known = [title.casefold() for title in header]
    twice = [title for title, times in Counter(title for title in known if title).items() if times > 1]
    if twice:
        raise StudyError(f"{name}, the line with the column names has {quoted(twice[0])} twice; rename one of the two")

    def index_of(wanted: str) -> int | None:
        return known.index(wanted.casefold()) if wanted.casefold() in known else None

    arm, value = index_of(_ARM), index_of(column)
    if arm is None or value is None:
        missing, cure = (_ARM, "") if arm is None else (column, ", or name it by --value")
        raise StudyError(
            f"{name} has no column {quoted(missing)} in its first line, which has {', '.join(map(quoted, header))}; "
            f"rename the column that has {'the names of the set-ups' if arm is None else 'the measured numbers'}{cure}"
            f"{'; a table has a line for each run' if arm is None else ''}"
        )
    time = index_of(_TIME)  # the measured numbers may be times, and do not give the order of the runs then
    return _Columns(arm, value, index_of(_BLOCK), None if time == value else time, len(header))


def _numbers(name: str, header: Sequence[str], rows: Iterable[_Row], column: str) -> Numbers:
    columns = _columns(name, header, column)
    arms, values, lines, blocks, times = [], [], [], [], []
    for row in rows:
        _check_length(name, row, columns.number)
        arms.append(_word(name, row, columns.arm, header))
        values.append(_value(f"{name}, line {row.line}, column {header[columns.value]}", row.fields[columns.value]))
        lines.append(row.line)
        if columns.block is not None:
            blocks.append(_word(name, row, columns.block, header))
        if columns.time is not None:
            times.append(_moment(f"{name}, line {row.line}, column {header[columns.time]}", row.fields[columns.time]))
    if not values:
        raise StudyError(
            f"{name} has the names of its columns and no numbers; write a line for each run below the names"
        )
    if len(different := dict.fromkeys(arms)) > MOST_ARMS:
        raise StudyError(
            f"{name} has {len(different):,} names in its column {_ARM}, such as {quoted(arms[0])}; this column must "
            f"name the set-up that was measured, and pgtrial compares at most {MOST_ARMS} set-ups"
        )
    order = _order(name, lines, times) if columns.time is not None else range(len(lines))
    return Numbers(
        source=name,
        column=header[columns.value],
        arms=[arms[index] for index in order],
        values=[values[index] for index in order],
        lines=[lines[index] for index in order],
        blocks=[blocks[index] for index in order] if columns.block is not None else None,
    )


def _check_length(name: str, row: _Row, number: int) -> None:
    """Raises StudyError if a row has fewer fields than there are columns, or more."""
    if len(row.fields) < number or any(row.fields[number:]):
        comma = "; write decimals after a point" if len(row.fields) > number else ""
        raise StudyError(
            f"{name}, line {row.line} has {plural(len(row.fields), 'field')} and the line with the column "
            f"names has {number}; give each line as many fields{comma}"
        )
    del row.fields[number:]


def _word(name: str, row: _Row, index: int, header: Sequence[str]) -> str:
    if not row.fields[index]:
        raise StudyError(f"{name}, line {row.line}, column {header[index]}: the field is empty; fill it in")
    return row.fields[index]


def _value(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = None
    if not text:
        raise StudyError(f"{where}: the field is empty; write the number that was measured")
    if _WITH_COMMA.fullmatch(text):
        raise StudyError(
            f"{where}: {quoted(text)} has a comma; write decimals after a point and nothing between thousands, such as "
            "1234.5"
        )
    if value is None or "_" in text:
        raise StudyError(f"{where}: {quoted(text)} is not a number; write it without a unit, such as 1234.5")
    if not math.isfinite(value):
        raise StudyError(f"{where}: {quoted(text)} cannot be compared; {_FAILED}")
    if not _LEAST <= value <= _MOST and value > 0:
        raise StudyError(f"{where}: {quoted(text)} is out of range; write it in another unit")
    if value <= 0:
        raise StudyError(f"{where}: {quoted(text)} is not above zero, and arms are compared by a ratio; {_FAILED}")
    return value


_FAILED = (
    "if this run failed, mend the cause and measure all runs again, since leaving the run out would favour the arm "
    "that fails"
)


def _moment(where: str, text: str) -> float | datetime:
    try:
        moment: float | datetime = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise StudyError(
                f"{where}: {quoted(text)} is not a time; write seconds, or ISO 8601 such as 2026-11-29T12:00:00Z"
            ) from None
    if isinstance(moment, float) and not math.isfinite(moment):
        raise StudyError(
            f"{where}: {quoted(text)} is not a time; write seconds, or ISO 8601 such as 2026-11-29T12:00:00Z"
        )
    return moment


def _order(name: str, lines: Sequence[int], times: Sequence[float | datetime]) -> list[int]:
    """Returns the positions of the values, sorted by their times. Raises StudyError if not all times are written in the
    same way."""
    kinds = [_kind(moment) for moment in times]
    if (other := next((index for index, kind in enumerate(kinds) if kind != kinds[0]), None)) is not None:
        raise StudyError(
            f"{name}, line {lines[other]}, column {_TIME}: this time is {kinds[other]}, and that of line {lines[0]} "
            f"is {kinds[0]}; write all times in the same way"
        )
    seconds = [_seconds(moment) for moment in times]
    return sorted(range(len(seconds)), key=seconds.__getitem__)


def _seconds(moment: float | datetime) -> float:
    if not isinstance(moment, datetime):
        return moment
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _kind(moment: float | datetime) -> str:
    if not isinstance(moment, datetime):
        return "a number of seconds"
    return "a date without an offset from UTC" if moment.tzinfo is None else "a date with an offset from UTC"
