"""All data of a report, which are read once from a study directory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import polars as pl

from pgtrial.model.latencies import Latencies
from pgtrial.model.records.claims import Claim
from pgtrial.model.records.facts import Facts
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.machine import Certificate
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.replay import StatementPlans
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import Phase, SliceRow, Trial
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.verdict import verdict_of
from pgtrial.store.certificates import study_certificate
from pgtrial.store.directory import StudyDirectory, committed_seconds, slices_of
from pgtrial.store.interruptions import read_interruptions
from pgtrial.verdict.pace import Reached, reached
from pgtrial.verdict.rules.case import Case

Cells = Mapping[tuple[LoadPoint, str], pl.DataFrame]
"""The rows of all trials of each load point and arm. The column `trial` has the index of the trial."""


@dataclass(frozen=True)
class StudyData:
    """The files of a study as Python objects, and the result that was computed from them."""

    spec: StudySpec
    plan: Plan
    trials: list[Trial]
    facts: dict[str, Facts]
    result: StudyResult
    timelines: dict[int, pl.DataFrame] = field(default_factory=dict)
    """The timelines of the trials, by the index of the trial, with the columns of records.TimelineRow. Only the charts
    and tables of the report use them. They do not affect the result."""
    waits: dict[int, pl.DataFrame] = field(default_factory=dict)
    """The samples of the active sessions and their wait events, for the trials in which pgtrial took such samples, by
    the index of the trial. The columns are those of WAITS_SCHEMA."""
    histograms: dict[int, Latencies] = field(default_factory=dict)
    """The response times of the tasks in each trial, by the index of the trial; empty for loads without tasks. The
    files store them as HdrHistogram V2 in base64."""
    observed: dict[int, pl.DataFrame] = field(default_factory=dict)
    """The activity of the host and the statistics of the statements, for the trials in which pgtrial recorded them, by
    the index of the trial. The columns are those of OBSERVED_SCHEMA."""
    provider: dict[int, pl.DataFrame] = field(default_factory=dict)
    """The metrics of the cloud provider for the trials for which they were imported, by the index of the trial, with
    the columns of PROVIDER_SCHEMA."""
    slices: dict[int, list[SliceRow]] = field(default_factory=dict)
    """The slices of the trials in which arms take turns in slices of time, by the index of the trial, in the order of
    time."""

    statement_plans: StatementPlans | None = None
    """The plans of those statements of a replay that became slower, for both arms."""

    certificate: Certificate | None = None
    """The certificate that this machine had before the study: the result of a self-test, which says how small a
    difference the machine can show. For a self-test it is the certificate of the self-test itself."""

    every_second: bool = False
    """True if charts over the seconds of a trial show each second, even in a long trial. Otherwise long trials are
    averaged over several seconds."""

    @cached_property
    def labels(self) -> list[str]:
        """The label of each load point, such as `tpcb-like, scale 10, 8 clients`."""
        return [point.label for point in self.plan.load_points]

    @property
    def unit(self) -> str:
        """The unit of analysis of the verdicts, which is what counts as one independent measurement. It is `block` or,
        if each arm runs on at least four deployments (servers of the same product), `deployment`."""
        return self.result.primary[0].unit if self.result.primary else "block"

    @cached_property
    def reached(self) -> list[tuple[Claim, Reached]]:
        """Pairs of a primary claim, which is a comparison that decides the verdict on an arm, and an interval of this
        comparison. There is a pair for the interval from the first block, from the first two blocks and so on."""
        claims = [part for claim in self.result.primary for part in claim.read]
        return [(claim, step) for claim in claims for step in reached(self.plan, self.trials, claim)]

    @cached_property
    def waits_by_cell(self) -> Cells:
        """The rows of `waits` (samples of the active sessions) of all trials, by load point and arm."""
        return self._by_cell(self.waits)

    @cached_property
    def observed_by_cell(self) -> Cells:
        """The rows of `observed` (the activity of the host and the statements) of all trials, by load point and arm."""
        return self._by_cell(self.observed)

    @cached_property
    def provider_by_cell(self) -> Cells:
        """The rows of `provider` (the metrics of the cloud provider) of all trials, by load point and arm."""
        return self._by_cell(self.provider)

    def _by_cell(self, frames: Mapping[int, pl.DataFrame]) -> Cells:
        frames_of: dict[tuple[LoadPoint, str], list[pl.DataFrame]] = {}
        for trial in self.trials:
            if trial.index in frames:
                marked = frames[trial.index].with_columns(trial=pl.lit(trial.index))
                frames_of.setdefault((trial.load_point, trial.arm), []).append(marked)
        return {cell: pl.concat(marked_frames) for cell, marked_frames in frames_of.items()}

    @property
    def cells(self) -> list[tuple[LoadPoint, str]]:
        """All pairs of a load point and an arm."""
        return list(product(self.plan.load_points, self.plan.arms))

    @property
    def measured_s(self) -> float:
        """The length of the measured part in seconds: the planned length or, for tasks, which run until they are done,
        the length of the longest trial."""
        lengths = (trial.measured.duration_s for trial in self.trials if trial.measured)
        return self.plan.duration_s or max(lengths, default=1.0)

    @property
    def observed_s(self) -> float:
        """The time in seconds from the start to the end of the measured part. If arms take turns in slices, it includes
        the slices of the other arms."""
        return self.measured_s * (len(self.plan.arms) if self.plan.interleaving is not None else 1)


_OBSERVED = ("cpu", "device", "memory", "pressure", "pg_stat_statements")
"""The sources of measurements in observed.parquet that the report shows. They make up a small part of the file."""


def read_data(directory: StudyDirectory) -> StudyData:
    """Reads a study with all data that its report shows, and computes its result. Raises StoreError for a damaged
    file."""
    return with_tables(read_measured(directory), directory)


def with_tables(data: StudyData, directory: StudyDirectory) -> StudyData:
    """Returns the data completed by the tables of each trial and all other data that the report shows in addition to
    the result. Raises StoreError."""
    return replace(
        data,
        timelines={trial.index: directory.timeline(trial) for trial in data.trials},
        waits=_by_trial(data.trials, directory.waits),
        observed=_by_trial(
            data.trials, lambda trial: directory.observed(trial).filter(pl.col("source").is_in(_OBSERVED))
        ),
        provider=_by_trial(data.trials, directory.provider_metrics),
        statement_plans=directory.statement_plans(),
        certificate=study_certificate(directory),
        histograms={
            trial.index: latencies
            for trial in data.trials
            if trial.tasks is not None and (latencies := directory.latencies(trial)) is not None
        },
    )


def read_measured(directory: StudyDirectory) -> StudyData:
    """Reads the files from which the result of a study is computed, and computes the result. Raises StoreError for a
    damaged file."""
    trials = directory.trials()
    slices = slices_of(directory, trials)
    case = Case(
        directory.plan,
        directory.facts(),
        trials=trials,
        audit=directory.audit(),
        seconds=committed_seconds(directory, trials),
        slices=slices,
        interruptions=read_interruptions(directory.path),
        instructions=directory.instructions(),
        voided=directory.voided_blocks(),
    )
    return StudyData(
        spec=directory.spec,
        plan=directory.plan,
        trials=trials,
        facts=dict(case.facts),
        result=verdict_of(case),
        slices=slices,
    )


def _by_trial(trials: list[Trial], read: Callable[[Trial], pl.DataFrame]) -> dict[int, pl.DataFrame]:
    """Returns the frames of the trials by the index of the trial. Empty frames are left out."""
    return {trial.index: frame for trial in trials if not (frame := read(trial)).is_empty()}


def seconds_of(trial: Trial, timeline: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of a timeline with a further column `s`, the second of the measured part. In the warm-up `s` is
    negative."""
    begin = pl.when(pl.col("phase") == "warmup").then(-_whole(trial.warmup)).otherwise(0)
    return timeline.with_columns(s=pl.col("second") + begin).sort("s")


def whole_seconds(trial: Trial, timeline: pl.DataFrame) -> list[tuple[int, int]]:
    """Returns pairs of a second and the number of transactions that were committed in it, for all whole seconds. The
    measured part starts at 0, and seconds of the warm-up are negative."""
    lengths = {"warmup": _whole(trial.warmup), "measure": _whole(trial.measured)}
    whole = pl.col("second") < pl.col("phase").replace_strict(lengths, return_dtype=pl.Int64)
    return list(seconds_of(trial, timeline).filter(whole).select("s", "transactions").iter_rows())


def _whole(phase: Phase | None) -> int:
    """Returns the number of whole seconds of a phase."""
    return math.floor(phase.duration_s + 0.01) if phase is not None else 0
