"""The rehearsal of a study: before the first trial, everything in the load that the user has written runs once on every
arm.

On a server that pgtrial makes, it runs on a copy of the data, which is removed afterwards. A given server only parses
the statements, up to the first statement that creates objects, since later statements may need these objects. It
executes a script only to compare the rows of the arms (`same_answers`), and only if the script does not change data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from pgtrial.conduct.drawn_values import DrawnValues, ValuesOfArms
from pgtrial.conduct.preparation.kinds import rehearsal_of
from pgtrial.conduct.preparation.own_scripts import written_scripts
from pgtrial.conduct.preparation.rehearsal_failures import RehearsalFailure, RehearsalFailures
from pgtrial.conduct.preparation.rehearsed_metrics import rehearsed_metrics
from pgtrial.conduct.preparation.rehearsed_plans import RehearsedPlans
from pgtrial.conduct.preparation.same_answers import AnswersOfScripts
from pgtrial.conduct.preparation.stage import Report, Stage
from pgtrial.conduct.trial.load_statements import are_listed, listed_statements
from pgtrial.loads.data.kinds import data_of
from pgtrial.model.errors import StudyError, TrialError, one_line
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import Arm


def rehearse(
    design: Design,
    arms: Mapping[str, Arm],
    seed: int,
    values_folder: Path,
    report: Report,
    *,
    plans: RehearsedPlans | None = None,
    answers: AnswersOfScripts | None = None,
    passes_s: list[float] | None = None,
) -> ValuesOfArms:
    """Rehearses the load on every arm. Returns the files with the values that variables of scripts take, by arm and
    variable.

    Values that arms have in common are drawn from the data of the first arm, and pgtrial checks that the data of the
    other arms have them.

    - `plans` collects the plans of the statements, also those of pgbench's built-in scripts.
    - `answers` collects the rows that scripts of the arms return, with a shared server before any script changes data.
    - `passes_s` gets, for each arm, the time in seconds that all queries of a suite took.

    Raises StudyError and ArmError.
    """
    spec, shared = design.spec, design.shares_server
    values = DrawnValues(spec, seed, values_folder)
    if not has_own(design) and plans is None:
        return values.files
    failures = RehearsalFailures(list(arms))
    points = list({(point.workload, point.scale): point for point in design.load_points}.values())
    for data in dict.fromkeys(data_of(spec, point) for point in points):
        own_points = [point for point in points if data_of(spec, point) == data]
        with written_scripts(spec) as folder, ExitStack() as of_all:
            stages: list[tuple[Stage, RehearsalFailure | None]] = []
            for arm in arms.values():
                report(f"{arm.name}: rehearsing the load")
                with ExitStack() as of_arm, as_study_error(arm.name):
                    own = data_of(spec, own_points[0], arm.name)
                    target = (of_all if shared else of_arm).enter_context(arm.rehearsal(own, folder / "log"))
                    values.draw_or_check(arm, own, target)
                    stage = Stage(spec, arm, target, own, folder, seed, values.files[arm.name], report, passes_s)
                    stage.set_up()
                    refused = stage.answer(own_points[0], answers) if answers is not None else None
                    stages.append((stage, refused))
                    if not shared:
                        failures.add(arm.name, _act(*stages.pop(), own_points, plans, several=len(points) > 1))
            for stage, refused in stages:
                failures.add(stage.arm.name, _act(stage, refused, own_points, plans, several=len(points) > 1))
    failures.complain()
    return values.files


def _act(
    stage: Stage,
    refused: RehearsalFailure | None,
    points: Sequence[LoadPoint],
    plans: RehearsedPlans | None,
    *,
    several: bool,
) -> list[RehearsalFailure]:
    """Rehearses all load points with the same data on one arm. Returns the failures. Raises StudyError.

    `refused` is a failure that occurred when pgtrial collected the answers of the arm's script. It is returned if
    nothing else fails.
    """
    with as_study_error(stage.arm.name):
        own = [point.for_arm(stage.arm.name) for point in points]
        failed = [failure for point in own for failure in rehearsal_of(point).rehearsed(stage, point)]
        failed += rehearsed_metrics(stage)
        if plans is not None:
            _explain(stage, own, plans, several=several)
        return failed or ([refused] if refused is not None else [])


def sampled_again(design: Design, arms: Mapping[str, Arm], seed: int, folder: Path) -> ValuesOfArms:
    """Draws the values of variables again for a study that continues, and returns their files by arm and variable. The
    values are the same as before. Raises the same errors as `rehearse`."""
    spec = design.spec
    values = DrawnValues(spec, seed, folder)
    for arm in arms.values():
        if not values.draws_on(arm.name):
            values.share(arm.name)
            continue
        data = data_of(spec, design.load_points[0], arm.name)
        with written_scripts(spec) as logs, as_study_error(arm.name), arm.rehearsal(data, logs / "log") as target:
            values.draw(arm.name, target)
    return values.files


def has_own(design: Design) -> bool:
    """True if the user has written a part of the load, such as a script, so that it has to be rehearsed. The built-in
    scripts of pgbench and the tests of sysbench need no rehearsal."""
    load = design.load
    if not load.kind.is_rehearsed:
        return False
    has_values = load.values or any(keys.values for keys in design.spec.arms.values())
    own = bool(design.spec.scripts or load.data or has_values or load.kind.starts_programs(load))
    return own or bool(design.spec.metrics) or any(server.setup_sql for server in design.servers.values())


@contextmanager
def as_study_error(arm: str) -> Iterator[None]:
    """Turns a TrialError or psycopg.OperationalError within the context into a StudyError that names the arm."""
    try:
        yield
    except TrialError as error:
        raise StudyError(f"arms.{arm}: {error}") from None
    except psycopg.OperationalError as error:
        raise StudyError(f"arms.{arm}: the server did not answer: {one_line(error)}") from None


def _explain(stage: Stage, points: Sequence[LoadPoint], plans: RehearsedPlans, *, several: bool) -> None:
    """Explains the statements of the load on an arm, and adds their plans to `plans`. Raises
    psycopg.OperationalError."""
    if isinstance(stage.arm.setup, Given) and not stage.has_all():
        return
    with stage.target.connect_as_load() as session:
        for point in points:
            listed = None
            if are_listed(point):
                listed = listed_statements(point, stage.script(point), stage.values, stage.seed)
            plans.take(stage.arm.name, session, point, listed, several=several)
