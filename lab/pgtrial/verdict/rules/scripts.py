"""Rules on arms that have a script of their own, or SQL of their own that runs before the load. They check whether the
statements of all arms find the same rows."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model.records.answers import ArmAnswers
from pgtrial.model.units import plural
from pgtrial.verdict.rules.case import Case, Concern, rule

_CURE = (
    'Correct {}; if other answers are meant, write [load] answers = "may differ", and the verdict is about speed alone.'
)


@rule("other_answers", "the arms do not find the same rows")
def other_answers(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm whose statements found other rows than those of the baseline when
    pgtrial tried them before the first trial."""
    has_scripts = bool(case.plan.load_points[0].of_arms)
    for arm in case.arms:
        facts = case.facts[arm].facts.get("answers")
        if facts is None:
            continue
        answers = ArmAnswers.model_validate(facts)
        if answers.obstacle is not None:
            yield Concern(
                [case.baseline, arm],
                f"The rows that {case.baseline} and {arm} find were not compared: {answers.obstacle}.",
                'Compare them by hand; [load] answers = "may differ" says that this was done or is not needed.',
            )
        elif answers.first is not None:
            yield Concern(
                [case.baseline, arm],
                _message(case.baseline, arm, answers, has_scripts=has_scripts),
                _CURE.format("the script that finds the wrong rows" if has_scripts else "the setup_sql of the arms"),
                "withhold",
            )
        elif answers.counts_alone:
            yield Concern(
                [case.baseline, arm],
                f"Of the rows that {case.baseline} and {arm} find only the numbers were compared, since their values "
                "change from one execution to the next.",
                "Nothing to do, if the statements have now(), random() or the like, or a LIMIT without ORDER BY.",
                "info",
            )


def _message(baseline: str, arm: str, answers: ArmAnswers, *, has_scripts: bool) -> str:
    first = answers.first
    assert first is not None
    counts = f"{baseline} finds {plural(first.baseline_rows, 'row')} and {arm} {first.rows:,}"
    if first.baseline_rows == first.rows:
        counts = f"both find {plural(first.rows, 'row')}, which are not the same"
    of_values = f"with {first.values}, " if first.values else ""
    which = " by the last statement" if first.statement is None else ""
    if first.statement is not None and first.statement > 1:
        which = f" by statement {first.statement} of those that return rows"
    script = f"in {first.script}, " if first.script is not None else ""
    often = f" ({answers.other} of {plural(answers.draws, 'draw')} of values differ)" if first.values else ""
    who = f"The scripts of {baseline} and {arm}" if has_scripts else f"{baseline} and {arm}"
    return f"{who} do not find the same rows: {script}{of_values}{counts}{which}{often}."
