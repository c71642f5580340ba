"""One trial: restore, start, warm, load with a checkpoint at a fixed moment, collect, stop, store.

A trial that goes wrong is a result: it is stored as failed, with one sentence, and the study goes on. What is wrong
with the lab itself (a full disk, an arm that does not start, SQL of the study that PostgreSQL refuses) stops the study,
with nothing stored for this trial. Neither decision is told which arm is running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from pgtrial.arm.base import Arm
from pgtrial.arm.connect import Target
from pgtrial.engine import LoadRun
from pgtrial.errors import StudyError, TrialError
from pgtrial.host.cpus import running_on
from pgtrial.observe import counters, host
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import cannot_write
from pgtrial.store.records import LoadPoint, PlannedTrial, Trial
from pgtrial.study.spec import LoadSection
from pgtrial.trial import leftovers
from pgtrial.trial.engine_options import engine_options
from pgtrial.trial.outcome import PHASES, Outcome
from pgtrial.trial.progress import Listener, Second
from pgtrial.trial.settle import Checkpoint, run_setup_sql, warm_relations

ENGINE_GRACE_S = 60.0
"""How much longer than warm-up and measured part the engine may take, for connecting and for its last transactions."""

WhileServed = Callable[[Arm, Target], None]


@dataclass
class _Course:
    """What a trial is to do, and what is gathered while it runs."""

    load: LoadSection
    planned: PlannedTrial
    point: LoadPoint
    script: Path | None
    directory: Path
    listener: Listener
    engine_grace_s: float
    timings: dict[str, float] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    reason: str | None = None
    notes: list[str] = field(default_factory=list)
    deltas: counters.Counters = field(default_factory=dict)
    relations_before: counters.Counters = field(default_factory=dict)
    relations: counters.Counters = field(default_factory=dict)
    checkpoint_s: float | None = None

    def note(self, text: str | None) -> None:
        if text is not None and text not in self.notes:
            self.notes.append(text)


def run_trial(
    study: StudyDirectory,
    planned: PlannedTrial,
    arm: Arm,
    listener: Listener,
    *,
    while_served: WhileServed | None = None,
    engine_grace_s: float = ENGINE_GRACE_S,
) -> Trial:
    """Run and store one planned trial.

    `while_served` is called after the load of a trial that did not fail, with the server still running. Raises
    ArmError, StudyError and StoreError for what must stop the study.
    """
    point = study.plan.load_points[planned.load_point]
    script = study.script(point.workload)
    course = _Course(study.spec.load, planned, point, script, study.begin_trial(planned), listener, engine_grace_s)
    started = _now()
    try:
        with arm.serve(point.scale, course.directory / "server.log", course.timings) as target:
            try:
                _load_and_collect(course, arm, target)
            except (TrialError, psycopg.Error) as error:
                course.reason = course.reason or _sentence(error)
            if course.reason is None and while_served is not None:
                while_served(arm, target)
    except TrialError as error:
        course.reason = _sentence(error)
    trial = _record(course, started, arm.host_seen)
    _write_measurements(course.directory, course.outcome)
    study.write_trial(trial)
    return trial


def _load_and_collect(course: _Course, arm: Arm, target: Target) -> None:
    load = course.load
    with ExitStack() as stack:
        session = stack.enter_context(target.connect())
        checkpoint = Checkpoint(target)
        stack.callback(checkpoint.close)
        with _timed(course, "warm"):
            run_setup_sql(session, arm.name, arm.setup)
            warm_relations(session, arm.setup)
            if load.warmup == 0:
                checkpoint.issue_now()
        course.relations_before = counters.read_relations(session)
        others = counters.count_clients(session)
        before: counters.Counters | None = None
        measured_since: float | None = None
        with _timed(course, "load"), _engine(course, target) as run:
            for event in run.events(time.monotonic() + load.warmup + load.duration + course.engine_grace_s):
                course.outcome.add(event)
                match event:
                    case {"event": "phase", "phase": "warmup"}:
                        checkpoint.issue_after(load.warmup / 2)
                    case {"event": "phase", "phase": "measure"}:
                        measured_since = time.monotonic()
                        before = counters.read_counters(session) | host.read_host(arm.data_directory)
                    case {"event": "tick", "phase": phase} if phase in PHASES:
                        tps = event["transactions"] / (event.get("seconds") or 1.0)
                        course.listener(Second(phase, event["second"], tps))
            status = run.finish()
            _check_script(course, run)
            course.reason = course.outcome.failure(status, run.last_words())
        with _timed(course, "collect"):
            checkpoint.close()
            course.checkpoint_s = checkpoint.duration_s
            course.note(checkpoint.note(measured_since))
            counters.wait_for_clients_to_leave(session, others)
            if before is not None:
                after = counters.read_counters(session) | host.read_host(arm.data_directory)
                course.deltas = counters.deltas(before, after)
            course.relations = counters.read_relations(session)


def _check_script(course: _Course, run: LoadRun) -> None:
    """Raise StudyError if the engine did not begin for an error in the script, which no repetition mends."""
    if course.script is None or course.outcome.begun:
        return
    complaint = run.message_about(str(course.script))
    if complaint is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")


@contextmanager
def _engine(course: _Course, target: Target) -> Iterator[LoadRun]:
    directory = course.directory
    options = engine_options(course.load, course.point, course.planned.seed, course.script)
    with ExitStack() as stack:
        with running_on(course.load.cpus):
            load = LoadRun(target.environment(), options, events_file=directory / "engine.jsonl")
            run = stack.enter_context(load)
        leftovers.remember(directory, run.pid)
        yield run
    leftovers.forget(directory)


def _record(course: _Course, started: str, host_seen: dict[str, dict[str, int]]) -> Trial:
    planned, outcome = course.planned, course.outcome
    return Trial(
        index=planned.index,
        block=planned.block,
        arm=planned.arm,
        load_point=course.point,
        seed=planned.seed,
        status="completed" if course.reason is None else "failed",
        reason=course.reason,
        started=started,
        ended=_now(),
        phases_s={phase: round(seconds, 4) for phase, seconds in course.timings.items()},
        checkpoint_s=course.checkpoint_s,
        warmup=outcome.warmup,
        measured=outcome.measured,
        aborted_clients=outcome.aborted_clients,
        client=outcome.client,
        server_deltas=course.deltas,
        relations_before=course.relations_before,
        relations=course.relations,
        huge_pages=host_seen,
        notes=course.notes,
    )


def _write_measurements(directory: Path, outcome: Outcome) -> None:
    try:
        outcome.timeline().write_parquet(directory / "timeline.parquet")
        if outcome.histogram:
            (directory / "latency.hdr").write_text(outcome.histogram + "\n")
    except OSError as error:
        raise cannot_write(directory, error) from error


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"the server did not answer: {text}" if isinstance(error, psycopg.Error) else text


@contextmanager
def _timed(course: _Course, phase: str) -> Iterator[None]:
    start = time.monotonic()
    try:
        yield
    finally:
        course.timings[phase] = time.monotonic() - start


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
