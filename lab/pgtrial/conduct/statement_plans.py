"""Records the plans of statements that are slower on one arm of a replay: for each of them, EXPLAIN of one recorded
statement on both arms, on fresh copies of the data.

EXPLAIN does not execute the statement. Each statement is explained in a read-only transaction of its own, which is
rolled back, and the copy is removed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql

from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.settle import run_setup_sql
from pgtrial.evidence.observe.plans import explain
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.engine import Example, recorded_examples
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import Session
from pgtrial.model.errors import ArmError, StoreError, StudyError, TrialError, one_line
from pgtrial.model.records.replay import StatementPlan, StatementPlans
from pgtrial.servers.arm import Arm
from pgtrial.store.directory import StudyDirectory, committed_seconds
from pgtrial.store.replay_files import capture_of
from pgtrial.store.temporary import temporary_folder
from pgtrial.verdict.decide import decide
from pgtrial.verdict.rules.case import Case


def missing_plans(study: StudyDirectory) -> dict[str, list[int]]:
    """Returns, for each arm, the numbers of the statement templates whose plans on this arm are still missing. If a
    statement is slower on an arm than on the baseline, its plans on both are needed."""
    if all(point.replay is None for point in study.plan.load_points):
        return {}
    trials = study.trials()
    result = decide(
        Case(study.plan, study.facts(), trials=trials, audit=study.audit(), seconds=committed_seconds(study, trials))
    )
    stored = study.statement_plans()
    known = {(plan.arm, plan.template) for plan in stored.plans} if stored is not None else set()
    wanted: dict[str, list[int]] = {}
    for claim in (statement for statement in result.statements if statement.is_slower):
        for arm in (claim.baseline, claim.arm):
            if (arm, claim.template) not in known and claim.template not in wanted.get(arm, []):
                wanted.setdefault(arm, []).append(claim.template)
    return wanted


def take_plans(study: StudyDirectory, blocks: int, arms: Mapping[str, Arm], listener: Listener) -> None:
    """Records the plans that are still missing, and stores them with the earlier plans. Failures are reported to the
    listener and not raised."""
    wanted = missing_plans(study)
    if not wanted:
        return
    try:
        every = sorted({template for templates in wanted.values() for template in templates})
        examples = recorded_examples(capture_of(study.spec.load.workload[0]), every)
        stored = study.statement_plans()
        plans = list(stored.plans) if stored is not None else []
        for arm, templates in wanted.items():
            listener(Preparing(f"{arm}: explaining the statements that got slower"))
            plans += _of_arm(
                study, arms[arm], {template: examples[template] for template in templates if template in examples}
            )
        study.write_statement_plans(StatementPlans(blocks=blocks, plans=plans))
    except (ArmError, StoreError, StudyError, TrialError, psycopg.Error) as error:
        listener(Preparing(f"no plans of the statements that got slower: {one_line(error)}", stays=True))


def _of_arm(study: StudyDirectory, arm: Arm, examples: Mapping[int, Example]) -> list[StatementPlan]:
    planned = next(trial for trial in study.plan.trials if trial.arm == arm.name)
    data = data_of(study.spec, study.plan.load_points[planned.load_point], arm.name)
    with (
        temporary_folder() as logs,
        arm.serve(data, logs / "log", {}, planned.drawn) as target,
        target.connect_as_load() as session,
    ):
        run_setup_sql(target, arm.name, arm.setup)
        return [_plan(session, arm.name, template, example) for template, example in examples.items()]


def _plan(session: Session, arm: str, template: int, example: Example) -> StatementPlan:
    """Returns the plan of a recorded statement with its recorded parameter values."""
    values = [sql.Literal(value).as_string(session) for value in example.values]
    try:
        return StatementPlan(arm=arm, template=template, plan=explain(session, example.text, values))
    except psycopg.Error as error:
        words = message_of(error)
        return StatementPlan(arm=arm, template=template, plan=[], refusal=f"EXPLAIN rejects it: {words}")
