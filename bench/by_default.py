"""Studies with all defaults and a budget of 5 minutes: how many call a planted difference, and how many equal arms.

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
from pgtrial.conduct.place import plan_now
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.selftest import Wanted
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Word
from pgtrial.model.study.setup import WORK
from pgtrial.model.units import as_written, format_duration, percent
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.verdict.pace import under_way_s

_FIGURES = Path(__file__).with_name("by_default.json")
_BUDGET = "5min"
_PLANTED = 0.05
_STUDIES = {_PLANTED: 10, 0.0: 20}
"""How many studies of each planted share."""
_OWN_SERVER = {"bgwriter_delay": "201ms"}
"""A setting that needs a server of its own and changes nothing here."""


class ByDefault(Record):
    """One study with all defaults."""

    created: str
    slower_by: float
    """Planted; 0: two equal arms."""
    verdict: Word
    difference: float | None
    warmup_s: float
    duration_s: float
    blocks: int
    seconds: float
    """Wall time of its blocks and the preliminary one."""
    measured_share: float
    """Of that time."""


def run_missing(planted: int | None, same: int | None) -> None:
    """Run the studies that are missing of so many, by default of all."""
    wanted = {
        share: number if asked is None else asked
        for (share, number), asked in zip(_STUDIES.items(), (planted, same), strict=True)
    }
    known = read()
    missing = {share: number - sum(study.slower_by == share for study in known) for share, number in wanted.items()}
    work = _work() if missing[_PLANTED] > 0 else 1
    while any(number > 0 for number in missing.values()):
        share = max(missing, key=lambda share: missing[share])
        known.append(_run(share, work))
        missing[share] -= 1
        write_figures(_FIGURES, known)


def read() -> list[ByDefault]:
    """The studies so far."""
    return read_figures(_FIGURES, ByDefault)


def table() -> Iterator[str]:
    """What the studies found, as Markdown."""
    known = read()
    if not known:
        return
    yield "| planted | studies | called slower | called faster | median time | a verdict after | measured of the time |"
    yield "|---|---|---|---|---|---|---|"
    for share in _STUDIES:
        studies = [study for study in known if study.slower_by == share]
        called = [study for study in studies if study.verdict in ("better", "worse")]
        if studies:
            cells = [
                as_written(share) if share else "nothing",
                str(len(studies)),
                str(sum(study.verdict == "worse" for study in studies)),
                str(sum(study.verdict == "better" for study in studies)),
                format_duration(round(median(study.seconds for study in studies))),
                format_duration(round(median(study.seconds for study in called))) if called else "-",
                percent(median(study.measured_share for study in studies), 0),
            ]
            yield f"| {' | '.join(cells)} |"


def _work() -> int:
    """The work that takes the planted share of a point lookup here."""
    (planted,) = calibrated(Wanted(planted=[_PLANTED]), as_json=False).planted
    return planted.work


def _run(slower_by: float, work: int) -> ByDefault:
    base: dict[str, Any] = {"settings": {WORK: "1"}}
    other = {"settings": {WORK: str(work), **_OWN_SERVER}} if slower_by else base
    spec = build_study(
        {
            "study": {"name": "by-default", "question": "How many studies with all defaults are right?"},
            "load": {"workload": "point-lookup.sql", "scale": 10},
            "arms": {"as it is": base, "the other": other},
            # client and servers share the machine; the client's part of the work is the same for both arms
            "verdict": {"budget": _BUDGET, "allow_busy_client": True},
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
