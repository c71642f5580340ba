"""The corpus: what each of its files holds, and how one run of it is made.

A file is TOML. `shows` says in a sentence what it is about. `args` are the runs, each a line of arguments, or several
lines that are run one after the other on the same database; with `variants`, each line once with each of these in the
place of `@`. `tables` is how many tables of 100 rows there are, as `prepare` makes them (none); `setup` is SQL that is
executed besides; the rows of the queries in `compare` have to be the same afterwards. `files` are written beside the
run, `lua` are names of scripts in the folder `lua` that are copied there. `typed` is standard input, `env` more
variables. `says` are words that the original has to say in every run, `timed` is for runs that are limited by time,
`measured` are patterns of what differs from run to run in these only, `sort` is for lines that come in any order;
`unsaid` patterns of what the original alone may say.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engine.corpora import CorpusCase, Database, named, read_corpus
from tests.engine.sessions import wait_until_alone
from tests.engine.sysbench.differences import instead_of, without_known
from tests.engine.sysbench.sides import Side, settle

CORPUS = Path(__file__).with_name("corpus")
SCRIPTS = Path(__file__).with_name("lua")
ROWS = 100
_KEYS = {"shows", "args", "variants", "tables", "setup", "compare", "files", "lua", "typed", "env", "says", "timed"} | {
    "measured",
    "sort",
    "unsaid",
}
_EMPTY = "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
_TABLE = """
    CREATE TABLE sbtest{0} (id serial, k int DEFAULT '0' NOT NULL, c char(120) DEFAULT '' NOT NULL,
        pad char(60) DEFAULT '' NOT NULL, PRIMARY KEY (id));
    INSERT INTO sbtest{0} (k, c, pad) SELECT i, repeat('1', 119), repeat('2', 59) FROM generate_series(1, {1}) i;
    CREATE INDEX k_{0} ON sbtest{0} (k);
"""


@dataclass(frozen=True)
class Case(CorpusCase):
    """A run that a corpus file describes, of one or more command lines."""

    lines: tuple[str, ...]

    @property
    def content(self) -> list[object]:
        """The parts of the case that decide whether a recording is valid."""
        return [self.lines, self.details, {name: (SCRIPTS / name).read_text() for name in self.details.get("lua", [])}]


def texts(directory: Path) -> dict[str, str]:
    """Returns the files of a directory."""
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}


@dataclass(frozen=True)
class Outcome:
    """Everything that a run printed and wrote, with measured values replaced by marks."""

    said: str
    transcript: str
    """The exit status, standard output and standard error of each command line, followed by the rows in the tables."""


def all_cases() -> Iterator[Case]:
    """Yields every case of every corpus file."""
    for file, details in read_corpus(CORPUS, _KEYS):
        for name, lines in named(file, _runs(details)):
            yield Case(name, details, lines)


def _runs(details: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        tuple(line.replace("@", variant) for line in ([run] if isinstance(run, str) else run))
        for run in details["args"]
        for variant in details.get("variants", ["@"])
    ]


def perform(case: Case, side: Side, database: Database, directory: Path) -> Outcome:
    """Run one side in an empty directory, on a database as the case wants it."""
    target, connection = database
    details = case.details
    for name, text in details.get("files", {}).items():
        _place(directory / name).write_text(text)
    for name in details.get("lua", []):
        shutil.copy(SCRIPTS / name, _place(directory / name.removeprefix("modules/")))
    tables = (_TABLE.format(number, ROWS) for number in range(1, details.get("tables", 0) + 1))
    connection.execute(_EMPTY + "".join(tables) + details.get("setup", ""))
    said, transcript = "", ""
    for line in case.lines:
        args = shlex.split(line.replace("%DB%", target.dbname))
        done = side.run(target, *args, directory=directory, typed=details.get("typed"), **details.get("env", {}))
        # what a run that ended with an error had under way goes on without it
        wait_until_alone(connection, target.dbname)
        places = {str(directory): "~", target.dbname: "%DB%", target.host: "%HOST%", str(target.port): "%PORT%"}
        stdout, stderr = (_settled(case, side, _renamed(text, places)) for text in (done.stdout, done.stderr))
        said += stdout + stderr
        instead = instead_of(line)
        if instead is None:
            transcript += f"$ {line}\n{stdout}--- status {done.status}, standard error:\n{stderr}"
        elif side.name == "original":
            transcript += f"$ {line}\n--- status {instead.status}, and the line {instead.says}\n"
        else:
            found = re.search(instead.says, stdout + stderr, flags=re.MULTILINE)
            transcript += f"$ {line}\n--- status {done.status}, and the line "
            transcript += f"{instead.says}\n" if found else f"is none of\n{stdout}{stderr}"
    for query in details.get("compare", ()):
        transcript += f"--- {query}\n" + "".join(f"{row}\n" for row in connection.execute(query).fetchall())
    return Outcome(said, transcript)


def _place(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    return path


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name, replacement in names.items():
        text = text.replace(name, replacement)
    return text


def _settled(case: Case, side: Side, text: str) -> str:
    if side.name == "original":
        for pattern in case.details.get("unsaid", ()):
            text = re.sub(pattern, "", text, flags=re.MULTILINE)
    text = settle(without_known(side.name, text), timed=case.details.get("timed", False))
    for pattern in case.details.get("measured", ()):
        text = re.sub(pattern, "#", text, flags=re.MULTILINE)
    return _sorted(text) if case.details.get("sort") else text


def _sorted(text: str) -> str:
    """Returns the lines sorted. The order of the original's lines is random, since its threads write a line and its end
    separately.
    """
    parted = re.sub(r"(?<=.)(?=(?:Creating|Inserting|Dropping) )", "\n", text)
    return "".join(f"{line}\n" for line in sorted(parted.splitlines()) if line)
