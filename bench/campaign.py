"""`python -m bench.campaign`: the figures of many self-tests in one file, a table of them, and the power curve.

`add DIRECTORY...` takes the log-ratios of self-tests (`pgtrial selftest`) into bench/campaign.json, which is committed.
The trials are not. `run` makes a self-test of many short blocks, with or without planted differences, and adds it.
`defaults` runs studies with all defaults (bench/by_default.py). `show` prints the tables and writes
docs/images/power.svg. Not part of `make bench`: it takes hours.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import altair as alt
import numpy as np

from bench import by_default
from bench.figures import read_figures, write_figures
from pgtrial.cli.selftest import run
from pgtrial.conduct.selftest import WORKLOADS, Wanted
from pgtrial.model.errors import StudyError
from pgtrial.model.records import Record
from pgtrial.model.records.machine import Selftest, StudyRun
from pgtrial.model.units import as_written, format_duration, parse_duration, parse_share, percent
from pgtrial.statistics import p8, p9
from pgtrial.statistics.rules import planned
from pgtrial.statistics.shamos import spread
from pgtrial.store.certificates import selftest_in
from pgtrial.store.directory import StudyDirectory
from pgtrial.verdict.certificate import SAME_BLOCKS, Series, consecutive, series
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import as_difference

_FIGURES = Path(__file__).with_name("campaign.json")
_PICTURE = Path(__file__).parents[1] / "docs" / "images" / "power.svg"
_MARGIN = 0.01
_SHORT_S = 2.0
"""The measured part of each arm in a short block."""
_DRAWN_BLOCKS = 60
"""The number of blocks of a study in the picture."""
_ORDERS = 400
_SIMULATED = 2000


class Recorded(Record):
    """The blocks of one arm of a self-test."""

    created: str
    workload: str
    slice_s: float | None
    duration_s: float
    """The measured part of a trial."""
    slower_by: float
    """The planted slowdown, as a share; 0: an arm that is like the baseline."""
    log_ratios: list[float]
    seconds: list[float]
    """The wall time of the two arms in each block."""


Kind = tuple[str, float | None, float, float]
"""The workload, the slice and the measured part of a trial in seconds, and the planted share."""


def main() -> None:
    """Add self-tests to the figures, or show them."""
    parser = argparse.ArgumentParser(prog="bench.campaign", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="take the blocks of self-tests into the figures")
    add.add_argument("directories", type=Path, nargs="+")
    short = commands.add_parser("run", help="run a self-test of short blocks, and add it")
    short.add_argument("--budget", type=parse_duration, required=True, help="time for all of it, e.g. 2h")
    short.add_argument("--workload", choices=WORKLOADS, default=WORKLOADS[0])
    short.add_argument("--interleave", choices=("auto", "off"), default="auto")
    short.add_argument("--planted", type=parse_share, nargs="*", default=[], help="shares, such as 3%% 5%%")
    defaults = commands.add_parser("defaults", help="run what is missing of the studies with all defaults")
    defaults.add_argument("--studies", type=int, help="of each kind, at most; default: as many as the table has")
    commands.add_parser("show", help="print the tables, draw the picture")
    given = parser.parse_args()
    if given.command == "defaults":
        try:
            by_default.run_missing(given.studies)
        except StudyError as error:
            parser.error(str(error))
    if given.command in ("defaults", "show"):
        for line in by_default.table():
            print(line)
    if given.command == "defaults":
        return
    found: list[Recorded] = []
    if given.command == "add":
        found = [each for directory in given.directories for each in _series(StudyDirectory.open(directory))]
    elif given.command == "run":
        try:
            found = _run_short(given.workload, given.interleave, given.planted, given.budget)
        except StudyError as error:
            parser.error(str(error))
    known = _once([*read_figures(_FIGURES, Recorded), *found])
    if found:
        write_figures(_FIGURES, known)
    for line in _table(known):
        print(line)
    if given.command == "show":
        _draw(known)


def _once(known: Sequence[Recorded]) -> list[Recorded]:
    """Returns each arm of each self-test once; if one was added twice, the longer record, which contains the other."""
    longest: dict[tuple[str, Kind, float], Recorded] = {}
    for each in known:
        of = each.created, _kind(each), each.log_ratios[0]
        longest[of] = max(longest.get(of, each), each, key=lambda one: len(one.log_ratios))
    return list(longest.values())


def _run_short(workload: str, interleave: str, planted: Sequence[float], budget_s: float) -> list[Recorded]:
    """Returns the blocks that fit into the budget, each of 0.5 s of warm-up and 2 s of measured part for each arm."""
    wanted = Wanted(
        workload, None, planted, interleave=interleave, warmup_s=0.5, duration_s=_SHORT_S, budget_s=budget_s
    )
    with tempfile.TemporaryDirectory(prefix="pgtrial-campaign-") as folder:
        study = Path(folder) / "study"
        run(wanted, study, as_json=False)
        return list(_series(StudyDirectory.open(study)))


def _series(study: StudyDirectory) -> Iterator[Recorded]:
    selftest = selftest_in(study)
    if selftest is None:
        raise SystemExit(f"{study.path} is not the directory of a self-test")
    grid, plan = Grid(study.plan, study.trials()), study.plan
    for arm, slower_by in _arms(selftest):
        blocks = series(grid, arm)
        yield Recorded(
            created=plan.created,
            workload=plan.load_points[0].workload,
            slice_s=plan.interleaving.slice_s if plan.interleaving is not None else None,
            duration_s=plan.duration_s,
            slower_by=slower_by,
            log_ratios=[round(value, 5) for value in blocks.log_ratios],
            seconds=[round(value, 2) for value in blocks.seconds],
        )


def _arms(selftest: Selftest) -> Iterator[tuple[str, float]]:
    yield selftest.same, 0.0
    yield from ((each.arm, each.slower_by) for each in selftest.planted)


def _kind(of: Recorded) -> Kind:
    return of.workload, of.slice_s, of.duration_s, of.slower_by


def _by_kind(known: Sequence[Recorded]) -> dict[Kind, list[Recorded]]:
    found: dict[Kind, list[Recorded]] = defaultdict(list)
    for each in known:
        found[_kind(each)].append(each)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] is None, *item[0][2:])))


def _studies(of: Recorded) -> tuple[list[StudyRun], bool]:
    """Returns the studies that a self-test holds, and whether its end cut off another one before its time was over.

    A study has 5 minutes to find a planted difference of 5% or more, and 12 for a smaller one.
    """
    blocks = Series(of.log_ratios, of.seconds)
    if not of.slower_by:
        return consecutive(blocks, SAME_BLOCKS, _MARGIN), False
    most_s = 5 * 60 if of.slower_by >= 0.05 else 12 * 60
    longest = max(p9.first_look(kept=0.0), int(most_s / blocks.block_s))
    runs = consecutive(blocks, longest, _MARGIN)
    cut_off = bool(runs) and runs[-1].verdict == "undecided" and runs[-1].blocks < longest
    return runs[:-1] if cut_off else runs, cut_off


def _table(known: Sequence[Recorded]) -> Iterator[str]:
    yield "| load | planted | blocks | a block | standard deviation | difference | studies | verdicts | median time |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (workload, slice_s, duration_s, slower_by), kind in _by_kind(known).items():
        held = [_studies(each) for each in kind]
        studies = [run for runs, _ in held for run in runs]
        cut_off = sum(cut for _, cut in held)
        logs = [value for each in kind for value in each.log_ratios]
        seconds = [value for each in kind for value in each.seconds]
        decided = [run for run in studies if run.verdict in ("better", "worse")]
        difference = as_difference(p8.interval(logs, 0.05))
        bounds = (
            f" ({percent(difference.low, sign=True)} to {percent(difference.high, sign=True)})"
            if difference.low and difference.high
            else ""
        )
        cells = [
            f"{workload}, {format_duration(duration_s)} {'in turns' if slice_s else 'one after the other'}",
            as_written(slower_by) if slower_by else "nothing",
            str(len(logs)),
            f"{np.mean(seconds):.1f} s",
            percent(spread(logs)),
            f"{percent(difference.value, sign=True)}{bounds}",
            f"{len(studies)}, {cut_off} cut off" if cut_off else str(len(studies)),
            f"{len(decided)} {'found' if slower_by else 'false'}",
            format_duration(median(run.seconds for run in decided)) if decided else "-",
        ]
        yield f"| {' | '.join(cells)} |"


def _draw(known: Sequence[Recorded]) -> None:
    """Draws a chart of the share of studies that found the planted difference, by their number of short blocks, once
    for recorded blocks and once for normal noise."""
    rows: list[dict[str, Any]] = []
    draw = np.random.default_rng(1)
    for (workload, slice_s, duration_s, slower_by), kind in _by_kind(known).items():
        logs = np.array([value for each in kind for value in each.log_ratios])
        if slice_s is None or duration_s != _SHORT_S or len(logs) < SAME_BLOCKS:
            continue
        names = {"load": workload, "planted": f"{as_written(slower_by)} planted" if slower_by else "nothing planted"}
        longest = min(_DRAWN_BLOCKS, len(logs))
        recorded = _found(lambda logs=logs, n=longest: draw.choice(logs, n, replace=False), _ORDERS, longest)
        centre = math.log1p(-slower_by)
        sd = spread(logs.tolist())
        simulated = _found(lambda c=centre, s=sd, n=longest: draw.normal(c, s, n), _SIMULATED, longest)
        for source, shares in (("recorded blocks, drawn in random order", recorded), ("normal noise", simulated)):
            rows += [{**names, "of": source, "blocks": blocks, "found": share} for blocks, share in shares.items()]
    chart = (
        alt.Chart(alt.Data(values=rows), width=260, height=180)
        .mark_line(interpolate="step-after", clip=True)
        .encode(
            x=alt.X("blocks:Q", title="blocks"),
            y=alt.Y(
                "found:Q", title="studies with a verdict", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
            ),
            color=alt.Color("planted:N", title=None),
            strokeDash=alt.StrokeDash("of:N", title=None),
        )
        .facet(column=alt.Column("load:N", title=None))
        .configure_legend(orient="bottom", columns=1, labelLimit=400)
        .configure(background="white")
    )
    chart.save(_PICTURE)


def _found(study: Any, studies: int, longest: int) -> dict[int, float]:
    """Returns for each number of blocks the share of studies that had a verdict other than equivalent by then."""
    looks, limits = planned(longest, 1, kept=0.0), p8.ratio_limits(_MARGIN)
    at = np.zeros(longest + 1)
    for _ in range(studies):
        for reading in looks.readings(list(study()), limits):
            if reading.verdict in ("better", "worse"):
                at[reading.look.blocks] += 1
                break
    shares = np.cumsum(at) / studies
    return {blocks: float(shares[blocks]) for blocks in range(longest + 1)}


if __name__ == "__main__":
    main()
