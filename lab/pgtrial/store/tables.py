"""Defines the tables of a trial, each of which is a Parquet file, and reads them."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pgtrial.files.reading import check_regular
from pgtrial.model.errors import StoreError
from pgtrial.model.records import Record
from pgtrial.model.records.trial import LONGEST_S, SliceRow, TimelineRow
from pgtrial.store.files import damaged

_KINDS: dict[Any, pl.DataType] = {int: pl.Int64(), float: pl.Float64(), float | None: pl.Float64()}


def _columns(row: type[Record]) -> dict[str, pl.DataType]:
    """Returns the columns, with their types, of a table whose rows are records of the type `row`, which has only
    numbers and texts."""
    return {name: _KINDS.get(field.annotation, pl.String()) for name, field in row.model_fields.items()}


TIMELINE_SCHEMA = _columns(TimelineRow)
SLICES_SCHEMA = _columns(SliceRow)
"""The columns of slices.parquet, the table of the slices of a trial that alternates with other trials. TIMELINE_SCHEMA
has the columns of timeline.parquet."""

WAITS_SCHEMA: dict[str, pl.DataType] = {
    "second": pl.Int64(),
    "backend_type": pl.String(),
    "wait_event_type": pl.String(),
    "wait_event": pl.String(),
    "state": pl.String(),
    "sessions": pl.Float64(),
}
"""The columns of waits.parquet. A row has the mean number of sessions that had this backend type, wait event and state,
over the samples of pg_stat_activity in this second.

The measured phase begins with second 0; seconds of the warm-up are negative.
"""

OBSERVED_SCHEMA: dict[str, pl.DataType] = {
    "second": pl.Int64(),
    "source": pl.String(),
    "name": pl.String(),
    "value": pl.Float64(),
}
"""The columns of observed.parquet. A row has the increase per second of a counter of the server's views or of the host,
or the value of a gauge.

Second 0 is the first one of the measured phase. In a row with a value for the whole load, the second is null.
"""

PROVIDER_SCHEMA: dict[str, pl.DataType] = {**OBSERVED_SCHEMA, "span_s": pl.Int64()}
"""The columns of provider.parquet. A row has the mean of a metric in the provider's monitoring, over the `span_s`
seconds that begin with the second `second`, counted as in observed.parquet."""


SCHEMAS = {
    "timeline": TIMELINE_SCHEMA,
    "slices": SLICES_SCHEMA,
    "waits": WAITS_SCHEMA,
    "observed": OBSERVED_SCHEMA,
    "provider": PROVIDER_SCHEMA,
}
"""The columns of all tables that a trial may have, by the names of the tables' files without `.parquet`."""


_MOST_ROWS = 5_000_000
"""The largest number of rows of one table. Observing a server, which adds many rows for each second, gives this number
in 14 hours."""

_MOST_ROWS_OF_A_BUNDLE = 50_000_000


def read_frame(path: Path) -> pl.DataFrame:
    """Returns a table of a trial. Raises StoreError if it is damaged, and also if it has seconds beyond the longest
    possible trial, since readers use memory for each second."""
    try:
        check_regular(path)
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(path, error, again(path.parent)) from error
    if frame.schema != pl.Schema(SCHEMAS[path.stem]):
        raise damaged(path, ValueError(f"its columns are not those of {path.stem}.parquet"), again(path.parent))
    for name in ("second", "round"):
        bounds = (frame[name].min(), frame[name].max()) if name in frame.columns else ()
        if any(isinstance(bound, int) and abs(bound) > LONGEST_S for bound in bounds):
            raise damaged(path, ValueError(f"a {name} beyond {LONGEST_S:,}"), again(path.parent))
    return frame


_READ_EACH = """
import sys
import polars as pl
for line in sys.stdin:
    name, rows = line[:-1], 0
    try:
        rows = pl.scan_parquet(name, glob=False).select(pl.len()).collect().item()
        if rows <= int(sys.argv[1]):
            pl.read_parquet(name, glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        pass
    print(rows, flush=True)
"""
"""A Python program that tries to read tables. It reads the paths of the tables from standard input, one per line. It
reads a table completely, unless the table has too many rows. It prints the number of rows of each table, one per line,
until a table makes it crash."""


def refuse_hostile(paths: Sequence[Path]) -> None:
    """Raises StoreError if one of the tables has too many rows, or makes the process that reads it crash, as a crafted
    file can. Tables that are damaged in other ways are accepted here; reading them later raises an ordinary error."""
    if not paths:
        return
    names = "".join(f"{path}\n" for path in paths)
    done = subprocess.run(
        # -P: do not import modules from the current directory, which may belong to another account
        [sys.executable, "-P", "-c", _READ_EACH, str(_MOST_ROWS)],
        input=names,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    rows = list(map(int, done.stdout.split()))
    if done.returncode:
        fatal = paths[min(len(rows), len(paths) - 1)]
        raise StoreError(f"{fatal} cannot be read: it makes the process that reads it crash; do not trust this bundle")
    largest = max(range(len(paths)), key=rows.__getitem__)
    if rows[largest] > _MOST_ROWS:
        raise StoreError(f"{paths[largest]} has {rows[largest]:,} rows, but pgtrial reads at most {_MOST_ROWS:,}")
    if sum(rows) > _MOST_ROWS_OF_A_BUNDLE:
        raise StoreError(
            f"the tables of all trials together have {sum(rows):,} rows, but pgtrial reads at most "
            f"{_MOST_ROWS_OF_A_BUNDLE:,}"
        )


def again(trial: Path) -> str:
    """Returns the remedy for a damaged trial (to delete its directory `trial` and to repeat it), as the last clause of
    a message."""
    return f"delete the directory {trial} and run the study again: only that trial is repeated"


_MEASURED = pl.col("phase") == "measure"
_COMMITTED = pl.col("transactions").sum()


def committed_per_second(timeline: pl.DataFrame) -> list[int]:
    """Returns the number of committed transactions in each second of the measured phase. A second without a row had
    none."""
    return _without_gaps(dict(timeline.filter(_MEASURED).group_by("second").agg(_COMMITTED).iter_rows()))


def committed_of_each(timelines: Mapping[int, Path]) -> dict[int, list[int]]:
    """Returns, for several trials by their index, the number of committed transactions in each second of the measured
    phase. `timelines` are the files with the tables of these trials. Raises StoreError if one of them is damaged.

    All files are read in one pass, which takes a fifth of the time that reading them one by one takes.
    """
    indices = {str(path): index for index, path in timelines.items()}
    seconds: defaultdict[int, dict[int, int]] = defaultdict(dict)
    try:
        for path in timelines.values():
            check_regular(path)
        rows = pl.scan_parquet(list(indices), glob=False, schema=TIMELINE_SCHEMA, include_file_paths="path")
        for name, second, committed in (
            rows.filter(_MEASURED).group_by("path", "second").agg(_COMMITTED).collect().iter_rows()
        ):
            if abs(second) > LONGEST_S:
                raise ValueError(name)
            seconds[indices[name]][second] = committed
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        # reading the files one by one raises an error that names the damaged table
        return {index: committed_per_second(read_frame(path)) for index, path in timelines.items()}
    return {index: _without_gaps(seconds[index]) for index in timelines}


def _without_gaps(committed: Mapping[int, int]) -> list[int]:
    return [committed.get(second, 0) for second in range(max(committed, default=-1) + 1)]
