"""One trial: restore, start, warm, load with a checkpoint at a fixed moment, collect, stop.

A trial that goes wrong is a result: it has failed, with one sentence, and the study goes on. A server that does not
start gets a second attempt, on a fresh copy; then its trial has failed. What is wrong with the lab itself (a full disk,
a host that is gone, SQL of the study that PostgreSQL refuses) stops the study, with nothing stored for this trial
unless its load had ended. No decision depends on the arm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psycopg

from pgtrial.conduct import job, leftovers, suite
from pgtrial.conduct.capacity_search import search
from pgtrial.conduct.course import Course, NotWatching, Watching, observed, sentence
from pgtrial.conduct.engine_options import engine_options, front_end, most_parts
from pgtrial.conduct.outcome import PHASES
from pgtrial.conduct.packs import check, held, measure
from pgtrial.conduct.progress import Preparing, Second
from pgtrial.conduct.settle import Checkpoint, run_setup_sql, warm_relations
from pgtrial.evidence.collect.network import median_round_trip
from pgtrial.evidence.observe import server_log, views
from pgtrial.evidence.observe.host import read_host
from pgtrial.loads.client_processes import count_clients, wait_for_clients_to_leave
from pgtrial.loads.data.order_entry_tables import violated_condition
from pgtrial.loads.data.task_table import creation_s
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.job_command import CommandRun
from pgtrial.loads.load_makers import LoadOrder
from pgtrial.loads.load_run import Event, LoadRun
from pgtrial.loads.programs.program import program_order
from pgtrial.loads.programs.run import ProgramRun
from pgtrial.loads.target import Session, Target
from pgtrial.machines.cpus import running_on
from pgtrial.machines.machine import HostTrouble
from pgtrial.model.errors import ArmError, StartError, StudyError, TrialError
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.units import patience_s
from pgtrial.servers.arm import Arm, timed
from pgtrial.store.files import writing
from pgtrial.store.programs import check_programs_unchanged
from pgtrial.store.replay_files import capture_of

WhileServed = Callable[[Arm, Target, int | None, str | None], None]
"""Arm, where its server is, the place that the trial has, and what its client program says that it is."""


class RunningTrial:
    """A trial that is under way: `begin`, `hear` for each event of its load, `collect` and `stop`, in this order.

    Several can be under way at the same time. What is found is in the course.
    """

    def __init__(self, course: Course, arm: Arm, while_served: WhileServed | None) -> None:
        self.course, self.arm = course, arm
        self.run: LoadRun | None = None
        """Its engine, as long as it is to be heard."""
        self.must_stop: ArmError | HostTrouble | None = None
        """What stops the study once this trial is stored."""
        self.ended = False
        """Whether its server is stopped, or never started."""
        self._while_served = while_served
        self._log = course.directory / "server.log"
        self._target: Target
        self._measured: _Measured | None = None
        self._load_ended = False
        self._server, self._sessions, self._load = ExitStack(), ExitStack(), ExitStack()
        """What the server, the lab's own sessions, and the load leave to be closed."""

    def begin(self) -> None:
        """Start the server and the engine of the load. Raises ArmError, StudyError and StoreError."""
        course = self.course
        if course.reason is not None:  # the server that it shares is not there
            self.ended = True
            return
        try:
            with ExitStack() as server:
                self._target = _served(course, self.arm, self._log, server)
                course.log_read = self._log.stat().st_size
                self._server = server.pop_all()
        except TrialError as error:
            course.fail_with(sentence(error))
            self.ended = True
            return
        with self._loading():
            self._measured = _Measured(course, self.arm, self._target, self._sessions)
            if course.point.capacity is None:
                self.run = self._measured.begin(self._load)
                return
            # trials of a capacity do not alternate: no other load is to be heard meanwhile
            self._measured.search(self._load)
            self._load.close()
            self._load_ended = True

    def hear(self, event: Event | TrialError | None) -> None:
        """Take an event of the load, what went wrong with it, or None at its end. Raises StudyError and StoreError."""
        if self.run is None or self._measured is None:
            return
        with self._loading():
            if isinstance(event, TrialError):
                raise job.overrun(self.course, event)
            if event is not None:
                self._measured.hear(event)
                return
            self._measured.finish(self.run)
            self._load.close()
            self.run, self._load_ended = None, True

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """Within it, an error ends the load; what goes wrong with the trial alone fails it, and is not raised."""
        with self.course.failing():
            try:
                yield
            except BaseException as error:
                self.run = None
                with self._load:
                    raise error

    def collect(self) -> None:
        """Read what has changed over the measured part, once the loads of all trials are over."""
        if self._load_ended and self._measured is not None:
            with self.course.failing():
                self._measured.collect()
        self._sessions.close()

    def stop(self) -> None:
        """Read the server's log and stop the server."""
        course = self.course
        if self.ended:
            return
        self.ended = True
        try:
            with self._server:
                with course.failing():
                    self.arm.fetch_log(self._log)
                # what follows is the lab's own stop of the server
                course.server_said += server_log.last_lines(self._log, course.log_read)
                if course.reason is None and course.lost is None and self._while_served is not None:
                    self._while_served(self.arm, self._target, course.planned.place, course.outcome.program)
        except TrialError as error:
            course.fail_with(sentence(error))
        except (ArmError, HostTrouble) as error:
            self.must_stop = error

    @contextmanager
    def ended_with_the_others(self) -> Iterator[None]:
        """What stops the study ends this trial as well: load, sessions and server are closed with that error."""
        try:
            yield
        except BaseException as error:
            with suppress(type(error)), self._server, self._sessions, self._load:
                raise error
            raise

    def recorded(self) -> Trial:
        """The trial, with its tables written. Raises StoreError."""
        self.course.notes += self.arm.notes
        write_measurements(self.course)
        return record(self.course, self.arm.host_seen)


_ATTEMPTS = 2


def _served(course: Course, arm: Arm, log: Path, stack: ExitStack) -> Target:
    """The arm's server until `stack` ends. Raises ArmError, and TrialError when it does not start at any attempt."""
    for _ in range(_ATTEMPTS):
        if course.start_failures:
            course.listener(Preparing(f"{arm.name}: {course.start_failures[-1]}; starting it once more"))
        try:
            return stack.enter_context(arm.serve(course.data, log, course.timings, course.planned.place))
        except StartError as error:
            course.start_failures.append(sentence(error))
    raise TrialError(f"the server did not start at {_ATTEMPTS} attempts: {course.start_failures[-1]}")


class _Measured:
    """The load of a trial, and what the lab's session counts around it."""

    def __init__(self, course: Course, arm: Arm, target: Target, stack: ExitStack) -> None:
        """`stack` closes the lab's sessions. Raises psycopg.Error."""
        self._course, self._arm, self._target = course, arm, target
        self._session = stack.enter_context(target.connect())
        self._checkpoint = Checkpoint(target)
        stack.callback(self._checkpoint.close)
        self._others = 0
        self._before: views.Counters | None = None
        self._measured_since: float | None = None
        self._sampler: Watching = NotWatching()
        self._timed = ExitStack()
        self._job = job.JobWatch(course, arm, self._session) if course.point.job is not None else None
        self._suite = suite.SuiteWatch(course, arm) if course.point.suite is not None else None
        self._run: LoadRun | None = None
        self._stack = stack

    def begin(self, load: ExitStack) -> LoadRun:
        """Make ready, and start the engine; `load` ends what goes on during the load."""
        course, arm, target = self._course, self._arm, self._target
        self._make_ready(load)
        self._sampler = load.enter_context(observed(course, arm, target))
        if self._job is not None:
            self._job.begin(load, target)
        run = load.enter_context(_program(course, arm, target) if course.rounds else _engine(course, target))
        load.callback(self._timed.close)
        self._timed.enter_context(timed(course.timings, "load"))
        self._sampler.load_begins(run.pid)
        self._run = run
        return run

    def search(self, load: ExitStack) -> None:
        """Make ready, and find the capacity; `load` ends what goes on meanwhile. Raises TrialError and StudyError."""
        course = self._course
        self._make_ready(load)
        load.callback(self._timed.close)
        self._timed.enter_context(timed(course.timings, "load"))
        search(course, partial(_probing, target=self._target), self._look)

    def _make_ready(self, load: ExitStack) -> None:
        course, target = self._course, self._target
        _check_conditions(course, target, "before")
        _make_ready(course, self._session, self._arm, self._checkpoint, target)
        self._others = count_clients(self._session)
        if course.statements is not None:
            course.statements.begin(self._session)
        hold = None if course.point.pack is None else course.point.pack.hold
        load.enter_context(held(course.pack, hold, target))

    def _look(self) -> None:
        if self._course.statements is not None:
            self._course.statements.look(self._session)

    def finish(self, run: LoadRun) -> None:
        """Wait for the engine, whose load is over, and note what became of it. Raises StudyError."""
        course = self._course
        status = run.finish()
        self._timed.close()
        course.machines = run.machines(course.outcome.done)
        course.notes += run.notes
        course.note(course.outcome.overrun())
        _check_script(course, run)
        course.reason = run.trouble or course.outcome.failure(status, run.last_words())
        if self._job is not None:
            course.reason = job.refusal(course, status, run.last_words()) or course.reason
            if course.reason is None:
                self._job.ended()

    def hear(self, event: Event) -> None:
        """Count an event of the load, and do what the lab does at its moment."""
        course = self._course
        course.outcome.add(event)
        match event:
            case {"event": "phase", "phase": "warmup"}:
                self._checkpoint.issue_after(course.turn.wall_s(course.load.phases_s[0]) / 2)
            case {"event": "phase", "phase": "measure"}:
                self._measured_since = time.monotonic()
                self._sampler.measure_begins()
                try:
                    self._before = self._counters() if self._counts else None
                except psycopg.OperationalError as error:
                    course.lose(error)
            case {"event": "tick"} if self._job is not None:
                self._job.hear(event)
            case {"event": "pause"} if self._suite is not None and isinstance(self._run, EngineRun):
                # nothing of the lab's own is to be in memory, or to be lost with the server
                self._checkpoint.close()
                self._session.close()
                self._suite.restart(self._run)
            case {"event": "query"} if self._suite is not None:
                self._suite.hear(event)
            case {"event": "tick", "phase": phase} if phase in PHASES:
                course.listener(Second(course.planned.arm, phase, event["second"], course.outcome.tps_of(event)))
                self._look()

    def collect(self) -> None:
        """What has changed over the measured part."""
        course, checkpoint, session = self._course, self._checkpoint, self._session
        with timed(course.timings, "collect"):
            checkpoint.close()
            if session.closed and self._suite is not None and self._suite.restarts:
                session = self._session = self._stack.enter_context(self._target.connect())
            course.checkpoint_s = checkpoint.duration_s
            course.note(checkpoint.note(self._measured_since))
            course.not_permitted += [checkpoint.not_permitted] if checkpoint.not_permitted else []
            try:
                if not course.shared_server:
                    wait_for_clients_to_leave(session, self._others)
                if self._job is not None:
                    self._job.end()
                if self._before is not None:
                    course.deltas |= views.deltas(self._before, self._counters())
                if course.statements is not None:
                    course.plans = course.statements.plans(session)
                course.relations = views.read_relations(session, course.data.relations(session))
            except psycopg.OperationalError as error:
                course.lose(error)
        if course.lost is not None and patience_s(course.load.on_server_loss) is None:
            course.fail(course.lost)
        elif course.lost is not None:  # the study waits for lost servers: the load decides
            gone = "the lab's own session was lost with the server, and with it the server's counters"
            course.note(f"{gone}: {course.lost}")
        if course.reason is None:
            _check_conditions(course, self._target, "after")
            if course.pack is not None:
                with timed(course.timings, "check"):
                    check(course.pack, self._target, "after the load")
                with timed(course.timings, "measure"):
                    course.quality = measure(course.pack, self._target)

    @property
    def _counts(self) -> bool:
        """Whether it reads the counters of its server: of one that is shared the first trial does."""
        return not self._course.shared_server or self._course.turn.number == 1

    def _counters(self) -> views.Counters:
        arm, session, alone = self._arm, self._session, self._course.turn.of == 1
        network = not self._target.host.startswith(("/", "@"))
        host = read_host(arm.machine, arm.data_directory, session, network=network, alone=alone)
        return views.read_counters(session) | host


def _make_ready(course: Course, session: Session, arm: Arm, checkpoint: Checkpoint, target: Target) -> None:
    """Everything before the load: the arm's SQL, a pack's check, warm relations, and what the idle server shows."""
    with timed(course.timings, "warm"):
        run_setup_sql(session, arm.name, arm.setup)
    if course.pack is not None:
        with timed(course.timings, "check"):
            check(course.pack, target, "before the load")
    with timed(course.timings, "warm"):
        missed = warm_relations(session, arm.setup, course.data)
        course.not_permitted += [missed] if missed else []
        if course.load.phases_s[0] == 0 or course.point.capacity is not None:
            checkpoint.issue()
    course.relations_before = views.read_relations(session, course.data.relations(session))
    if course.point.tasks is not None:
        course.table_created_s = creation_s(session)
    course.round_trip_us = median_round_trip(session)


def _check_conditions(course: Course, target: Target, when: str) -> None:
    """Raise TrialError if a consistency condition of the data does not hold, where the study asks for that."""
    if not course.load.check or course.point.workload != ORDER_ENTRY:
        return
    with timed(course.timings, "check"):
        violation = violated_condition(target)
    if violation is not None:
        raise TrialError(f"{when} the load {violation}")


def _check_script(course: Course, run: LoadRun) -> None:
    """Raise StudyError if the engine did not begin for an error in the script, which a repetition would not correct.

    The same goes for a capture, and for the number of its sessions.
    """
    if course.outcome.begun:
        return
    if course.script is not None and (complaint := run.message_about(str(course.script))) is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")
    if course.point.replay is not None:
        for words in (str(capture_of(course.load.workload[0])), _TOO_MANY):
            if (complaint := run.message_about(words)) is not None:
                raise StudyError(f"the engine refuses the replay: {complaint}")


_TOO_MANY = "more than the server allows"
"""What the engine says of connections."""


def _folder_of(course: Course) -> Path | None:
    """Where the files of a workload of the study's own are."""
    has_folder = course.pack is not None or course.point.suite is not None or bool(course.point.mix)
    return course.script if course.script is None or has_folder else course.script.parent


@contextmanager
def _command(course: Course, target: Target, words: Sequence[str]) -> Iterator[LoadRun]:
    events = course.directory / "engine.jsonl"
    with running_on(course.load.cpus), CommandRun(words, target, events_file=events, inbox=course.inbox) as run:
        yield run


@contextmanager
def _engine(course: Course, target: Target) -> Iterator[LoadRun]:
    order = LoadOrder(
        front_end(course.point),
        partial(
            engine_options,
            course.load,
            course.point,
            course.planned.seed,
            course.script,
            turn=course.turn,
            values=course.values,
        ),
        target,
        course.directory / "engine.jsonl",
        most_parts(course.point),
        _folder_of(course),
        course.load.cpus,
        course.inbox,
    )
    words = job.command_of(course.point)
    started = course.maker.started(order) if words is None else _command(course, target, words)
    with started as run:
        if run.pid is not None:
            leftovers.remember(course.directory, run.pid)
        yield run
    leftovers.forget(course.directory)


@contextmanager
def _program(course: Course, arm: Arm, target: Target) -> Iterator[LoadRun]:
    """The arm's client program. Raises StudyError if its files have changed, and TrialError."""
    assert course.rounds is not None
    check_programs_unchanged(arm.name, arm.setup)
    load = ProgramRun(
        program_order(arm.setup, target),
        course.rounds,
        events_file=course.directory / "engine.jsonl",
        inbox=course.inbox,
        waits=course.turn.slice_s is not None,
    )
    with ExitStack() as stack:
        with running_on(course.load.cpus):
            run = stack.enter_context(load)
        leftovers.remember(course.directory, run.pid)
        yield run
    leftovers.forget(course.directory)


@contextmanager
def _probing(course: Course, target: Target) -> Iterator[LoadRun]:
    """The engine of a probe. Raises StudyError if it refuses a script of the study."""
    with _engine(course, target) as run:
        yield run
        _check_script(course, run)


def record(course: Course, host_seen: dict[str, dict[str, int]]) -> Trial:
    """The trial as it is stored; `host_seen` are the arm's counters of its host."""
    planned, outcome = course.planned, course.outcome
    panic = server_log.panic(course.server_said)
    if course.reason is not None and panic is not None:
        course.reason = f"{course.reason}; the server's log: {panic}"
    return Trial(
        **planned.model_dump(exclude={"load_point"}),
        started=course.started,
        start_failures=course.start_failures,
        reason=course.reason,
        notes=course.notes,
        checkpoint_s=course.checkpoint_s,
        round_trip_us=course.round_trip_us,
        not_permitted=course.not_permitted,
        relations_before=course.relations_before,
        relations=course.relations,
        table_created_s=course.table_created_s,
        quality=course.quality,
        job=course.job,
        capacity=course.capacity,
        probes=course.probes,
        machines=course.machines,
        load_point=course.point,
        status="completed" if course.reason is None else "failed",
        ended=now(),
        phases_s={
            phase: round(seconds / (course.turn.of if phase == "load" else 1), 4)
            for phase, seconds in course.timings.items()
        },
        warmup=outcome.warmup,
        measured=outcome.measured,
        tasks=outcome.tasks,
        kinds=outcome.kinds if course.point.workload == ORDER_ENTRY else [],
        replay=outcome.replay,
        suite=outcome.suite,
        aborted_clients=outcome.aborted_clients,
        client=outcome.client,
        server_deltas={} if course.shared_server else course.deltas,
        shared_deltas=course.deltas if course.shared_server else {},
        statements=course.plans,
        sessions_seen=course.statements.sessions if course.statements is not None else 0,
        huge_pages=host_seen,
        program=outcome.program,
        failure_spans=outcome.failure_spans,
        server_log_tail=course.server_said,
    )


def write_measurements(course: Course) -> None:
    """Write the tables of the trial into its directory. Raises StoreError."""
    directory, outcome, observation = course.directory, course.outcome, course.observation
    with writing(directory):
        outcome.timeline().write_parquet(directory / "timeline.parquet")
        if outcome.slice_s is not None:
            outcome.slices().write_parquet(directory / "slices.parquet")
        if observation is not None:
            observation.waits.write_parquet(directory / "waits.parquet")
            observation.observed.write_parquet(directory / "observed.parquet")
        if outcome.histogram:
            (directory / "latency.hdr").write_text(outcome.histogram + "\n")


def now() -> str:
    """UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
