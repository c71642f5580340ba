"""Reads a study that is running now from its files while they grow: the trials in progress, the next trials, and the
estimates so far. The pages for running studies are made from these values."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_core import from_json

from pgtrial.files.reading import open_file, read_bytes
from pgtrial.loads.engine import PHASES, tick_s
from pgtrial.model.errors import StoreError
from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.report.data import StudyData, read_measured
from pgtrial.store.directory import JOB_PROGRESS, StudyDirectory
from pgtrial.store.running import is_running, stop_is_asked
from pgtrial.verdict.pace import Reached

SHOWN_S = 120
"""The number of seconds (or, if arms take turns in slices, of slices) of a trial in progress that are shown."""

_MOST_READ = 1 << 20
"""The number of bytes at the end of the load engine's output that are read first. They contain more than the seconds
that are shown."""

_AHEAD = 512
"""The trials in progress are looked for among this many of the next planned trials."""


@dataclass(frozen=True)
class UnderWay:
    """A trial in progress."""

    planned: PlannedTrial
    load_point: str
    phase: str | None
    """The phase of the latest second; None if the load has not begun."""
    second: int
    tps: list[float]
    """The throughput in each of the latest SHOWN_S seconds. If the arms take turns in slices of time, each value is the
    throughput of one slice of this arm."""
    job: str | None = None
    """The progress of a job as PostgreSQL reports it; None if the load is not a job, or if PostgreSQL reports
    nothing."""


@dataclass(frozen=True)
class SoFar:
    """The comparison of an arm with the baseline, from the blocks that are complete so far."""

    claim: Claim
    steps: list[Reached]
    """The interval of the comparison after the first complete block, after the first two and so on, beginning with the
    first number of blocks after which the interval is bounded. If each arm runs on several servers, pairs of servers
    count in place of blocks."""

    @property
    def estimate(self) -> Estimate | None:
        """The estimate of the difference from all complete blocks so far. Its interval is the one that would be valid
        if the study had been planned to end now. Returns None if nothing is complete."""
        return self.steps[-1].difference if self.steps else self.claim.difference


@dataclass(frozen=True)
class Look:
    """The state of a running study at one moment, as its page shows it. If the study is not running, only the field
    `running` is set and all others have their defaults."""

    running: bool
    stopping: bool = False
    plan: Plan | None = None
    stored: int = 0
    blocks: int = 0
    """The number of complete blocks."""
    under_way: list[UnderWay] = field(default_factory=list)
    queue: list[PlannedTrial] = field(default_factory=list)
    so_far: list[SoFar] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    trouble: str | None = None
    """The reason why a part of the study is missing, as one sentence."""


class Live:
    """Reads the state of one study again and again. Files that have not changed are not read again, so that reading
    costs little.

    Trials are analysed only when a block is complete, so that the machine is left to the measurement in between.
    """

    def __init__(self, path: Path):
        self._path = path
        self._study: StudyDirectory | None = None
        self._planned_at: int | None = None
        self._blocks: int | None = None
        self._so_far: list[SoFar] = []
        self._findings: list[Finding] = []
        self._records: dict[Path, _Record] = {}
        self._busy = threading.Lock()

    def look(self) -> Look:
        """Returns the present state of the study."""
        with self._busy:
            return self._look() if is_running(self._path) else Look(running=False)

    def _look(self) -> Look:
        try:
            study = self._opened()
            done = _stored(self._path)
        except (StoreError, OSError) as error:
            return Look(running=True, trouble=str(error))
        plan = study.plan
        missing = [planned for planned in plan.due if planned.index not in done]
        under_way = self._under_way(study, missing)
        begun = {trial.planned.index for trial in under_way}
        blocks = _complete(plan, done)
        trouble = self._analyse(study, blocks)
        return Look(
            running=True,
            stopping=stop_is_asked(self._path),
            plan=plan,
            stored=len(done),
            blocks=blocks,
            under_way=under_way,
            queue=[planned for planned in missing if planned.index not in begun],
            so_far=self._so_far,
            findings=self._findings,
            trouble=trouble,
        )

    def _opened(self) -> StudyDirectory:
        """Returns the study. It is opened again if its plan was extended in the meantime."""
        planned_at = (self._path / "plan.json").stat().st_mtime_ns
        if self._study is None or self._planned_at != planned_at:
            self._study, self._planned_at, self._blocks = StudyDirectory.open(self._path), planned_at, None
        return self._study

    def _analyse(self, study: StudyDirectory, blocks: int) -> str | None:
        """Computes the result of the study from its complete blocks, unless it was already computed for this number of
        blocks. Returns the reason if the result could not be computed."""
        if blocks == self._blocks:
            return None
        try:
            data = read_measured(study)
        except (StoreError, OSError) as error:
            return str(error)
        self._so_far, self._findings, self._blocks = _so_far(data), data.result.findings, blocks
        return None

    def _under_way(self, study: StudyDirectory, missing: Sequence[PlannedTrial]) -> list[UnderWay]:
        hidden = set(study.unfinished())
        trials = [(planned, study.hidden_path(planned)) for planned in missing[:_AHEAD]]
        trials = [(planned, path) for planned, path in trials if path in hidden]
        self._records = {path: self._records.get(path) or _Record(path) for _, path in trials}
        return [self._records[path].read(planned, study.plan) for planned, path in trials]


class _Record:
    """The load engine's output for a trial in progress."""

    def __init__(self, trial: Path):
        self._path = trial / "engine.jsonl"
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        self._rest = b""
        self._tps: deque[float] = deque(maxlen=SHOWN_S)
        self._phase: str | None = None
        self._second = 0

    def read(self, planned: PlannedTrial, plan: Plan) -> UnderWay:
        """Returns the state of the trial, including the lines that were added since the last call."""
        point = plan.load_points[planned.load_point]
        for line in self._lines():
            self._add(line, point.clients)
        job = self._job() if point.kind.reports_progress else None
        return UnderWay(planned, point.label, self._phase, self._second, list(self._tps), job)

    def _job(self) -> str | None:
        """Returns the progress of a job as text, such as `create index: building index, 45%`; None if it is not
        known."""
        try:
            progress = from_json(read_bytes(self._path.parent / JOB_PROGRESS))
            parts = [": ".join(filter(None, (progress["command"], progress["phase"])))]
            return ", ".join([*parts, *([f"{progress['share']:.0%}"] if progress["share"] is not None else [])])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _lines(self) -> list[bytes]:
        """Returns the lines that were completed since the last call."""
        try:
            with open_file(self._path) as file:
                size = file.seek(0, os.SEEK_END)
                if size < self._offset:  # the trial was started again
                    self._begin()
                if not self._offset:
                    self._offset = max(0, size - _MOST_READ)
                file.seek(self._offset)
                added = file.read()
        except OSError:
            return []
        self._offset += len(added)
        *lines, self._rest = (self._rest + added).split(b"\n")
        return lines

    def _add(self, line: bytes, clients: int) -> None:
        try:
            event = from_json(line)
            if event["event"] != "tick" or event["phase"] not in PHASES:
                return
            seconds = tick_s(event, clients)
            self._phase, self._second = event["phase"], int(event["second"])
            self._tps.append(event["transactions"] / seconds if seconds else 0.0)
        except (ValueError, KeyError, TypeError):
            # such a line is the end of a line whose beginning was skipped
            return


def _stored(path: Path) -> set[int]:
    """Returns the indexes of the stored trials, which are in the names of their directories."""
    numbers = (folder.name.partition("-")[0] for folder in (path / "trials").glob("[0-9]*"))
    return {int(number) for number in numbers if number.isdecimal()}


def _complete(plan: Plan, done: set[int]) -> int:
    """Returns the number of complete blocks before the first incomplete block."""
    by_block = itertools.groupby(plan.wanted, key=lambda planned: planned.block)
    complete = (all(planned.index in done for planned in of_block) for _, of_block in by_block)
    return sum(1 for _ in itertools.takewhile(bool, complete))


def _so_far(data: StudyData) -> list[SoFar]:
    claims = [part for claim in data.result.primary for part in claim.read]
    return [SoFar(claim, [step for about, step in data.reached if about is claim]) for claim in claims]
