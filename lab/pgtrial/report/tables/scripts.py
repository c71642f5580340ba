"""The tables of what each arm runs that other arms do not: its script with the plans of its statements, or the SQL
before each trial."""

from __future__ import annotations

from typing import Any

from pgtrial.model.records.answers import ArmAnswers
from pgtrial.model.study.cut_values import cut
from pgtrial.model.study.spec import have_own_setup
from pgtrial.model.units import plural
from pgtrial.report.data import StudyData
from pgtrial.report.table import Table
from pgtrial.report.tables.plans import side_by_side
from pgtrial.verdict.plans import load_statements, own_statements


def script_tables(data: StudyData) -> list[Table[Any]]:
    """Returns the SQL that arms run before each trial, the scripts of the arms line by line, and the plans of the
    statements that not all arms send. What is the same in all arms is left out."""
    return [*_setups(data), *_scripts(data)]


def _setups(data: StudyData) -> list[Table[Any]]:
    if not have_own_setup(data.spec):
        return []
    shown, _ = cut(data.spec)  # cut, because a statement may contain a password
    texts = [
        [line for sql in shown.resolved(arm).setup_sql for line in sql.strip().splitlines()] or ["nothing"]
        for arm in data.plan.arms
    ]
    caption = "The SQL that each arm runs on its own copy of the data before each trial (setup_sql)."
    return [side_by_side(caption, data.plan.arms, texts)]


def _scripts(data: StudyData) -> list[Table[Any]]:
    of_arms = data.plan.load_points[0].of_arms
    if not of_arms:
        return []
    texts = [data.spec.scripts[name].rstrip().splitlines() for name in of_arms.values()]
    of_job = data.plan.load_points[0].job is not None
    subject = "the job of each arm" if of_job else "a transaction"
    caption = f"The statements of {subject}, line by line: " + "; ".join(
        f"{arm} runs {name}" for arm, name in of_arms.items()
    )
    return [side_by_side(f"{caption}.", list(of_arms), texts), *_plans(data)]


def lead_of_scripts(data: StudyData) -> str:
    """Returns a paragraph that says in what the arms differ, and whether they find the same rows."""
    answers = [sentence for arm in data.plan.others if (sentence := _answer(data, arm)) is not None]
    by_setup = " in the SQL that runs on their data before each trial" if have_own_setup(data.spec) else ""
    point = data.plan.load_points[0]
    by_script = f" in {'their jobs' if point.job is not None else 'what their clients do'}" if point.of_arms else ""
    return " ".join([f"The arms differ{' and'.join(part for part in (by_setup, by_script) if part)}.", *answers])


def _answer(data: StudyData, arm: str) -> str | None:
    """Returns a sentence that says whether an arm and the baseline return the same rows, as pgtrial has compared
    them before the first trial. Returns None if one of their scripts returns no rows, or if the study does not
    compare them."""
    facts = data.facts[arm].facts.get("answers") if arm in data.facts else None
    if facts is None:
        return None
    answers = ArmAnswers.model_validate(facts)
    if answers.obstacle is not None:
        return f"The rows of {arm} could not be compared with those of {data.plan.baseline}."
    what = "as many rows as" if answers.counts_alone else "the same rows as"
    finds = "does not find" if answers.first is not None else "finds"
    return f"In the rehearsal {arm} {finds} {what} {data.plan.baseline} ({plural(answers.draws, 'draw')} of values)."


def _plans(data: StudyData) -> list[Table[Any]]:
    by_arm = {arm: load_statements(trial for trial in data.trials if trial.arm == arm) for arm in data.plan.arms}
    together = own_statements(by_arm)
    several = len(together) > 1
    return [
        side_by_side(
            f"Plans of {f'statement {number}' if several else 'the statement'} of each arm, by EXPLAIN on its server "
            "after the loads of the first block.",
            list(statements),
            [statement.plan or ["EXPLAIN shows no plan"] for statement in statements.values()],
        )
        for number, statements in enumerate(together, 1)
    ]
