"""Stores the answers of the originals, so that a run of the tests has to run our programs only.

To record: `make record` runs every test that asks an original against it and writes its answers anew;
`PGTRIAL_RECORD=1 pytest tests/engine/test_corpus.py -k functions` does so for some tests. Look at the diff of
`tests/engine/recorded/` before you commit it: it says what the original answers now.

An answer is stored after the test's own normalisation, as one line of JSON, and it is used when its key fits:

- `original`: a digest of the original program, and of the names of the libraries that it has words from, such as
  libpq.so.5.15. A rebuilt program is another original, a minor update of a library is not: that comes every few months,
  and CI finds out whether it changed a word. Where the original is not installed, its recordings stand for it.
- `server`: the version of the server that was asked.
- `inputs`: a digest of the case: its parameters or its content in the corpus, the source of the test and of the
  functions of the tests that it names, and their constants. Comments, docstrings, imports and decorators are left
  out, and so are classes and fixtures.

If no recording fits, the original is run, as with `PGTRIAL_RECORD=1`, but nothing is written. With `CI=true` every
original is run, and the test fails if the stored answer with the same key is another.

Some comparisons need both sides in one run and stay live: shares of what is drawn and counts of clients that meet
(`approx`, in `sysbench/`), a run or its server cut off at a random moment (`sysbench/test_published.py`,
`test_broken_runs.py`), a consistent state after a run of each side alone (`sysbench/test_tpcc.py`), words about
certificates made for the run (`test_tls.py`), and `--help`, where ours is the original's with something added. Measured
values are no part of an answer.
"""

from __future__ import annotations

import ast
import enum
import functools
import hashlib
import inspect
import json
import os
import re
import subprocess
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

RECORDED = Path(__file__).with_name("recorded")
HINT = "the original's answer may be a recording; PGTRIAL_RECORD=1 runs the original itself"
"""A hint that each comparing test prints, so that pytest shows it if the test fails."""

_LONGEST = 20_000
"""Texts with more characters than this are stored and compared by a digest."""

_LIBRARIES = re.compile(r"lib(?:pq|luajit)[-.\d]")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONSTANTS = (str, bytes, int, float, tuple, list, dict, type(None))


class Mode(enum.Enum):
    """The source of the original's answers."""

    STORED = "stored"
    """Answers come from the recordings, or from the original if no recording fits."""

    RECORD = "record"
    """Answers come from the original and are stored."""

    CHECK = "check"
    """Answers come from the original, and the stored answers must be equal."""


def mode_of_the_run() -> Mode:
    """Returns the mode that the variables PGTRIAL_RECORD and CI choose."""
    if os.environ.get("PGTRIAL_RECORD", "0") not in ("", "0"):
        return Mode.RECORD
    return Mode.CHECK if os.environ.get("CI") == "true" else Mode.STORED


@dataclass(frozen=True)
class Key:
    """The conditions under which a stored answer is valid. `original` is None where that program is not installed."""

    original: str | None
    server: str
    inputs: str

    def fits(self, stored: dict[str, Any]) -> bool:
        """True if a stored answer is valid under these conditions."""
        same = (stored["server"], stored["inputs"]) == (self.server, self.inputs)
        return same and self.original in (None, stored["original"])


@dataclass
class Recordings:
    """The files of one directory. Each file is asked for and written by one process: that of its test file."""

    directory: Path
    mode: Mode
    count: Counter[str]
    """Counts the answers by their source and by the reason why the original was run."""

    _files: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _new: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def answer(self, file: str, case: str, key: Key, ask: Callable[[], Any], times: int = 1) -> Any:
        """Returns the original's answer to a case: the stored one in `file`, or the one that `ask` gets from the
        program. Raises AssertionError if a check finds that they differ.

        Where the original's answer depends on a race, `ask` is called up to `times` times until it returns the stored
        answer.
        """
        stored = self._stored(file).get(case)
        if self.mode is Mode.STORED and stored is not None and key.fits(stored):
            self.count["recorded"] += 1
            return stored["answer"]
        self.count[f"asked ({self._why(key, stored)})"] += 1
        answer = ask()
        if self.mode is Mode.RECORD:
            assert key.original is not None
            self._new.setdefault(file, {})[case] = {**asdict(key), "case": case, "answer": answer}
        elif self.mode is Mode.CHECK and stored is not None and key.fits(stored):
            for _ in range(times - 1):
                answer = answer if answer == stored["answer"] else ask()
            found = f"recorded: {stored['answer']}\nasked: {answer}"
            assert stored["answer"] == answer, f"{file}: the recording of {case} is another: run make record\n{found}"
        return answer

    def write(self) -> None:
        """Write what was recorded into the files, sorted; what was not asked for in this run stays as it is."""
        for file, new in self._new.items():
            path = self.directory / f"{file}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = self._stored(file) | new
            text = "".join(json.dumps(lines[case], sort_keys=True) + "\n" for case in sorted(lines))
            path.write_text(text, encoding="ascii")

    def _stored(self, file: str) -> dict[str, dict[str, Any]]:
        if file not in self._files:
            path = self.directory / f"{file}.jsonl"
            text = path.read_text(encoding="ascii") if path.exists() else ""
            self._files[file] = {line["case"]: line for line in map(json.loads, text.splitlines())}
        return self._files[file]

    def _why(self, key: Key, stored: dict[str, Any] | None) -> str:
        if self.mode is not Mode.STORED:
            return self.mode.value
        if stored is None:
            return "not recorded"
        return next(
            f"other {part}"
            for part in ("inputs", "server", "original")
            if getattr(key, part) not in (stored[part], None)
        )


def plain(answer: object, names: Mapping[str, str] | None = None) -> Any:
    """Returns an answer in the form in which it is recorded: as JSON's types, with a digest in place of a long text.

    `names` has patterns of texts that differ in each run of the tests, such as directories, and the words that replace
    them.
    """
    return _shortened(json.loads(json.dumps(answer, default=_plain)), names or {})


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else repr(value)


def _shortened(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(part, names) for name, part in value.items()}
    if isinstance(value, list):
        return [_shortened(part, names) for part in value]
    if not isinstance(value, str):
        return value
    for pattern, name in names.items():
        value = re.sub(pattern, name, value)
    return value if len(value) <= _LONGEST else f"{len(value)} characters, SHA-256 {_digest([value])}"


def by_fifties(lines: list[str]) -> list[str]:
    """Digests of a long list of lines, one of each fifty, and the count of the lines."""
    pieces = [lines[start : start + 50] for start in range(0, len(lines), 50)]
    return [f"{len(lines)} lines", *(_digest(piece)[:16] for piece in pieces)]


@functools.cache
def digest_of_program(program: Path) -> str | None:
    """Returns a digest of a program and of the names of those of its libraries whose messages it prints, such as libpq.
    Returns None if the program does not exist.
    """
    if not program.exists():
        return None
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^\s*(\S+) => (/\S+)", listed, flags=re.MULTILINE)
    libraries = [Path(path).resolve().name for name, path in sorted(found) if _LIBRARIES.match(name)]
    return _digest([hashlib.sha256(program.read_bytes()).hexdigest(), *libraries])[:16]


def digest_of_inputs(test: Callable[..., object], content: object) -> str:
    """Returns a digest of a case's content, and of the code of a test with all functions and constants of the tests
    that it uses.
    """
    return _digest([json.dumps(plain(content), sort_keys=True), *_code(test)])[:16]


@functools.cache
def _code(test: Callable[..., object]) -> tuple[str, ...]:
    """Returns the source of a function and of all that it reaches by name in the modules of these tests, sorted."""
    found: dict[str, str] = {}
    _reach(test, "", found)
    return tuple(sorted(found.values()))


def _reach(value: object, name: str, found: dict[str, str]) -> None:
    if isinstance(value, FunctionType) and value.__module__.startswith(__package__ or ""):
        label = f"{value.__module__}.{value.__qualname__}"
        if label in found:
            return
        function = _parsed(value)
        found[label] = ast.unparse(function)
        for each in sorted(set(_names(function))):
            _reach(value.__globals__.get(each, ...), each, found)
    elif isinstance(value, _CONSTANTS):
        text = re.sub(r"<function (\w+) at 0x\w+>", r"\1", f"{name} = {value!r}")
        found[text] = text
        for function in _functions_in(value):
            _reach(function, "", found)


def _functions_in(value: object) -> Iterator[FunctionType]:
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _functions_in(part)


def _parsed(function: FunctionType) -> ast.FunctionDef:
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(parsed, ast.FunctionDef)
    parsed.decorator_list = []
    for node in ast.walk(parsed):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
    return parsed


def _names(function: ast.FunctionDef) -> Iterator[str]:
    return (node.id for node in ast.walk(function) if isinstance(node, ast.Name))


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()
