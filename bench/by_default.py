"""Studies with all defaults: how many call a planted difference within a budget, how soon, and how many equal arms.

`python -m bench.campaign defaults` runs what is missing of them and writes bench/by_default.json after each, which is
committed. The arms are those of the self-test. The slower one also has a setting of the server that no session can set,
so that all arms have servers of their own, which start anew in each block.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import pgtrial.conduct
from bench.figures import read_figures, write_figures
from pgtrial.cli.selftest import calibrated
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.selftest import Wanted
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Word
from pgtrial.model.study.setup import WORK
from pgtrial.model.units import as_written, format_duration
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.verdict.pace import under_way_s

_FIGURES = Path(__file__).with_name("by_default.json")
_STUDIES = {(0.05, "5min"): 10, (0.03, "8min"): 10, (0.02, "15min"): 4, (0.0, "2min"): 20}
"""The number of studies for each planted share and budget."""
_RULE = "P9"
_OWN_SERVER = {"bgwriter_delay": "201ms"}
"""A setting that needs a server of its own and changes nothing here."""


class ByDefault(Record):
    """The result of a study with all defaults."""

    created: str
    slower_by: float
    """The planted slowdown, as a share; 0: two equal arms."""
    budget: str = "5min"
    rule: str = "P8"
    """The rule by which the study was decided."""
    verdict: Word
    difference: float | None
    warmup_s: float
    duration_s: float
    blocks: int
    seconds: float
    """The wall time of the blocks and of the preliminary block, seconds."""
    measured_share: float
    """The share of `seconds` in which the load was measured."""

    @property
    def kind(self) -> tuple[float, str]:
        """The kind of the study: its planted difference and its budget."""
        return self.slower_by, self.budget


def run_missing(wanted: int | None) -> None:
    """Runs studies until there are `wanted` of each kind; by default as many as `_STUDIES` asks for. The next study is
    always of the kind that lacks the largest share of its studies."""
    known = read()
    missing = {
        kind: number - sum(study.kind == kind and study.rule == _RULE for study in known)
        for kind, number in ((kind, min(number, wanted or number)) for kind, number in _STUDIES.items())
    }
    work = {share: _work(share) for (share, _), number in missing.items() if share and number > 0}
    while any(number > 0 for number in missing.values()):
        kind = max(missing, key=lambda kind: missing[kind] / _STUDIES[kind])
        known.append(_run(*kind, work.get(kind[0], 1)))
        missing[kind] -= 1
        write_figures(_FIGURES, known)


def read() -> list[ByDefault]:
    """Returns the studies so far."""
    return read_figures(_FIGURES, ByDefault)


def table() -> Iterator[str]:
    """Yields the lines of the Markdown table of the studies' results."""
    known = read()
    if not known:
        return
    yield "| rule | planted | budget | studies | called slower | called faster | median time | a verdict after |"
    yield "|---|---|---|---|---|---|---|---|"
    for rule, share, budget in sorted({(study.rule, *study.kind) for study in known}, reverse=True):
        studies = [study for study in known if (study.rule, *study.kind) == (rule, share, budget)]
        called = [study for study in studies if study.verdict in ("better", "worse")]
        cells = [
            rule,
            as_written(share) if share else "nothing",
            budget,
            str(len(studies)),
            str(sum(study.verdict == "worse" for study in studies)),
            str(sum(study.verdict == "better" for study in studies)),
            format_duration(round(median(study.seconds for study in studies))),
            format_duration(round(median(study.seconds for study in called))) if called else "-",
        ]
        yield f"| {' | '.join(cells)} |"


def _work(share: float) -> int:
    """Returns the work that takes this share of a point lookup here."""
    (planted,) = calibrated(Wanted(planted=[share]), as_json=False).planted
    return planted.work


def _run(slower_by: float, budget: str, work: int) -> ByDefault:
    base: dict[str, Any] = {"settings": {WORK: "1"}}
    other = {"settings": {WORK: str(work), **_OWN_SERVER}} if slower_by else base
    spec = build_study(
        {
            "study": {"name": "by-default", "question": "How many studies with all defaults are right?"},
            "load": {"workload": "point-lookup.sql", "scale": 10},
            "arms": {"as it is": base, "the other": other},
            # client and servers share the machine; the client's part of the work is the same for both arms
            "verdict": {"budget": budget, "allow_busy_client": True},
        },
        "bench.campaign",
        Path(str(files(pgtrial.conduct))),
    )
    with tempfile.TemporaryDirectory(prefix="pgtrial-campaign-") as folder:
        study = StudyDirectory.create(Path(folder) / "study", spec, plan_now(spec))
        run_study(study, lambda event: None, spec=spec)
        (claim,) = read_data(study).result.primary
        plan, trials = study.plan, study.trials()
    preliminary_s = plan.lengths.preliminary.wall_s if plan.lengths and plan.lengths.preliminary else 0.0
    measured_s = sum(trial.measured.duration_s for trial in trials if trial.measured)
    seconds = under_way_s(trials)
    figures = ByDefault(
        created=plan.created,
        slower_by=slower_by,
        budget=budget,
        rule=_RULE,
        verdict=claim.verdict,
        difference=round(claim.difference.value, 4) if claim.difference else None,
        warmup_s=plan.warmup_s,
        duration_s=plan.duration_s,
        blocks=len({trial.block for trial in trials}),
        seconds=round(preliminary_s + seconds, 1),
        measured_share=round(measured_s / seconds, 3),
    )
    print(figures.model_dump_json(), flush=True)
    return figures
