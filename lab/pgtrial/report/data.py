"""All that a report is made from, read once from a study directory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from pgtrial.analyse.results import StudyResult, analyse_study
from pgtrial.facts.trial_audit import whole_audit
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.records import Facts, Plan, Trial
from pgtrial.study.spec import StudySpec


@dataclass(frozen=True)
class StudyData:
    """A study's files as types, and what the analysis makes of them."""

    spec: StudySpec
    plan: Plan
    trials: list[Trial]
    timelines: dict[int, pl.DataFrame]
    """By index of the trial; columns as records.TimelineRow."""
    facts: dict[str, Facts]
    result: StudyResult


def read_data(directory: StudyDirectory) -> StudyData:
    """Reads and analyses a study. Raises StoreError for a damaged file."""
    trials = directory.trials()
    timelines = {trial.index: directory.timeline(trial) for trial in trials}
    seconds = {index: committed_per_second(frame) for index, frame in timelines.items()}
    facts = directory.facts()
    audit = whole_audit(directory.audit(), directory.plan, facts, trials)
    return StudyData(
        spec=directory.spec,
        plan=directory.plan,
        trials=trials,
        timelines=timelines,
        facts=facts,
        result=analyse_study(directory.plan, trials, audit, seconds),
    )


def committed_per_second(timeline: pl.DataFrame) -> list[int]:
    """Committed transactions of each second of the measured part; a second without a row had none."""
    measured = timeline.filter(pl.col("phase") == "measure")
    if measured.is_empty():
        return []
    seconds = [int(second) for second in measured["second"]]
    committed = [0] * (max(seconds) + 1)
    for second, transactions in zip(seconds, measured["transactions"], strict=True):
        committed[second] += int(transactions)
    return committed


def whole_seconds(trial: Trial, timeline: pl.DataFrame) -> list[tuple[int, int]]:
    """(second, committed) of all whole seconds; the measured part starts at 0, the warm-up lies before it."""
    rows: list[tuple[int, int]] = []
    for name, phase in (("warmup", trial.warmup), ("measure", trial.measured)):
        if phase is None:
            continue
        whole = math.floor(phase.duration_s + 0.01)
        start = -whole if name == "warmup" else 0
        part = timeline.filter((pl.col("phase") == name) & (pl.col("second") < whole)).sort("second")
        rows += [(start + int(s), int(n)) for s, n in zip(part["second"], part["transactions"], strict=True)]
    return rows
