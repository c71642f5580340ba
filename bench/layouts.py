"""Studies of one commit against itself: how often two layouts of its code are called different, by accident.

`python -m bench.layouts run --source DIRECTORY` runs what is missing, and writes bench/layouts.json after each study.
In `fixed` studies each arm keeps one layout, drawn by the number of the study, as two builds of two commits do. In
`drawn` ones each block draws a layout for each arm. All else is the same: source, options, data, load and lengths.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Literal, get_args

from bench.figures import EQUAL_ARMS, equal_arms, read_figures, rounded, write_figures
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Word
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.servers import Made
from pgtrial.model.study.sources import source_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.verdict.pace import under_way_s

_FIGURES = Path(__file__).with_name("layouts.json")
_LAYOUTS = 32
_ARMS = ("one", "the other")
_LOAD = {"workload": "select-only", "scale": 10, "clients": 8, "warmup": "500ms", "duration": "2s"}
"""The load; its lengths are given, since a block that finds them would draw the layouts again."""
_BLOCKS = 10
"""The number of blocks of a study, which take about 75 seconds."""

Kind = Literal["fixed", "drawn"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


class OneCommit(Record):
    """The result of a study of a commit against itself."""

    created: str
    kind: Kind
    number: int
    """The study's number among the studies of its kind; it seeds the random numbers."""
    layouts: list[int]
    """The layouts of the two arms, if `kind` is `fixed`."""
    source: str
    verdict: Word
    difference: float | None
    low: float | None
    high: float | None
    """The 95% interval of the difference."""
    blocks: int
    seconds: float


def main() -> None:
    """Run the studies that are missing, or show what is there."""
    given = _arguments()
    if given.what == "run":
        _run_missing(given.source, given.build, {"fixed": given.fixed, "drawn": given.drawn})
    for line in _table():
        print(line)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.layouts", description=__doc__)
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument(
        "--source", type=Path, help="a source of PostgreSQL, a clone (its HEAD) or a directory of files"
    )
    parser.add_argument("--build", action="append", default=[], help="an option of its build, --build=--without-icu")
    parser.add_argument("--fixed", type=int, default=20, help="studies with fixed layouts (20)")
    parser.add_argument("--drawn", type=int, default=20, help="studies with drawn layouts (20)")
    given = parser.parse_args()
    if given.what == "run" and given.source is None:
        parser.error("run needs --source")
    return given


def _run_missing(source: Path, build: list[str], wanted: dict[Kind, int]) -> None:
    """Run studies of the two kinds in turn, so that both have the same hours of the machine."""
    known = read_figures(_FIGURES, OneCommit)
    missing = [
        (number, kind)
        for kind in _KINDS
        for number in range(wanted[kind])
        if not any((study.kind, study.number) == (kind, number) for study in known)
    ]
    for number, kind in sorted(missing):
        known.append(_run(_spec(source, build), kind, number))
        write_figures(_FIGURES, known)


def _table() -> Iterator[str]:
    """Yields the lines of the Markdown table of the studies' results."""
    yield f"| layouts | {EQUAL_ARMS} | blocks, median |"
    yield "|---|---|---|---|---|---|---|"
    for kind in _KINDS:
        studies = [study for study in read_figures(_FIGURES, OneCommit) if study.kind == kind]
        if cells := equal_arms(studies):
            yield f"| {' | '.join([kind, *cells, f'{median(study.blocks for study in studies):g}'])} |"


def _spec(source: Path, build: list[str]) -> StudySpec:
    path = source.resolve()
    server: dict[str, Any] = {
        "postgres": f"git:{path}@HEAD" if (path / ".git").exists() else f"source:{path}",
        "build": build,
        "layouts": _LAYOUTS,
    }
    sections = {
        "study": {"name": "layouts", "question": "Is one commit called different from itself?"},
        "load": _LOAD,
        "server": server,
        "arms": {arm: {} for arm in _ARMS},
        # client and servers share the machine; the client's part of the work is the same for both arms
        "verdict": {"blocks": _BLOCKS, "allow_busy_client": True},
    }
    return build_study(sections, "bench.layouts", Path())


def _run(spec: StudySpec, kind: Kind, number: int) -> OneCommit:
    layouts = Random(number).sample(range(1, _LAYOUTS + 1), len(_ARMS)) if kind == "fixed" else []
    plan = plan_now(spec)
    with tempfile.TemporaryDirectory(prefix="pgtrial-layouts-") as folder:
        study = StudyDirectory.create(Path(folder) / "study", spec, _fixed(plan, layouts) if layouts else plan)
        run_study(study, lambda event: None, spec=spec)
        (claim,) = read_data(study).result.primary
        trials = study.trials()
    difference = claim.difference
    figures = OneCommit(
        created=plan.created,
        kind=kind,
        number=number,
        layouts=layouts,
        source=_source_of(spec),
        verdict=claim.verdict,
        difference=rounded(difference and difference.value),
        low=rounded(difference and difference.low),
        high=rounded(difference and difference.high),
        blocks=len({trial.block for trial in trials}),
        seconds=round(under_way_s(trials), 1),
    )
    print(figures.model_dump_json(), flush=True)
    return figures


def _source_of(spec: StudySpec) -> str:
    server = spec.resolved(_ARMS[0])
    return source_of(server.postgres).short if isinstance(server, Made) else ""


def _fixed(plan: Plan, layouts: list[int]) -> Plan:
    """Returns the plan whose arms keep these layouts in all blocks."""
    of_arm = dict(zip(_ARMS, layouts, strict=True))
    trials = [trial.model_copy(update={"layout": of_arm[trial.arm]}) for trial in plan.trials]
    return plan.model_copy(update={"trials": trials})


if __name__ == "__main__":
    main()
