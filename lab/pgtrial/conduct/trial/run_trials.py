"""Runs the trials that run at the same time: a single trial or, if loads alternate, the trials of all arms at a load
point.

The servers are started one after the other in the order that the plan has drawn, and stopped in the opposite order.
Trials that alternate are stored together, since they are compared with each other: a block never has only some of them.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from pgtrial.conduct.drawn_values import ValuesOfArms
from pgtrial.conduct.planning.interleaving import SLICE_S
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.leftovers import remove
from pgtrial.conduct.trial.load_statements import statements_of
from pgtrial.conduct.trial.longer_slices import check_slices, may_lengthen
from pgtrial.conduct.trial.probes import start_rate
from pgtrial.conduct.trial.run_trial import TrialRunner, WhileServed
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.conduct.trial.trial_record import now
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pack_tables import sql_files
from pgtrial.loads.engine import ENGINE_GRACE_S, PHASES, events_of
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.programs.program import BATCH_LIMIT_S
from pgtrial.loads.programs.rounds import Rounds
from pgtrial.loads.turns import Turn
from pgtrial.model.errors import StoreError
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.load_section import LoadSection
from pgtrial.servers.arm import Arm
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.interruptions import note_interruption


def run_trials(
    study: StudyDirectory,
    planned: Sequence[PlannedTrial],
    arms: Mapping[str, Arm],
    listener: Listener,
    *,
    while_served: WhileServed | None = None,
    engine_grace_s: float = ENGINE_GRACE_S,
    maker: LoadMaker | None = None,
    values: ValuesOfArms | None = None,
) -> list[Trial]:
    """Runs and stores planned trials of one load point, and returns them.

    `maker` starts the engines for their loads; by default one engine for each load, on this machine. `values` has the
    files from which variables of the arms' scripts take values. `while_served` is called after the load of a trial that
    did not fail, while its server still runs.

    Raises ArmError, StudyError and StoreError for faults that have to stop the study. If the loads have ended by then,
    the trials are stored first.
    """
    load = study.spec.load.timed(study.plan.warmup_s, study.plan.duration_s)
    maker = maker or ENGINE_HERE
    under_way = _run(
        study,
        planned,
        arms,
        listener,
        load,
        engine_grace_s=engine_grace_s,
        maker=maker,
        while_served=while_served,
        values=values,
    )
    trials = [runner.recorded() for runner in under_way]
    study.write_trials(trials)
    _raise_what_stops(under_way)
    return trials


def run_unstored(
    study: StudyDirectory,
    planned: Sequence[PlannedTrial],
    arms: Mapping[str, Arm],
    listener: Listener,
    load: LoadSection,
    *,
    longest_s: float,
    engine_grace_s: float,
    maker: LoadMaker,
    values: ValuesOfArms | None = None,
) -> list[RunningTrial]:
    """Runs trials of one load point with other lengths than those of the plan, and does not store them. Returns the
    trials with their measurements.

    `longest_s` is the longest measured part, in seconds, that may be chosen after these trials; slices are not
    lengthened beyond it. Raises SlicesTooShort if too few transactions fit into a slice, and the errors of
    `run_trials`.
    """
    under_way = _run(
        study,
        planned,
        arms,
        listener,
        load,
        engine_grace_s=engine_grace_s,
        maker=maker,
        longest_s=longest_s,
        values=values,
    )
    trials = [runner.trial for runner in under_way]
    remove(trial.directory for trial in trials)
    _raise_what_stops(under_way)
    return trials


def _raise_what_stops(runners: Sequence[TrialRunner]) -> None:
    """Raises the first error of these trials that has to stop the study, if there is one. All of the trials have
    ended."""
    for runner in runners:
        if runner.must_stop is not None:
            raise runner.must_stop


def _run(
    study: StudyDirectory,
    planned: Sequence[PlannedTrial],
    arms: Mapping[str, Arm],
    listener: Listener,
    load: LoadSection,
    *,
    engine_grace_s: float,
    maker: LoadMaker,
    while_served: WhileServed | None = None,
    longest_s: float | None = None,
    values: ValuesOfArms | None = None,
) -> list[TrialRunner]:
    """Runs trials to their end, and returns their runners.

    Raises ArmError, StudyError and StoreError. In that case the files of the trials are removed.
    """
    notes = maker.ready(lambda text: listener(Preparing(text)))
    inbox: Inbox = queue.SimpleQueue()
    alternating = study.plan.interleaving
    slice_s = alternating.slice_at(planned[0].load_point) if alternating is not None else None
    values = values or {}
    of_first = values.get(planned[0].arm)
    in_common = statements_of(study, planned[0], of_first) if longest_s is None else None
    rounds = None
    if load.kind.runs_in_batches:
        phases = list(zip(PHASES, load.phases_s, strict=True))
        rounds = Rounds(len(planned), slice_s or SLICE_S, phases, planned[0].seed)
        engine_grace_s += rounds.overrun_s(BATCH_LIMIT_S)
    begin_rate = partial(start_rate, study.trials()) if load.kind.searches_rate else None
    under_way: list[TrialRunner] = []
    try:
        with ExitStack() as stack:
            for number, due in enumerate(planned, 1):
                point = study.plan.load_points[due.load_point]
                is_own = bool(point.of_arms) and longest_s is None
                trial = RunningTrial(
                    load,
                    due,
                    point,
                    data_of(study.spec, point, due.arm),
                    study.script(point.for_arm(due.arm)),
                    study.begin_trial(due),
                    listener,
                    maker,
                    started=now(),
                    turn=Turn(number, len(planned), slice_s),
                    shared_server=study.plan.shares_server,
                    beside_script=next(map(study.script_called, point.kind.scripts_beside), None),
                    pack=sql_files(study.spec, point),
                    values=values.get(due.arm, {}),
                    statements=statements_of(study, due, values.get(due.arm)) if is_own else in_common,
                    with_drawn_statistics=study.plan.statistics == "drawn",
                    inbox=inbox,
                    rounds=rounds,
                    metrics=study.spec.metrics,
                    start_rate=begin_rate(point, due.block) if begin_rate is not None else None,
                    notes=list(notes),
                )
                if study.plan.shares_server and under_way and under_way[0].ended:
                    # the first trial has to start the shared server, and its start has failed
                    first = under_way[0].trial
                    trial.reason, trial.start_failures = first.reason, first.start_failures
                runner = TrialRunner(trial, arms[due.arm], while_served)
                under_way.append(runner)
                stack.enter_context(runner.ended_with_the_others())
                runner.begin()
            grace_s = 0.0 if load.kind.has_own_limit else engine_grace_s
            deadline = time.monotonic() + under_way[0].trial.turn.wall_s(load.longest_s) + grace_s
            _pass_events(under_way, deadline, study.plan, longest_s)
            for runner in under_way:
                runner.collect()
            for runner in reversed(under_way):
                runner.stop()
    except BaseException as error:
        _end_unstored(study, under_way, error, counts=longest_s is None)
        raise
    return under_way


def _end_unstored(
    study: StudyDirectory, under_way: Sequence[TrialRunner], error: BaseException, *, counts: bool
) -> None:
    """Removes the files of trials that ended with `error` and are not stored. If a signal of the user ended them, and
    they would have counted (`counts`), records the interruption."""
    with suppress(StoreError):  # if this fails, the next start removes the files
        remove(runner.trial.directory for runner in under_way)
    if counts and isinstance(error, KeyboardInterrupt):
        note_interruption(study.path, str(error) or "SIGINT", [runner.trial.interrupted() for runner in under_way])


def _give_start(runners: Sequence[TrialRunner]) -> None:
    """Chooses a moment in the near future at which the loads of all these trials begin, and sends it to their
    engines."""
    waiting = [(runner.trial, runner.run) for runner in runners if runner.run is not None]
    start_at = time.monotonic() + max((run.notice_s for _, run in waiting), default=0.0)
    for trial, run in waiting:
        trial.loads_begin = start_at
        run.begin_at(start_at)


def _pass_events(runners: Sequence[TrialRunner], deadline: float, plan: Plan, longest_s: float | None) -> None:
    """Passes each event of the loads to its trial, until all loads have ended. Engines whose loads alternate wait after
    their preparation; when all of them are ready, they get a common time at which to begin.

    Raises SlicesTooShort if the first warm-up at this load point shows that the slices are too short.
    """
    by_run = {runner.run: runner for runner in runners if runner.run is not None}
    warming = set(by_run) if may_lengthen(plan, runners[0].trial) else set()
    waiting = set(by_run) if plan.interleaving is not None else set()
    for run, event in events_of(list(by_run), deadline):
        by_run[run].on_event(event)
        if run in warming and (not isinstance(event, dict) or event.get("phase") == "measure"):
            warming.remove(run)
            if not warming:
                check_slices(plan, [runner.trial for runner in runners if runner.trial.outcome.begun], longest_s)
        if run in waiting and (not isinstance(event, dict) or event["event"] == "ready"):
            waiting.remove(run)
            if not waiting:
                _give_start(runners)
