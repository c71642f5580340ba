"""The corpus: what each of its files holds, and how one run of it is made and compared.

A file is TOML. `shows` says in a sentence what it is about. The runs are `args` (one or more lines of arguments), each
with each of the `modes`, if any, and with each of the texts in `lines`, which is `script.sql`; `files` are written
beside it. `setup` is SQL for a schema of the run's own, in which there is always a table `seen (n, v)`; what is in it
afterwards, and the rows of the queries in `compare`, has to be the same. `says` are words that the original has to say
in every run, `unsaid` patterns of what it alone may say; `measured` are patterns of what differs from run to run in
this case only; `sort` is for lines on standard error that come in any order. `typed` is standard input, `env` more
variables, `encoding` that of the files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engine.corpora import CorpusCase, Database, named, read_corpus
from tests.engine.programs import Ended, Program, settle

CORPUS = Path(__file__).with_name("corpus")
_ONE_LINE = "-n -t 1 -f script.sql"
_SCHEMA = """
    DROP SCHEMA IF EXISTS bench CASCADE;
    CREATE SCHEMA bench;
    CREATE TABLE seen (n int GENERATED ALWAYS AS IDENTITY, v text);
"""
_SEEN = "SELECT v FROM seen ORDER BY n"
_KEYS = {"shows", "args", "modes", "lines", "files", "setup", "compare", "says", "unsaid", "measured", "sort"} | {
    "typed",
    "env",
    "encoding",
}


@dataclass(frozen=True)
class Case(CorpusCase):
    """One command line of a corpus file, with the files that it reads."""

    args: tuple[str, ...]
    files: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """Everything that a run printed and wrote, with measured values replaced by marks."""

    status: int
    stdout: str
    stderr: str
    logs: dict[str, str]
    rows: list[list[tuple[object, ...]]]


def all_cases() -> Iterator[Case]:
    """Yields every case of every corpus file."""
    for file, details in read_corpus(CORPUS, _KEYS):
        for name, (line, script) in named(file, _runs(details)):
            yield Case(name, details, tuple(shlex.split(line)), script)


def _runs(details: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    """Returns the command lines of a corpus file, each with the files that it reads."""
    files = details.get("files", {})
    scripts = [{**files, "script.sql": line} for line in details["lines"]] if "lines" in details else [files]
    args = details.get("args", _ONE_LINE)
    return [
        (line + (f" -M {mode}" if mode else ""), script)
        for script in scripts
        for line in ([args] if isinstance(args, str) else args)
        for mode in details.get("modes", [None])
    ]


def perform(case: Case, program: Program, database: Database, directory: Path) -> Outcome:
    """Runs a program in an empty directory, in a database whose schema is set up as the case says."""
    target, connection = database
    encoding = case.details.get("encoding", "utf-8")
    for name, text in case.files.items():
        (directory / name).write_bytes(text.encode(encoding))
    connection.execute(_SCHEMA + case.details.get("setup", ""))
    env = case.details.get("env", {})
    done = program.run_in_time(target, *case.args, directory=directory, typed=case.details.get("typed"), **env)
    rows = [connection.execute(query).fetchall() for query in (_SEEN, *case.details.get("compare", ()))]
    logs = {
        re.sub(r"\.\d+", ".#", path.name, count=1): _settled_log(case, path.read_text())
        for path in sorted(directory.iterdir())
        if path.name not in case.files
    }
    return Outcome(done.status, _settled(case, done.stdout), _settled(case, _stderr(case, done)), logs, rows)


def _stderr(case: Case, done: Ended) -> str:
    return "".join(sorted(done.stderr.splitlines(keepends=True))) if case.details.get("sort") else done.stderr


def _settled(case: Case, text: str) -> str:
    for pattern in case.details.get("unsaid", ()):
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    for pattern in case.details.get("measured", ()):
        text = re.sub(pattern, "#", text, flags=re.MULTILINE)
    return settle(text)


def _settled_log(case: Case, text: str) -> str:
    """Returns a transaction log without its times, sorted by client.

    Of an aggregated log, it returns the number of columns and, if a number of transactions limits the run, the sum of
    the counts. A line is written when an interval of wall-clock time is over, so that the line with the last
    transaction may be missing.
    """
    arguments = " ".join(case.args)
    lines = [line.split(" ") for line in text.splitlines()]
    if "--aggregate" not in arguments:
        lines.sort(key=lambda fields: int(fields[0]))
        return "".join(" ".join(_entry(fields, throttled="-R" in arguments)) + "\n" for fields in lines)
    # after the start, the count and the latency's four come the columns that options add
    assert all(field.isdecimal() for fields in lines for field in fields)
    assert lines, "a run as long as an interval, whenever it begins"
    counts: int | str = "some"
    if "-t" in case.args:
        limit = int(case.args[case.args.index("-t") + 1])
        counts = min(sum(int(fields[1]) for fields in lines), limit - 1)
    return f"{sorted({len(fields) for fields in lines})} columns, {counts} transactions\n"


def _entry(fields: list[str], *, throttled: bool) -> list[str]:
    """Returns the fields of a log entry with marks in place of measured values: client, number, time, script, seconds,
    microseconds, and the lag and retries that options add.
    """
    client, number, time, script, seconds, microseconds, *more = fields
    assert len(seconds) == 10
    assert len(microseconds) <= 6
    if throttled:
        more[0] = "#"
    return [client, number, "#" if time.isdecimal() else time, script, "#", "#", *more]
