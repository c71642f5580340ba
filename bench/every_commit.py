"""`python -m bench.every_commit bisect|gates`: commits of PostgreSQL 15, and drivers, as arms.

`bisect` looks for a slower commit among 30, and for one where there is none. `gates` runs gates of commits that differ
in a comment, and gates of a commit that is slower, until there are as many as asked. Both run the commands as a user
does, and write bench/bisections.json and bench/gates.json after each. Not part of `make bench`: it takes hours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.commits import COMMITS, PLANTED_AT, commit_of, make_commits
from bench.drivers import Drivers
from bench.figures import read_figures, write_figures
from pgtrial.model.records import Record
from pgtrial.model.units import format_duration

_BISECTIONS = Path(__file__).with_name("bisections.json")
_GATES = Path(__file__).with_name("gates.json")
_STUDY = """
[study]
name = "every-commit"
question = "Which commit is slower?"

[load]
workload = "select-only"
scale = 10
clients = 8
{lengths}
[server]
postgres = "{postgres}"

[verdict]
# half of what is to be found
margin = "2.5%"
# client and servers share the machine; the client's part of the work is the same for both arms
allow_busy_client = true
"""
_LENGTHS_OF_GATES = """
# as short as a budget of two minutes would choose them, so that a gate may take one
warmup = "500ms"
duration = "2s"
"""
_STUDY_OF_DRIVERS = """
[study]
name = "drivers"
question = "Which driver is slower?"

[load]
scale = 1
"""
_COMMITS = ("equal commits", "slower commit")
_DRIVERS = {"equal drivers": "same", "slower driver": "slower", "newer driver": "new"}

Arms = Callable[[str, int], list[str]]
"""A function that returns BASE and HEAD of the next gate of a kind; the number is that of the gates of this kind so
far.
"""


class Gate(Record):
    """The result of one gate."""

    created: str
    kind: str
    budget: str
    status: int
    verdict: str
    difference: list[float] | None
    """The estimate and its bounds, as shares of the speed of BASE."""
    blocks: int
    seconds: float
    """The wall time of the command, with its builds, seconds."""


class Bisection(Record):
    """The result of one bisection."""

    created: str
    kind: str
    budget: str
    status: int
    answer: str
    named: str | None
    """The subject of the commit that the bisection named."""
    steps: list[str]
    seconds: float


def table() -> Iterator[str]:
    """Yields the lines of the Markdown table of the gates' results."""
    yield "| HEAD | gates | alarms | called faster | no verdict | median time | longest |"
    yield "|---|---|---|---|---|---|---|"
    known = read_figures(_GATES, Gate)
    for kind in (*_COMMITS, *_DRIVERS):
        gates = [gate for gate in known if gate.kind == kind]
        if gates:
            words = Counter(gate.verdict for gate in gates)
            seconds = [gate.seconds for gate in gates]
            times = [format_duration(round(middle)) for middle in (median(seconds), max(seconds))]
            numbers = [len(gates), sum(gate.status == 1 for gate in gates), words["better"], words["undecided"]]
            yield f"| {kind} | {' | '.join(map(str, numbers))} | {' | '.join(times)} |"


def bisect(repository: Path, kind: str, budget: str) -> None:
    """Bisect a branch from end to end."""
    branch = "planted" if kind == _COMMITS[1] else "clean"
    study = _study(repository)
    command = ["bisect", "planted-0", f"{branch}-{COMMITS}", "--study", str(study), "--budget", budget, "--json"]
    status, output, seconds = _command([*command, "--results", str(study.with_name(f"bisect-{branch}"))])
    content = json.loads(output)
    last = content["steps"][-1]
    bisection = Bisection(
        created=_now(),
        kind=kind,
        budget=budget,
        status=status,
        answer=content["answer"],
        named=last["subject"] if content["answer"] == "found" else None,
        steps=[
            f"{step['subject']}: {step['verdict']}, {_interval_text(step['difference'])}" for step in content["steps"]
        ],
        seconds=round(seconds, 1),
    )
    write_figures(_BISECTIONS, [*read_figures(_BISECTIONS, Bisection), bisection])
    print(bisection.model_dump_json(), flush=True)


def gates(arms: Arms, kind: str, budget: str, number: int, study: Path) -> None:
    """Run the gates that are missing."""
    known = read_figures(_GATES, Gate)
    while (done := sum(gate.kind == kind for gate in known)) < number:
        with tempfile.TemporaryDirectory(prefix="pgtrial-campaign-") as folder:
            command = ["gate", *arms(kind, done), "--study", str(study), "--budget", budget, "--json"]
            status, output, seconds = _command([*command, "--results", f"{folder}/study"])
        known.append(_gate(kind, budget, status, json.loads(output), seconds))
        write_figures(_GATES, known)
        print(known[-1].model_dump_json(), flush=True)


def _arms_of_commits(repository: Path) -> Arms:
    def arms(kind: str, done: int) -> list[str]:
        before = PLANTED_AT - 1 if kind == "slower commit" else 2 * (done % 7)
        tags = {"base": f"planted-{before}", "head": f"planted-{before + 1}"}
        return [f"{name}=postgres={commit_of(repository, tag)}" for name, tag in tags.items()]

    return arms


def _arms_of_drivers(drivers: Drivers) -> Arms:
    def arms(kind: str, _: int) -> list[str]:
        return [f"base={drivers.command('old')}", f"head={drivers.command(_DRIVERS[kind])}"]

    return arms


def _gate(kind: str, budget: str, status: int, result: dict[str, Any], seconds: float) -> Gate:
    (claim,) = result["primary"]
    difference = claim["difference"]
    return Gate(
        created=_now(),
        kind=kind,
        budget=budget,
        status=status,
        verdict=claim["verdict"],
        difference=[round(difference[key], 4) for key in ("value", "low", "high")] if difference else None,
        blocks=claim["blocks"],
        seconds=round(seconds, 1),
    )


def _study(repository: Path, lengths: str = "") -> Path:
    study = repository.with_name("study.toml")
    study.write_text(_STUDY.format(postgres=commit_of(repository, "planted-0"), lengths=lengths))
    return study


def _command(arguments: list[str]) -> tuple[int, str, float]:
    began = time.monotonic()
    command = [str(Path(sys.executable).with_name("pgtrial")), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode} and printed nothing")
    return done.returncode, done.stdout, time.monotonic() - began


def _interval_text(difference: dict[str, float] | None) -> str:
    return " to ".join(f"{100 * difference[key]:+.1f}%" for key in ("low", "high")) if difference else "no interval"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def main() -> None:
    """Add to the figures, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("bisect", "gates", "show"))
    parser.add_argument("--source", type=Path, help="an unpacked source of PostgreSQL 15")
    parser.add_argument("--work", type=Path, default=Path("results/every-commit"))
    parser.add_argument("--rounds", type=int, default=5000, help="of the loop in what is slower")
    parser.add_argument("--kind", choices=(*_COMMITS, *_DRIVERS), default=_COMMITS[0])
    parser.add_argument("--number", type=int, default=100, help="of gates, with those that there are")
    parser.add_argument("--budget", default="5min")
    given = parser.parse_args()
    work = given.work.absolute()
    if given.what == "gates" and given.kind in _DRIVERS:
        drivers = Drivers(work / "drivers")
        drivers.make(given.rounds)
        study = work / "drivers.toml"
        study.write_text(_STUDY_OF_DRIVERS + _LENGTHS_OF_GATES)
        gates(_arms_of_drivers(drivers), given.kind, given.budget, given.number, study)
    elif given.what != "show":
        repository = work / "repository"
        if given.source is not None:
            make_commits(repository, given.source, given.rounds)
        if given.what == "bisect":
            bisect(repository, given.kind, given.budget)
        else:
            study = _study(repository, _LENGTHS_OF_GATES)
            gates(_arms_of_commits(repository), given.kind, given.budget, given.number, study)
    for line in table():
        print(line)


if __name__ == "__main__":
    main()
