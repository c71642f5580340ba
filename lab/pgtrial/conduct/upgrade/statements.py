"""Collects the statements of a rehearsal of an upgrade from queries, suites, pgbench scripts and captures. Each becomes
SQL that can be run by itself, and is written into a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.loads.engine import recorded_examples
from pgtrial.loads.parsed_statements import TRANSACTION, changes_data, first_word
from pgtrial.loads.process import finished, last_complaint, lines_of, starting
from pgtrial.loads.recorded_text import with_values
from pgtrial.loads.script_commands import script_commands
from pgtrial.loads.sql_files import statements
from pgtrial.model.errors import StudyError
from pgtrial.model.records.suite import QUERY_ENDING
from pgtrial.model.study.replay import is_replay
from pgtrial.model.study.suites import MOST_QUERIES, is_suite
from pgtrial.model.tokens import without_tokens
from pgtrial.model.units import numbered, plural, slug
from pgtrial.servers.counted_statements import write_counted_statements
from pgtrial.store.files import write_in_folder
from pgtrial.store.replay_files import capture_of, left_out_of, templates_in
from pgtrial.store.suites import find_suite
from pgtrial.store.temporary import temporary_folder

_OF_SESSION = TRANSACTION | {"deallocate", "discard"}
"""The first words of recorded statements that only control transactions or sessions."""
_SEED = "1"
"""The seed of the values that pgbench scripts draw. It is fixed, so that two rehearsals have the same statements."""
_ERROR = "pgtrial-engine capture: error: "
_COUNTED = "--counted=60"
"""The option with the time in seconds over which the engine spreads the counted statements. The time does not matter,
since a rehearsal takes no times from a capture."""


@dataclass(frozen=True)
class NamedStatement:
    """A statement of the rehearsal: SQL that can be run by itself, with preceding statements such as SET if its file
    has them."""

    name: str
    """The name of its file, without the ending."""
    text: str
    executions: int | None = None
    """The number of times that a log has the statement; None if it is not known."""

    @property
    def parts(self) -> list[str]:
        """The single statements in the text."""
        return [part.text for part in statements(self.text, {})]

    @property
    def undone(self) -> str:
        """The text in a form whose changes are undone when the engine ends its transaction, for a suite that runs it
        many times."""
        parts = self.parts
        kept = [part for part in parts if first_word(part) not in TRANSACTION]
        if len(kept) < len(parts):  # a COMMIT of the file would make the changes permanent
            return "".join(f"{part};\n" for part in ("BEGIN", *kept))
        return f"BEGIN;\n{self.text}" if any(map(changes_data, parts)) else self.text


@dataclass
class Statements:
    """The statements that were collected, and phrases about those that were left out."""

    found: list[NamedStatement] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """The origins of the statements, as phrases."""

    def add(self, workload: str) -> None:
        """Adds the statements of a workload as the command line names it: a suite (`suite:FOLDER`), a capture
        (`replay:DIRECTORY`), or a pgbench script. Raises StudyError."""
        if is_suite(workload):
            suite = find_suite(workload, Path(), "--workload")
            files = {name: suite.files[f"{name}{QUERY_ENDING}"] for name in suite.queries}
            self._take(workload, (NamedStatement(name, text) for name, text in files.items()))
        elif is_replay(workload):
            self.add_capture(capture_of(workload), workload)
        elif workload.endswith(QUERY_ENDING):
            self._take(workload, self._of_script(Path(workload)))
        else:
            raise StudyError(
                f"--workload {workload} has no statements that could be rehearsed; name a folder of queries "
                "(suite:FOLDER), a pgbench script (FILE.sql), or a capture (replay:DIRECTORY)"
            )

    def add_capture(self, capture: Path, source: str) -> None:
        """Adds an execution of each statement of a capture, those that occur most often first. `source` is a phrase
        that says what was captured. Raises StudyError."""
        self._take(source, self._recorded(capture, source))
        self.left_out += [f"{why}, of {source}" for why in left_out_of(capture)]

    def add_queries(self, texts: Sequence[str]) -> None:
        """Adds queries from the command line, under the names q1, q2 and so on."""
        named = (NamedStatement(f"q{number}", text) for number, text in enumerate(texts, start=1))
        self._take("--query", named)

    def write(self, folder: Path) -> None:
        """Writes each statement into a file of its own. Raises StoreError."""
        write_suite(folder, {statement.name: statement.text for statement in self.found})

    def _take(self, source: str, named: Iterable[NamedStatement]) -> None:
        self.sources.append(source)
        taken = {statement.name for statement in self.found}
        secret = 0
        for statement in named:
            if without_tokens(statement.text) != statement.text:
                secret += 1
            elif statement.parts:
                name = numbered(statement.name, taken, "-{}")
                taken.add(name)
                self.found.append(NamedStatement(name, _ended(statement.text), statement.executions))
        if secret:
            self.left_out.append(
                f"{plural(secret, 'statement')} of {source} with a password or a token, which pgtrial does not store"
            )
        if more := len(self.found) - MOST_QUERIES:
            if more > 0:
                self.left_out.append(f"{plural(more, 'statement')} of {source}, since {MOST_QUERIES} are the most")
            del self.found[MOST_QUERIES:]

    def _of_script(self, script: Path) -> Iterator[NamedStatement]:
        """Yields the statements of a pgbench script, with the values that one client draws for its first
        transaction."""
        if not script.is_file():
            raise StudyError(f"--workload: there is no file {script}; name a pgbench script")
        commands = script_commands(["-f", f"{script}@1", "-M", "simple", "--random-seed", _SEED])
        stem = slug(script.stem).replace("=", "-").lstrip("_")
        unknown = 0
        for number, command in enumerate(commands, start=1):
            if command.sql is None or first_word(command.sql) in TRANSACTION:
                continue
            if command.sent or not command.variables:
                yield NamedStatement(f"{stem}-{number}", command.sent[0] if command.sent else command.sql)
            else:
                unknown += 1
        if unknown:
            self.left_out.append(
                f"{plural(unknown, 'statement')} of {script}, since their values are known only after another statement"
            )

    def _recorded(self, capture: Path, source: str) -> Iterator[NamedStatement]:
        executions = templates_in(capture)
        examples = recorded_examples(capture, list(executions))
        if never := len(executions) - len(examples):
            self.left_out.append(f"{plural(never, 'statement')} of {source}, since no recorded execution succeeded")
        for template, times in executions.items():
            example = examples.get(template)
            if example is not None and first_word(example.text) not in _OF_SESSION:
                yield NamedStatement(f"s{template}", with_values(example.text, example.values), times)


def capture_logs(logs: Sequence[Path], capture: Path, database: str | None) -> None:
    """Makes a capture, the recorded sessions of a server, from its logs. With `database`, only the sessions of this
    database are taken. Raises StudyError with the engine's message."""
    options = [] if database is None else [f"--database={database}"]
    _capture("--log", capture, [*options, "--", *map(str, logs)])


def capture_counted(dsn: str, capture: Path) -> str:
    """Makes a capture with one execution of each statement that a database has counted in pg_stat_statements. Returns
    the address of the database without its password. Raises StudyError and StoreError."""
    with temporary_folder() as folder:
        shown = write_counted_statements(dsn, folder, MOST_QUERIES)
        files = [f"--{name}={folder / f'{name}.csv'}" for name in ("statements", "columns")]
        _capture("--statements-of", capture, [*files, _COUNTED])
    return shown


def _capture(named_by: str, capture: Path, options: Sequence[str]) -> None:
    """Makes a capture with these options of the engine. Raises StudyError with the engine's message, which begins with
    the option `named_by`."""
    with starting() as engine:
        done = finished([engine, "capture", "-o", capture, *options], {})
    if done.returncode != 0:
        words = last_complaint(list(lines_of(done.stderr.splitlines())))
        raise StudyError(f"{named_by}: {(words or 'the engine cannot read it').removeprefix(_ERROR)}")


def write_suite(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes a suite: a folder with a file for each query. Raises StoreError."""
    for name, text in texts.items():
        write_in_folder(folder / f"{name}{QUERY_ENDING}", text)


def _ended(text: str) -> str:
    return f"{text.strip().removesuffix(';')};\n"
