"""Runs a study from its plan to its last trial. If a study was interrupted and is run again, it continues after the
last stored trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pgtrial.conduct.arm_facts import ArmFacts
from pgtrial.conduct.drawn_values import ValuesOfArms
from pgtrial.conduct.futile import check_alike, check_own_metrics, check_start
from pgtrial.conduct.planning.deployments import are_units
from pgtrial.conduct.planning.lengths import with_rehearsed_time
from pgtrial.conduct.planning.noise import keep
from pgtrial.conduct.planning.outlook import precision_so_far
from pgtrial.conduct.planning.plan import More, announcement, extend
from pgtrial.conduct.planning.readings import Readings
from pgtrial.conduct.planning.scope import scope_of
from pgtrial.conduct.planning.stopping import Step, Stop, leaving, next_step_of, time_left
from pgtrial.conduct.preliminary import find_lengths
from pgtrial.conduct.preparation.instructions import check_can_count, count_instructions
from pgtrial.conduct.preparation.planner_statistics import give_statistics
from pgtrial.conduct.preparation.ready_arms import check_arms, load_arms, prepare_arms, with_builds
from pgtrial.conduct.preparation.rehearsal import has_own, rehearse, sampled_again
from pgtrial.conduct.preparation.rehearsed_plans import RehearsedPlans
from pgtrial.conduct.preparation.same_answers import AnswersOfScripts, compares_answers, findings_on_answers
from pgtrial.conduct.preparation.same_rows import as_warning, findings_on_rows, rows_of_arms
from pgtrial.conduct.progress import BlockEnds, Listener, Preparing, StudyBegins, StudyEnds, TrialBegins, TrialEnds
from pgtrial.conduct.selftest import take_certificate
from pgtrial.conduct.statement_plans import missing_plans, take_plans
from pgtrial.conduct.trial.leftovers import discard_unfinished
from pgtrial.conduct.trial.longer_slices import SlicesTooShort
from pgtrial.conduct.trial.run_trials import run_trials
from pgtrial.loads.engine import ENGINE_GRACE_S
from pgtrial.loads.fleet import scratch
from pgtrial.loads.fleet.fleet import load_maker
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.loads.process import engine_path
from pgtrial.loads.target import Target
from pgtrial.model import marks
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.cut_values import filled
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import plural
from pgtrial.servers.abilities import check_abilities
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.configured_values import check_configured
from pgtrial.servers.dumped import take_dump
from pgtrial.servers.given_data import made_for
from pgtrial.servers.leftovers import clean
from pgtrial.servers.server_locks import ServerLocks
from pgtrial.servers.workspace import LeftOnHost, Workspace
from pgtrial.store.directory import StudyDirectory, slices_of
from pgtrial.store.own_data import check_data_unchanged, forget_dump, is_to_be_dumped, with_dump
from pgtrial.store.replay_files import check_unchanged
from pgtrial.store.running import forget_stop, stop_is_asked
from pgtrial.verdict.carry_over import Slices
from pgtrial.verdict.changes import Regimes
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid


def run_study(
    study: StudyDirectory,
    listener: Listener,
    *,
    spec: StudySpec | None = None,
    more: More | None = None,
    engine_grace_s: float = ENGINE_GRACE_S,
) -> None:
    """Runs the planned trials that are not stored yet, until the stopping rule or a request to stop ends the study.

    `spec` is the study as the user gave it, with the passwords that the frozen study file does not contain. With
    `more`, a study that has ended is extended. A study that was ended by its budget continues without `more`, up to its
    next look at the verdict.

    Raises StudyError and ArmError. Errors that can be found before the first trial are raised before it.
    """
    given = with_dump(spec or study.spec, study.spec.load.data_files)
    engine_path()
    with ExitStack() as stack:
        stack.enter_context(study.locked())
        forget_stop(study.path)
        stack.callback(forget_stop, study.path)
        discard_unfinished(study)
        step = next_step_of(study, Readings(study))
        more = more or _up_to_the_look(study.design, step)
        if isinstance(step, Stop) and more is None and not missing_plans(study):
            # if the lab was killed after the last trial, what it had made still has to be removed
            for notice in (*scratch.clean(), *clean()):
                listener(Preparing(notice, stays=True))
            _end(study, step, listener)
            return
        given = filled(given, os.environ)
        check_unchanged(given)
        design = Design.planned(given, study.plan)
        check_configured(design)
        check_data_unchanged(given)
        extended = _extended(study, more, ended=isinstance(step, Stop)) if more is not None else None
        workspace = stack.enter_context(_workspace(study, listener))
        for notice in workspace.notices:
            listener(Preparing(notice, stays=True))
        design = with_builds(design, workspace, listener)
        _take_data(design, listener)
        maker = stack.enter_context(load_maker(design.spec, lambda text: listener(Preparing(text))))
        if design.interleaving is not None:
            maker.check_slices(design.interleaving.slice_s)
        arms = make_arms(design, workspace, maker)
        for arm in arms.values():
            stack.callback(arm.close)
        needs = Needs.of(design)
        locks = stack.enter_context(ServerLocks(study.path.name, needs.patience_s))
        for notice in locks.take({design.baseline: arms[design.baseline]} if design.sessions else arms):
            listener(Preparing(notice, stays=True))
        if not design.sessions and (shared := locks.in_common()) is not None:
            design = _take_for_one(study, design, *shared, listener)
        at_once = len(arms) if design.interleaving is not None and not design.sessions else 1
        prepare_arms(study, replace(needs, at_once=at_once), arms, maker, listener)
        forget_dump(design.spec)
        facts = ArmFacts(study, design, listener)
        values = _rehearsed(study, design, arms, workspace, listener, facts=facts)
        give_statistics(
            study, design, arms, listener
        )  # after the rehearsal, which has measured how long the queries of a suite take
        count_instructions(study, design, arms, workspace, listener, values=values)
        if shortage := workspace.shortage():
            listener(Preparing(shortage, stays=True))
        _take_certificate(study, listener)
        if extended is not None:
            study.extend(extended)
            listener(Preparing(announcement(extended, study.trials()), stays=True))
        stop = _run_trials(
            study,
            design,
            arms,
            maker,
            listener,
            facts=facts,
            locks=locks,
            engine_grace_s=engine_grace_s,
            values=values,
        )
        for notice in made_for(workspace.state, arms):
            listener(Preparing(notice, stays=True))
        take_plans(study, len(Grid(study.plan, study.trials()).counted), arms, listener)
        _end(study, stop, listener)


def rehearse_alone(spec: StudySpec, plan: Plan, listener: Listener) -> RehearsedPlans:
    """Does everything that running the study would do before its first trial, including the rehearsal, and nothing
    more. Returns the plans of the load's statements.

    Given servers are checked, but no data are loaded there. Raises StudyError and ArmError.
    """
    spec = filled(spec, os.environ)
    plans = RehearsedPlans()
    if is_to_be_dumped(spec):
        raise StudyError(
            f"{marks.key('load', 'data')}: `pgtrial run` dumps the database and then rehearses; for a rehearsal "
            "without a run, name a dump of the database (pg_dump)"
        )
    engine_path()
    check_unchanged(spec)
    with ExitStack() as stack:
        workspace = stack.enter_context(Workspace())
        design = with_builds(Design.planned(spec, plan), workspace, listener)
        needs = Needs.of(design)
        check_abilities(design, needs.data)
        maker = stack.enter_context(load_maker(design.spec, lambda text: listener(Preparing(text))))
        arms = make_arms(design, workspace, maker)
        for arm in arms.values():
            stack.callback(arm.close)
        check_arms(needs, arms, maker, listener, set())
        made = {name: arm for name, arm in arms.items() if not isinstance(arm.setup, Given)}
        load_arms(needs, made, listener, set())
        for found in findings_on_rows(plan, rows_of_arms(design, arms, plan.seed, listener)):
            if found.severity == "withhold":
                listener(Preparing(as_warning(found), stays=True))
        values = workspace.directory("values")
        answers = AnswersOfScripts(design.spec, plan.seed) if compares_answers(design.spec) else None
        rehearse(design, arms, plan.seed, values, partial(_report, listener), plans=plans, answers=answers)
        for found in findings_on_answers(plan, answers.compared()) if answers is not None else ():
            text = as_warning(found) if found.severity == "withhold" else marks.stored(found.message)
            listener(Preparing(text, stays=True))
    return plans


def _up_to_the_look(design: Design, step: Step) -> More | None:
    """Returns the blocks up to the next look (interim analysis), if the budget has ended the study and it can be
    extended; otherwise None."""
    if not isinstance(step, Stop) or not step.blocks_to_look or are_units(design):
        return None
    return More(blocks=step.blocks_to_look)


def _extended(study: StudyDirectory, more: More, *, ended: bool) -> Plan:
    if not ended:
        raise StudyError(
            f"{study.path} has not ended; continue it by `pgtrial run {study.path}`, and extend it after that"
        )
    readings = Readings(study)
    decided = all(comparison.decided for comparison in comparisons(readings.grid(), readings.regimes()))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return extend(study.plan, study.design, more, readings.trials, decided=decided, created=now)


@contextmanager
def _workspace(study: StudyDirectory, listener: Listener) -> Iterator[Workspace]:
    """Provides the workspace, the lab's private directories on this machine. If only files on a lost host could not be
    removed at the end, tells the user instead of raising an error, since the study itself is complete."""
    try:
        with Workspace(study=str(study.path.absolute())) as workspace:
            yield workspace
    except LeftOnHost as left:
        listener(Preparing(str(left), stays=True))


def _take_for_one(study: StudyDirectory, design: Design, arms: list[str], server: Target, listener: Listener) -> Design:
    """Changes the plan if several arms have turned out to be the same given server under different names, and returns
    the changed design. The scope of the verdict then names one server. The trials do not alternate, since the server
    can have only one value of each setting at a time.

    Raises StudyError if the study asks for slices, or if stored trials have alternated already.
    """
    if design.interleaving is not None:
        design = _by_turns(study, design, arms, server, listener)
    elif not any(design.servers[arm].settings for arm in arms):
        what = _one_server(design, arms, server)
        listener(Preparing(f"{what}: the arms can differ only in the settings of their sessions", stays=True))
    if not study.trials():
        scope = scope_of(design, study.plan.max_blocks, arms, statistics=study.plan.statistics)
        study.extend(study.plan.model_copy(update={"scope": scope}))
    return design


def _one_server(design: Design, arms: list[str], server: Target) -> str:
    """Returns a clause which says that the arms are one given server, and whether they name it differently."""
    names = {tuple(design.given[arm].dsn) for arm in arms if arm in design.given}
    several = ", by several names" if len(names) > 1 else ""
    return f"{' and '.join(arms)} are one given server, {server.label}{several}"


def _by_turns(study: StudyDirectory, design: Design, arms: list[str], server: Target, listener: Listener) -> Design:
    """Changes the plan so that the trials do not alternate, and returns the changed design.

    Raises StudyError if the study asks for slices, or if stored trials have alternated already.
    """
    what = _one_server(design, arms, server)
    if design.load.interleave != "auto" or study.trials():
        raise StudyError(
            f"{what}, and their trials cannot alternate; give all of them the same dsn, or begin a study with "
            f"{marks.key('load', 'interleave', 'off')}"
        )
    study.extend(study.plan.model_copy(update={"interleaving": None}))
    listener(Preparing(f"{what}: their trials do not alternate", stays=True))
    return replace(design, interleaving=None)


def _take_data(design: Design, listener: Listener) -> None:
    """Dumps the database if the study names one as its data, and checks that the servers support the data, and that
    this machine can count their instructions if the study asks for it. Raises StudyError and ArmError."""
    check_can_count(design)
    if (dumped := take_dump(design)) is not None:
        listener(Preparing(dumped, stays=True))
    check_abilities(design, Needs.of(design).data)


def _take_certificate(study: StudyDirectory, listener: Listener) -> None:
    """Stores with the study this machine's certificate, the result of a self-test that shows which differences pgtrial
    finds here. If that fails, tells the user why the report will not name a certificate."""
    try:
        take_certificate(study)
    except StoreError as error:
        listener(Preparing(f"the report of this study will name no certificate: {error}", stays=True))


def _rehearsed(
    study: StudyDirectory,
    design: Design,
    arms: dict[str, Arm],
    workspace: Workspace,
    listener: Listener,
    *,
    facts: ArmFacts,
) -> ValuesOfArms:
    """Compares the rows of the arms, rehearses the load if no trial is stored yet, and returns the files from which
    variables of the arms' scripts take values."""
    facts.compare_rows(arms)
    folder = workspace.directory("values")
    spec = design.spec
    answers = AnswersOfScripts(spec, study.plan.seed) if compares_answers(spec) and not facts.are_known else None
    if study.trials() and answers is None:
        return sampled_again(design, arms, study.plan.seed, folder)
    plans = RehearsedPlans() if has_own(design) and design.load.observe else None
    passes_s: list[float] = []
    values = rehearse(
        design,
        arms,
        study.plan.seed,
        folder,
        partial(_report, listener),
        plans=plans,
        answers=answers,
        passes_s=passes_s,
    )
    if answers is not None:
        facts.take_answers(answers.compared())
    if passes_s and not study.trials():
        study.extend(with_rehearsed_time(study.plan, design, passes_s))
    for one in plans.compare(study.plan) if plans is not None else ():
        for sentence in one.other_plans(study.plan.baseline):
            listener(Preparing(sentence, stays=True))
        if (unused := one.never_used(study.plan.baseline)) is not None:
            listener(Preparing(unused, stays=True))
    return values


def _report(listener: Listener, text: str) -> None:
    listener(Preparing(text, stays=text.startswith(("the query", "the client program"))))


def _run_trials(
    study: StudyDirectory,
    design: Design,
    arms: dict[str, Arm],
    maker: LoadMaker,
    listener: Listener,
    *,
    facts: ArmFacts,
    locks: ServerLocks,
    engine_grace_s: float,
    values: ValuesOfArms,
) -> Stop:
    """Runs the trials that are due until there is a reason to stop, and returns this reason."""
    plan = find_lengths(study, design, arms, listener, maker=maker, engine_grace_s=engine_grace_s, values=values)
    readings = Readings(study)
    begun = len(readings.trials)
    listener(StudyBegins(study.path, len(plan.due), begun, plan.end, time_left(plan, readings.trials)))
    noise = _KeptNoise(design, listener)

    while not isinstance(planned := next_step_of(study, readings, stop_asked=stop_is_asked(study.path)), Stop):
        before = readings.trials
        if left := leaving(plan, before, readings.regimes):
            study.extend(plan := _without(left, plan, planned.block, listener))
            continue
        point = plan.load_points[planned.load_point]
        together = study.together(planned)
        others = tuple(beside.arm for beside in together[1:])
        seconds_left = time_left(plan, before)
        listener(TrialBegins(planned, point, len(before) + 1, len(plan.due), plan.end, seconds_left, others))
        locks.renew()
        try:
            ended_now = run_trials(
                study,
                together,
                arms,
                listener,
                while_served=partial(facts.collect, planned.block),
                engine_grace_s=engine_grace_s,
                maker=maker,
                values=values,
            )
        except SlicesTooShort as found:
            listener(Preparing(str(found), stays=True))
            study.extend(plan := found.lengthened(plan))
            continue
        readings.add(ended_now)
        for trial in ended_now:
            listener(TrialEnds(trial))
        trials = readings.trials
        of_block = [due for due in plan.wanted if due.block == planned.block]
        check_start(trials, {due.arm for due in of_block})
        check_alike(trials, of_block)
        check_own_metrics(trials, of_block, plan)
        facts.judge()
        if sum(stored.block == planned.block for stored in trials) == len(of_block):
            grid = readings.grid()
            listener(_block_ends(grid, readings.regimes(), planned.block))
            noise.keep(grid)
    noise.keep(readings.grid(), partial(slices_of, study, readings.trials))
    return planned


class _KeptNoise:
    """Stores the noise of a study in the record of this machine, for the plans of later studies. If that fails, the
    user is told each reason once."""

    def __init__(self, design: Design, listener: Listener) -> None:
        self._design = design
        self._listener = listener
        self._reasons: set[str] = set()

    def keep(self, grid: Grid, slices: Callable[[], Slices] | None = None) -> None:
        """Stores the noise of the study's blocks in the record of this machine. After the end of the study, `slices` is
        a function that returns the slices of its trials; then the noise within trials is stored too."""
        try:
            keep(self._design, grid, slices() if slices is not None else None)
        except StoreError as error:
            if str(error) not in self._reasons:
                reason = f"the noise of this study is not stored for later plans: {error}"
                self._listener(Preparing(reason, stays=True))
            self._reasons.add(str(error))


def _without(arms: list[str], plan: Plan, block: int, listener: Listener) -> Plan:
    """Returns the plan without these arms from the block `block` on, and tells the user."""
    for arm in arms:
        listener(
            Preparing(f"{arm} gets no trials after {plural(block, 'block')}: all its claims are decided", stays=True)
        )
    return plan.model_copy(update={"left": {**plan.left, **dict.fromkeys(arms, block)}})


def _block_ends(grid: Grid, regimes: Regimes, block: int) -> BlockEnds:
    compared = comparisons(grid, regimes)
    look = len(grid.counted) in grid.plan.looks
    at_look = {each.name: each.at_look for each in compared if each.at_look is not None}
    so_far = {each.name: each.so_far for each in compared if each.so_far is not None}
    running = so_far | ({name: estimate.value for name, estimate in at_look.items()} if look else {})
    return BlockEnds(
        block,
        look=look,
        decided=bool(compared) and all(comparison.decided for comparison in compared),
        running=running,
        intervals={
            name: (estimate.low, estimate.high)
            for name, estimate in at_look.items()
            if estimate.low is not None and estimate.high is not None
        },
        precision=precision_so_far(grid),
        metric=grid.plan.primary_metric,
    )


def _end(study: StudyDirectory, stop: Stop, listener: Listener) -> None:
    listener(StudyEnds(stop.reason, blocks=len(Grid(study.plan, study.trials()).counted)))
