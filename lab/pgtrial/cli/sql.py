"""`pgtrial sql`: runs an SQL query in DuckDB over many study directories and bundles. Its tables are the studies, the
comparisons (called claims), the trials and the seconds of trials."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgtrial.cli.output import json_line, warn
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.report.frames import FRAMES, frame_of
from pgtrial.report.table import NONE, Table, by_position
from pgtrial.store.bundle import open_study
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.temporary import temporary_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_WIDEST = 1_000_000
"""The width in characters that rich assumes for the terminal, so large that no column is cut."""


def sql_command(
    query: Annotated[
        str, typer.Argument(help="A SELECT statement over the tables studies, claims, trials and seconds.")
    ],
    studies: Annotated[list[Path], typer.Argument(help="Study directories and bundles, e.g. results/*.")],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each row.")] = False,
) -> None:
    """Query many studies with SQL, in the dialect of DuckDB. The first column of each table is `study`, the path of the
    study.

    Example: pgtrial sql 'SELECT study, load_point, arm, median(tps) FROM trials GROUP BY ALL ORDER BY ALL' results/*

    Files that are not studies are left out with a warning. A bundle is left out if the directory of the same study is
    given as well.
    """
    heads, rows = run(query, studies)
    if json:
        for row in rows:
            json_line(dict(zip(heads, row, strict=True)), default=str)
        return
    columns = by_position(*heads, right=[column for column in range(len(heads)) if _is_numeric(rows, column)])
    # a large width, so that rich does not drop or fold columns; a narrow terminal wraps the lines
    Terminal(width=_WIDEST).print(for_terminal(Table("", [[_cell(value) for value in row] for row in rows], columns)))


def run(query: str, paths: Sequence[Path]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Returns the column names and the rows of the query's result. Raises StudyError for a query that DuckDB rejects,
    or if none of the paths is a study, and StoreError for a study whose files are damaged."""
    # imported here, since `pgtrial sql --help` does not need DuckDB
    import duckdb  # noqa: PLC0415

    words = set(re.findall(r"\w+", query.lower()))
    with ExitStack() as stack:
        opened = _opened(paths, stack)
        folder = stack.enter_context(temporary_folder())
        database = stack.enter_context(duckdb.connect())
        try:
            _make_tables(database, [name for name in FRAMES if name in words], opened, folder)
            result = database.execute(query)
            return [column[0] for column in result.description or []], result.fetchall()
        except duckdb.Error as error:
            raise StudyError(f"DuckDB rejects the query: {_first_line(error)}") from error


def _opened(paths: Sequence[Path], stack: ExitStack) -> list[tuple[str, StudyDirectory]]:
    studies: list[tuple[str, StudyDirectory]] = []
    paths_of: dict[tuple[str, int, tuple[str, ...]], Path] = {}
    for path in sorted(paths, key=lambda path: not path.is_dir()):
        try:
            study = stack.enter_context(open_study(path))
        except StoreError as error:
            warn(f"left out: {error}")
            continue
        known_by = (study.plan.created, study.plan.seed, tuple(study.plan.arms))
        if (there := paths_of.setdefault(known_by, path)) != path:
            warn(f"left out: {path} contains the same study as {there}")
        else:
            studies.append((str(path), study))
    if not studies:
        raise StudyError(
            "none of the paths is a study directory or a bundle; name study directories or bundles, e.g. results/*"
        )
    return studies


def _make_tables(
    database: DuckDBPyConnection, names: Sequence[str], studies: Sequence[tuple[str, StudyDirectory]], folder: Path
) -> None:
    """Creates the tables that the query uses and fills them. Then denies the database access to files and the network,
    since the query may come from somebody else."""
    for name in names:
        file = folder / f"{name}.parquet"
        frame_of(name, studies).write_parquet(file)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet(?)", [str(file)])
    database.execute("SET enable_external_access = false")


def _first_line(error: Exception) -> str:
    """Returns DuckDB's error message on one line. If DuckDB proposes a correction of the query, the line contains
    it."""
    return re.sub(r"\s*\n\s*", " ", str(error).split("\n\n")[0]).strip()


def _is_numeric(rows: Sequence[Sequence[Any]], column: int) -> bool:
    values = [row[column] for row in rows if row[column] is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _cell(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
