"""Runs the trials that run at the same time: a single trial or, if loads alternate, the trials of all arms at a load
point.

The servers are started one after the other in the order that the plan has drawn, and stopped in the opposite order.
Trials that alternate are stored together, since they are compared with each other: a block never has only some of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from pgtrial.conduct.drawn_values import ValuesOfArms
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.leftovers import remove
from pgtrial.conduct.trial.load import TrialLoad
from pgtrial.conduct.trial.longer_slices import check_slices, may_lengthen
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.orders import orders_for
from pgtrial.conduct.trial.results import TrialResult
from pgtrial.conduct.trial.run_trial import TrialRunner
from pgtrial.conduct.trial.server import WhileServed
from pgtrial.loads.engine import ENGINE_GRACE_S, events_of
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker
from pgtrial.loads.programs.program import BATCH_LIMIT_S
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
    load, maker = study.spec.load.timed(study.plan.warmup_s, study.plan.duration_s), maker or ENGINE_HERE
    orders = orders_for(study, planned, arms, load, listener=listener, maker=maker, values=values or {}, counts=True)
    under_way = _run(study, orders, listener, engine_grace_s, while_served=while_served)
    trials = [runner.recorded() for runner in under_way]
    study.write_trials(trials)
    _raise_what_stops(under_way)
    return trials


class UnstoredTrial(NamedTuple):
    """A trial that has run to its end and is not stored."""

    order: TrialOrder
    result: TrialResult


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
) -> list[UnstoredTrial]:
    """Runs trials of one load point with other lengths than those of the plan, and does not store them. Returns what
    they have found.

    `longest_s` is the longest measured part, in seconds, that may be chosen after these trials; slices are not
    lengthened beyond it. Raises SlicesTooShort if too few transactions fit into a slice, and the errors of
    `run_trials`.
    """
    orders = orders_for(study, planned, arms, load, listener=listener, maker=maker, values=values or {}, counts=False)
    under_way = _run(study, orders, listener, engine_grace_s, longest_s=longest_s)
    trials = [UnstoredTrial(runner.order, runner.result) for runner in under_way]
    remove(trial.order.directory for trial in trials)
    _raise_what_stops(under_way)
    return trials


def _raise_what_stops(runners: Sequence[TrialRunner]) -> None:
    """Raises the first error of these trials that has to stop the study, if there is one. All of the trials have
    ended."""
    for runner in runners:
        if (error := runner.result.stopped.must_stop) is not None:
            raise error


def _run(
    study: StudyDirectory,
    orders: Iterable[TrialOrder],
    listener: Listener,
    engine_grace_s: float,
    *,
    while_served: WhileServed | None = None,
    longest_s: float | None = None,
) -> list[TrialRunner]:
    """Runs trials to their end, and returns their runners. `longest_s` is that of `run_unstored`, and None for trials
    that are stored.

    Raises ArmError, StudyError and StoreError. In that case the files of the trials are removed.
    """
    under_way: list[TrialRunner] = []
    try:
        with ExitStack() as stack, _told_if_interrupted(listener):
            for order in orders:
                runner = TrialRunner(order, while_served)
                under_way.append(runner)
                stack.enter_context(runner.ended_with_the_others())
                first = under_way[0].result.started
                if study.plan.shares_server and first.failed is not None:  # the first trial starts the shared server
                    runner.fail_to_begin(first)
                else:
                    runner.begin()
            deadline = time.monotonic() + _longest_s(under_way[0].order, engine_grace_s)
            loads = [runner.load for runner in under_way if runner.load is not None]
            _pass_events(loads, deadline, study.plan, longest_s)
            for runner in under_way:
                runner.collect()
            for runner in reversed(under_way):
                runner.stop()
    except BaseException as error:
        _end_unstored(study, under_way, error, counts=longest_s is None)
        raise
    return under_way


@contextmanager
def _told_if_interrupted(listener: Listener) -> Iterator[None]:
    """Tells the user at once that a signal has arrived, since it takes some seconds to stop the servers."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(OSError):  # Ctrl-C may have ended the program that reads the output, too
            listener(Preparing("interrupted: the load ends and the servers stop, which takes some seconds", stays=True))
        raise


def _longest_s(order: TrialOrder, engine_grace_s: float) -> float:
    """Returns the longest time in seconds that the loads of trials that run at the same time may take."""
    longest_s = order.turn.wall_s(order.load.longest_s)
    if order.load.kind.has_own_limit:
        return longest_s
    batches_s = order.rounds.overrun_s(BATCH_LIMIT_S) if order.rounds is not None else 0.0
    return longest_s + engine_grace_s + batches_s


def _end_unstored(
    study: StudyDirectory, under_way: Sequence[TrialRunner], error: BaseException, *, counts: bool
) -> None:
    """Removes the files of trials that ended with `error` and are not stored. If a signal of the user ended them, and
    they would have counted (`counts`), records the interruption."""
    with suppress(StoreError):  # if this fails, the next start removes the files
        remove(runner.order.directory for runner in under_way)
    if counts and isinstance(error, KeyboardInterrupt):
        note_interruption(study.path, str(error) or "SIGINT", [runner.interrupted() for runner in under_way])


def _give_start(loads: Sequence[TrialLoad]) -> None:
    """Chooses a moment in the near future at which all these loads begin, and sends it to their engines."""
    start_at = time.monotonic() + max((load.run.notice_s for load in loads if load.run is not None), default=0.0)
    for load in loads:
        load.begin_at(start_at)


def _pass_events(loads: Sequence[TrialLoad], deadline: float, plan: Plan, longest_s: float | None) -> None:
    """Passes each event to its load, until all loads have ended. Engines whose loads alternate wait after their
    preparation; when all of them are ready, they get a common time at which to begin.

    Raises SlicesTooShort if the first warm-up at this load point shows that the slices are too short.
    """
    by_run = {load.run: load for load in loads if load.run is not None}
    warming = {run for run, load in by_run.items() if may_lengthen(plan, load.order)}
    waiting = set(by_run) if plan.interleaving is not None else set()
    for run, event in events_of(list(by_run), deadline):
        by_run[run].on_event(event)
        if run in warming and (not isinstance(event, dict) or event.get("phase") == "measure"):
            warming.remove(run)
            if not warming:
                check_slices(plan, [warmed for load in loads if (warmed := load.warmed) is not None], longest_s)
        if run in waiting and (not isinstance(event, dict) or event["event"] == "ready"):
            waiting.remove(run)
            if not waiting:
                _give_start(loads)
