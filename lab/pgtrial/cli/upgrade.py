"""`pgtrial upgrade`: rehearses an upgrade on copies of the data. It says which statements break, get other rows, get
another plan or get slower."""

from __future__ import annotations

import shlex
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import pgtrial
from pgtrial.cli import study_options
from pgtrial.cli.by_options import by_options
from pgtrial.cli.compare import merged_setups
from pgtrial.cli.conduct import start
from pgtrial.cli.output import json_text, stopped
from pgtrial.cli.progress import shown
from pgtrial.cli.study_options import parsed
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.conduct.planning.stopping import time_spent
from pgtrial.conduct.study_directory import RESULTS, fresh_path
from pgtrial.conduct.upgrade.rehearse import DUMP, rehearse_upgrade
from pgtrial.conduct.upgrade.statements import Statements, capture_counted, capture_logs, write_suite
from pgtrial.conduct.upgrade.times import TimedPart, UpgradeKeys, timed_parts
from pgtrial.machines.interrupt import Interrupted, interruptible
from pgtrial.model.errors import BudgetError, PgtrialError, StoreError, StudyError
from pgtrial.model.records.upgrade import Upgrade
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, parse_duration
from pgtrial.report.data import read_measured
from pgtrial.report.upgrade import as_markdown, as_page, exit_status, headline, parts, times_in
from pgtrial.store.comparison import name_arms
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import check_safe_to_write, make_folder, write_in_folder, writing
from pgtrial.store.temporary import temporary_folder

RECORD = "upgrade.json"
"""The file with all findings of a rehearsal, in its directory. The reports `upgrade.md` and `upgrade.html` follow from
it."""
_STATEMENTS = "statements"
_MARKDOWN, _PAGE = "upgrade.md", "upgrade.html"
_MADE = (_STATEMENTS, DUMP, RECORD, _MARKDOWN, _PAGE)
"""The names of all files and folders that a rehearsal makes in its directory before the studies of times."""
_UNENDED = "the measurement did not end"
"""The reason for missing times if pgtrial was killed while it measured them."""
_OF_LOADS = ("data", "values", "workload", "query", "command", "command_directory")
"""The keys of arms that an upgrade does not take, since both versions have the same data and statements."""
_VERSION = "postgres="
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""The mode bits that give other accounts a right to a directory."""
_MOST_OF_A_STUDY = 3
"""The largest exit status of a study that was not stopped by a signal."""

_reword = by_options(
    {
        "load.data": "--data",
        "load.workload": "--workload",
        "load.suite.limit": "--limit",
        "verdict.budget": "--budget",
        "verdict.margin": "--margin",
        "study.seed": "--seed",
    }
)


def upgrade_command(
    old: Annotated[
        str,
        typer.Argument(
            help="The version that runs now: a version (15), a bin directory, a source (git:PATH@REF), or a set-up in "
            "the form of an arm of `pgtrial compare` (postgres=15,work_mem=64MB).",
            show_default=False,
        ),
    ],
    new: Annotated[
        str, typer.Argument(help="The version to which you want to upgrade, in the same form.", show_default=False)
    ],
    *,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="The data for both versions: a dump by pg_dump, an SQL file (repeatable), or the connection string of "
            "a database, which pgtrial dumps once.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="The statements: a folder with a query in each file (suite:FOLDER), a pgbench script (FILE.sql), or a "
            "capture, which has the recorded sessions of a server or statements from pg_stat_statements "
            "(replay:DIRECTORY). Repeatable.",
            show_default=False,
        ),
    ] = None,
    query: Annotated[list[str] | None, typer.Option(help="A single query. Repeatable.", show_default=False)] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            help="A log of the server, from which each kind of statement is taken once. Repeatable: name several "
            "logs of one server in the order of their times.",
            show_default=False,
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(help="With --log: take only the statements in this database.", show_default=False),
    ] = None,
    statements_of: Annotated[
        str | None,
        typer.Option(
            help="The connection string of a database whose statements are taken from its pg_stat_statements "
            "(PostgreSQL 14 or later), once each. Their values are drawn from the statistics of the columns.",
            metavar="DSN",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        str, typer.Option(help="The time after which a statement is cancelled on each version, e.g. 30s.")
    ] = "1min",
    by_pg_upgrade: Annotated[
        bool,
        typer.Option(
            "--pg-upgrade/--no-pg-upgrade",
            help="Also bring a copy of the data to the new version by pg_upgrade, and compare the statements there "
            "before and after ANALYZE. Without pg_upgrade the data are only restored from the dump.",
        ),
    ] = True,
    times: Annotated[
        bool,
        typer.Option("--times/--no-times", help="Measure the times of the statements after they were compared."),
    ] = True,
    budget: Annotated[
        str, typer.Option(help="The time for measuring all statements, e.g. 30min. Comparing them takes time too.")
    ] = "10min",
    margin: study_options.Margin = None,
    server: study_options.Shared = None,
    results: study_options.Results = None,
    seed: study_options.DrawnSeed = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
) -> int:
    """Rehearse an upgrade: run the statements of a load on both versions, on the same data, and say what breaks, what
    gets other rows, what gets another plan, and what gets slower, in this order.

    Exit status: 0 if none of this is the case, except for other plans; 1 if a statement breaks, gets other rows or gets
    slower; 2 if nothing of this was found, but a statement was not compared or is undecided; 3 after an error.

    Example: pgtrial upgrade 15 18 --data shop.dump --log postgresql-Mon.log
    """
    console = Terminal(file=sys.stderr) if json else Terminal()
    try:
        asked = _Asked.of(
            old, new, data, server, limit_s=parsed("--limit", parse_duration, limit), seed=seed, margin=margin
        )
        budget_s = parsed("--budget", parse_duration, budget)
        asked.check()
        statements = _named(workload or [], query or [], log or [], database, is_counted=statements_of is not None)
        with _directory(results) as directory:
            with temporary_folder() as captures:  # they may have passwords, which the statements have not
                if log:
                    capture_logs(log, captures / "log", database)
                    statements.add_capture(captures / "log", ", ".join(map(str, log)))
                if statements_of is not None:
                    counted = capture_counted(statements_of, captures / "counted")
                    statements.add_capture(captures / "counted", f"pg_stat_statements of {counted}")
            if not statements.found:
                sources = ", ".join(statements.sources)
                raise StudyError(f"{sources}: there is no statement that could be rehearsed; name others")
            statements.write(directory / _STATEMENTS)
            upgrade = _rehearsed(asked, statements, directory, console, by_pg_upgrade=by_pg_upgrade, times=times)
            _write(directory, upgrade.model_copy(update={"no_times": _UNENDED}) if times else upgrade)
    except PgtrialError as error:
        error.reword(_reword)
        raise
    except Interrupted as interrupted:
        return stopped(interrupted)
    status = 0
    if times:
        upgrade, status = time_statements(asked, upgrade, directory, console, budget_s)
        _write(directory, upgrade)
    if json:
        json_text(upgrade.model_dump_json(indent=1))
    else:
        _show(console, upgrade, directory)
    return status or exit_status(upgrade)


@dataclass(frozen=True)
class _Asked:
    """The set-ups and the data that the command line names."""

    keys: UpgradeKeys
    data: list[str]

    @classmethod
    def of(
        cls,
        old: str,
        new: str,
        data: list[str] | None,
        server: Sequence[str] | None,
        *,
        limit_s: float,
        seed: int | None,
        margin: str | None,
    ) -> _Asked:
        """Returns what the arguments and options name. Raises StudyError."""
        if old.strip() == new.strip():
            raise StudyError(f"the old and the new version are both {old}; name two versions, such as 15 18")
        if not data:
            raise StudyError(
                "name the data for both versions: --data shop.dump, or the connection string of a database"
            )
        named = name_arms([text if "=" in text else f"{_VERSION}{text}" for text in (old, new)])
        arms = {name.removeprefix(_VERSION): setup for name, setup in named.items()}
        shared = merged_setups(server or [])
        for setup in (*arms.values(), shared):
            if (key := next((key for key in _OF_LOADS if key in setup), None)) is not None:
                raise StudyError(
                    f"a set-up has {key}, but both versions have the same data and statements; remove it, and name "
                    "them by --data, --workload and --query"
                )
        return cls(UpgradeKeys(arms, shared, limit_s, seed, margin), data)

    def check(self) -> None:
        """Raises StudyError if a set-up, the data or the margin is not valid."""
        with temporary_folder() as folder:
            write_suite(folder / _STATEMENTS, {"any": "SELECT 1;\n"})
            self.study(folder / _STATEMENTS)

    def study(self, suite: Path) -> StudySpec:
        """Returns the study of the two versions with the statements of a suite. Raises StudyError."""
        return self.keys.study(suite, self.data, "What changes by the upgrade?")


@contextmanager
def _directory(results: Path | None) -> Iterator[Path]:
    """Yields the directory of the rehearsal, which must be new, or empty and closed to other accounts, since statements
    and reports have values of the data. If the rehearsal does not get to its findings, removes what it has made. Raises
    StoreError."""
    check_safe_to_write(results or RESULTS)
    existed = results is not None and results.exists()
    if results is not None:
        make_folder(results, mode=0o700)
        with writing(results):
            if any(results.iterdir()):
                raise StoreError(f"{results} is not empty; choose another directory with --results")
            if stat.S_IMODE(results.stat().st_mode) & _OTHERS:
                raise StoreError(
                    f"other accounts may read {results}, and a rehearsal writes values of your data; choose a new "
                    f"directory with --results, or run `chmod 700 {shlex.quote(str(results))}`"
                )
    directory = results or fresh_path("upgrade")
    try:
        yield directory
    except BaseException:
        for name in _MADE:
            shutil.rmtree(directory / name, ignore_errors=True)
            with suppress(OSError):  # it is absent, or was a folder
                (directory / name).unlink()
        if not existed:
            with suppress(OSError):  # it has files or studies of others
                directory.rmdir()
                if results is None:
                    RESULTS.rmdir()
        raise


def _named(
    workloads: Sequence[str],
    queries: Sequence[str],
    logs: Sequence[Path],
    database: str | None,
    *,
    is_counted: bool,
) -> Statements:
    """Returns the statements of workloads and queries. Checks that the logs exist, whose statements are not taken yet.
    `is_counted` is true if pg_stat_statements has further statements. Raises StudyError."""
    if not (workloads or queries or logs or is_counted):
        raise StudyError(
            "name the statements: --workload suite:FOLDER, --query 'select ...', --log FILE for those of a log, or "
            "--statements-of DSN for those of pg_stat_statements"
        )
    if database is not None and not logs:
        raise StudyError("--database applies only to the statements of a log; add --log FILE, or remove --database")
    for log in logs:
        if not log.is_file():
            raise StudyError(f"--log: there is no file {log}; name a log of the server")
    statements = Statements()
    for workload in workloads:
        statements.add(workload)
    if queries:
        statements.add_queries(queries)
    return statements


def _rehearsed(
    asked: _Asked, statements: Statements, directory: Path, console: Terminal, *, by_pg_upgrade: bool, times: bool
) -> Upgrade:
    """Compares the statements on both versions, and returns the findings. `times` is true if the times are to be
    measured after that. Raises StudyError, ArmError and StoreError."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    spec = asked.study(directory / _STATEMENTS)
    with interruptible(), shown(console, as_json=False, reword=_reword) as listener:
        found = rehearse_upgrade(
            spec,
            statements.found,
            directory,
            listener,
            limit_s=asked.keys.limit_s,
            by_pg_upgrade=by_pg_upgrade,
        )
    return Upgrade(
        created=created,
        pgtrial=pgtrial.__version__,
        old=found.versions[0],
        new=found.versions[1],
        data=found.data,
        source=", ".join(statements.sources),
        limit_s=asked.keys.limit_s,
        arms=found.arms,
        statements=found.statements,
        left_out=statements.left_out,
        times_asked=times,
    )


def time_statements(
    asked: _Asked, upgrade: Upgrade, directory: Path, console: Terminal, budget_s: float
) -> tuple[Upgrade, int]:
    """Measures the times of the statements. Returns the findings with the times, and the exit status if a signal has
    stopped a study; otherwise 0."""
    try:
        with temporary_folder() as folder:
            studies = timed_parts(asked.keys, upgrade.statements, upgrade.data, folder, budget_s)
            if not studies:
                return upgrade.model_copy(update={"no_times": "no statement runs on both versions"}), 0
            return _run_studies(upgrade, studies, directory, console, budget_s)
    except BudgetError as error:
        needed = format_duration(round(error.needed_s))
        why = f"the budget is {format_duration(round(budget_s))}, and a verdict takes at least {needed}"
    except PgtrialError as error:
        why = _reword(f"{error}").removesuffix(".")
    return upgrade.model_copy(update={"no_times": why}), 0


def _run_studies(
    upgrade: Upgrade, studies: Sequence[TimedPart], directory: Path, console: Terminal, budget_s: float
) -> tuple[Upgrade, int]:
    """Runs the studies of times one after the other. The time that the first one leaves of its share goes to the
    second one."""
    left_s = budget_s
    for index, study in enumerate(studies):
        later_s = sum(other.share_s for other in studies[index + 1 :])
        path = directory / study.directory
        spec = study.spec.with_verdict(budget=max(study.share_s, left_s - later_s))
        try:
            status = start(spec, path, console=console, reword=_reword)
            measured = StudyDirectory.open(path)
        except PgtrialError as error:
            why = _reword(f"{error}").removesuffix(".")
            return upgrade.model_copy(update={"no_times": f"the study in {study.directory} failed: {why}"}), 0
        if status > _MOST_OF_A_STUDY:
            return upgrade.model_copy(update={"no_times": f"the study in {study.directory} was stopped"}), status
        left_s -= time_spent(measured.plan, measured.trials())
        timed = times_in(study.directory, read_measured(measured).result, plans_differ=study.plans_differ)
        upgrade = upgrade.model_copy(update={"times": [*upgrade.times, timed]})
    return upgrade, 0


def _write(directory: Path, upgrade: Upgrade) -> None:
    """Writes the findings and the reports into the directory of the rehearsal. Raises StoreError."""
    write_in_folder(directory / RECORD, upgrade.model_dump_json(indent=1) + "\n")
    write_in_folder(directory / _MARKDOWN, as_markdown(upgrade))
    write_in_folder(directory / _PAGE, as_page(upgrade))


def _show(console: Terminal, upgrade: Upgrade, directory: Path) -> None:
    console.print(Text(headline(upgrade), "bold"))
    for part in parts(upgrade):
        console.print(Text(f"\n{part.title}", "bold"))
        for sentence in part.sentences:
            console.print(Text(sentence))
        for table in part.tables:
            console.print(for_terminal(table))
    console.print_line(f"\nreport: {directory / _PAGE}")
