"""One trial: restore, start, warm, load with a checkpoint at a fixed moment, collect, stop, store.

A trial that goes wrong is a result: it is stored as failed, with one sentence, and the study goes on. What is wrong
with the lab itself (a full disk, an arm that does not start, SQL of the study that PostgreSQL refuses) stops the study,
with nothing stored for this trial unless its load had ended. Neither decision depends on the arm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.conduct import leftovers
from pgtrial.conduct.course import Course, observed, sentence
from pgtrial.conduct.engine_options import engine_options, front_end, most_parts
from pgtrial.conduct.outcome import PHASES, Outcome
from pgtrial.conduct.progress import Listener, Preparing, Second
from pgtrial.conduct.settle import Checkpoint, run_setup_sql, warm_relations
from pgtrial.evidence.collect.network import median_round_trip
from pgtrial.evidence.observe import counters, server_log
from pgtrial.evidence.observe.host import read_host
from pgtrial.evidence.observe.sampler import Observation
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.task_table import creation_s
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.load_makers import LoadMaker, LoadOrder, OneEngine
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostTrouble
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.records.study import PlannedTrial, Trial
from pgtrial.model.units import patience_s
from pgtrial.servers.arm import Arm
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import cannot_write

ENGINE_GRACE_S = 60.0
"""How much longer than warm-up and measured part the engine may take, for connecting and for its last transactions."""

WhileServed = Callable[[Arm, Target, int | None], None]
"""Arm, where its server is, and the place that the trial has."""


def run_trial(
    study: StudyDirectory,
    planned: PlannedTrial,
    arm: Arm,
    listener: Listener,
    *,
    while_served: WhileServed | None = None,
    engine_grace_s: float = ENGINE_GRACE_S,
    maker: LoadMaker | None = None,
) -> Trial:
    """Run and store one planned trial; `maker` makes its load, default: one engine on this machine.

    `while_served` is called after the load of a trial that did not fail, with the server still running. Raises
    ArmError, StudyError and StoreError for what must stop the study; once the load has ended its trial is stored first.
    """
    point = study.plan.load_points[planned.load_point]
    script = study.script(point.workload)
    maker = maker or OneEngine()
    notes = maker.ready(lambda text: listener(Preparing(text)))
    directory = study.begin_trial(planned)
    data = data_of(study.spec, point)
    course = Course(
        study.spec.load, planned, point, data, script, directory, listener, engine_grace_s, maker, notes=notes
    )
    started = _now()
    has_ended = False
    must_stop: ArmError | HostTrouble | None = None
    try:
        log = course.directory / "server.log"
        with arm.serve(data, log, course.timings, planned.place) as target:
            said_before = log.stat().st_size
            try:
                _load_and_collect(course, arm, target)
            except (TrialError, psycopg.Error) as error:
                course.fail(sentence(error))
            has_ended = True
            try:
                arm.fetch_log(log)
            except TrialError as error:
                course.fail(sentence(error))
            # what follows is the lab's own stop of the server
            course.server_said = server_log.last_lines(log, said_before)
            if course.reason is None and course.lost is None and while_served is not None:
                while_served(arm, target, planned.place)
    except TrialError as error:
        course.fail_with(sentence(error))
    except (ArmError, HostTrouble) as error:
        if not has_ended:
            raise
        must_stop = error
    course.notes += arm.notes
    trial = _record(course, started, arm.host_seen)
    _write_measurements(course.directory, course.outcome, course.observation)
    study.write_trial(trial)
    if must_stop is not None:
        raise must_stop
    return trial


def _load_and_collect(course: Course, arm: Arm, target: Target) -> None:
    load = course.load
    warmup_s, _ = load.phases_s
    with ExitStack() as stack:
        session = stack.enter_context(target.connect())
        checkpoint = Checkpoint(target)
        stack.callback(checkpoint.close)
        _make_ready(course, session, arm, checkpoint)
        others = counters.count_clients(session)
        before: counters.Counters | None = None
        measured_since: float | None = None
        with course.timed("load"), observed(course, arm, target) as sampler, _engine(course, target) as run:
            sampler.load_begins(run.pid)
            for event in run.events(time.monotonic() + load.longest_s + course.engine_grace_s):
                course.outcome.add(event)
                match event:
                    case {"event": "phase", "phase": "warmup"}:
                        checkpoint.issue_after(warmup_s / 2)
                    case {"event": "phase", "phase": "measure"}:
                        measured_since = time.monotonic()
                        sampler.measure_begins()
                        try:
                            before = _read_counters(session, arm, target)
                        except psycopg.OperationalError as error:
                            course.lose(error)
                    case {"event": "tick", "phase": phase} if phase in PHASES:
                        tps = event["transactions"] / (event.get("seconds") or 1.0)
                        course.listener(Second(phase, event["second"], tps))
            status = run.finish()
            course.machines = run.machines(course.outcome.done)
            _check_script(course, run)
            course.reason = run.trouble or course.outcome.failure(status, run.last_words())
        with course.timed("collect"):
            checkpoint.close()
            course.checkpoint_s = checkpoint.duration_s
            course.note(checkpoint.note(measured_since))
            course.not_permitted += [checkpoint.not_permitted] if checkpoint.not_permitted else []
            try:
                counters.wait_for_clients_to_leave(session, others)
                if before is not None:
                    course.deltas |= counters.deltas(before, _read_counters(session, arm, target))
                course.relations = counters.read_relations(session, course.data.relations)
            except psycopg.OperationalError as error:
                course.lose(error)
        _settle_loss(course)


def _make_ready(course: Course, session: psycopg.Connection[tuple[Any, ...]], arm: Arm, checkpoint: Checkpoint) -> None:
    """Everything before the load: the arm's SQL, warm relations, and what is measured on the idle server."""
    with course.timed("warm"):
        run_setup_sql(session, arm.name, arm.setup)
        missed = warm_relations(session, arm.setup, course.data)
        course.not_permitted += [missed] if missed else []
        if course.load.phases_s[0] == 0:
            checkpoint.issue_now()
    course.relations_before = counters.read_relations(session, course.data.relations)
    if course.point.tasks is not None:
        course.table_created_s = creation_s(session)
    course.round_trip_us = median_round_trip(session)


def _settle_loss(course: Course) -> None:
    """Fail a trial whose lab session broke, unless the study waits for lost servers: then the load decides."""
    if course.lost is None:
        return
    if patience_s(course.load.on_server_loss) is None:
        course.fail(course.lost)
    else:
        course.note(f"the lab's own session was lost with the server, and with it the server's counters: {course.lost}")


def _read_counters(session: psycopg.Connection[tuple[Any, ...]], arm: Arm, target: Target) -> counters.Counters:
    by_network = not target.host.startswith(("/", "@"))
    return counters.read_counters(session) | read_host(arm.machine, arm.data_directory, session, network=by_network)


def _check_script(course: Course, run: EngineRun) -> None:
    """Raise StudyError if the engine did not begin for an error in the script, which a repetition would not correct."""
    if course.script is None or course.outcome.begun:
        return
    complaint = run.message_about(str(course.script))
    if complaint is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")


@contextmanager
def _engine(course: Course, target: Target) -> Iterator[EngineRun]:
    order = LoadOrder(
        front_end(course.point),
        partial(engine_options, course.load, course.point, course.planned.seed, course.script),
        target,
        course.directory / "engine.jsonl",
        most_parts(course.point),
        course.script,
        course.load.cpus,
    )
    with course.maker.started(order) as run:
        if run.pid is not None:
            leftovers.remember(course.directory, run.pid)
        yield run
    leftovers.forget(course.directory)


def _record(course: Course, started: str, host_seen: dict[str, dict[str, int]]) -> Trial:
    planned, outcome = course.planned, course.outcome
    panic = server_log.panic(course.server_said)
    if course.reason is not None and panic is not None:
        course.reason = f"{course.reason}; the server's log: {panic}"
    return Trial(
        index=planned.index,
        block=planned.block,
        arm=planned.arm,
        load_point=course.point,
        seed=planned.seed,
        place=planned.place,
        status="completed" if course.reason is None else "failed",
        reason=course.reason,
        started=started,
        ended=_now(),
        phases_s={phase: round(seconds, 4) for phase, seconds in course.timings.items()},
        checkpoint_s=course.checkpoint_s,
        warmup=outcome.warmup,
        measured=outcome.measured,
        tasks=outcome.tasks,
        table_created_s=course.table_created_s,
        aborted_clients=outcome.aborted_clients,
        client=outcome.client,
        server_deltas=course.deltas,
        relations_before=course.relations_before,
        relations=course.relations,
        huge_pages=host_seen,
        round_trip_us=course.round_trip_us,
        not_permitted=course.not_permitted,
        notes=course.notes,
        machines=course.machines,
        failure_spans=outcome.failure_spans,
        server_log_tail=course.server_said,
    )


def _write_measurements(directory: Path, outcome: Outcome, observation: Observation | None) -> None:
    try:
        outcome.timeline().write_parquet(directory / "timeline.parquet")
        if observation is not None:
            observation.waits.write_parquet(directory / "waits.parquet")
            observation.observed.write_parquet(directory / "observed.parquet")
        if outcome.histogram:
            (directory / "latency.hdr").write_text(outcome.histogram + "\n")
    except OSError as error:
        raise cannot_write(directory, error) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
