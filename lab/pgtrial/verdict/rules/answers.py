"""Rules on replays that check whether the arms give the same answers. A fast arm that gives wrong answers is not
better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.replay import IN_FAILED_TRANSACTION, TemplateResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import STATEMENT_LENGTH, grouped, shortened
from pgtrial.verdict.rules.case import Case, Concern, is_frequent, rule

_MISSING = {"42P01": "a table", "42703": "a column", "42883": "a function", "3F000": "a schema"}
"""The SQLSTATEs which say that an object is missing, each with the kind of the object."""

_NOTABLE = 0.001
"""If more than this share of an arm's statements fail because an object is missing, the arm gets no verdict."""


_NAMED = 3
"""The number of statements that a message names."""


_Pair = tuple[TemplateResult, TemplateResult]
"""The results of a template (statements that differ only in values) in two trials of the same block: the trial of the
baseline and the trial of an arm."""


def _by_template(case: Case, arm: str, point: LoadPoint) -> dict[int, list[_Pair]]:
    """Returns the templates (texts of statements that differ only in values) that both the arm and the baseline ran at
    a load point. Each has the pairs of its results in the blocks: the baseline's result and the arm's."""
    trials = [(_templates(base), _templates(other)) for base, other in case.pairs(arm, point)]
    pairs = ((number, (base[number], other[number])) for base, other in trials for number in base.keys() & other.keys())
    return dict(sorted(grouped(pairs).items()))


def _named(template: TemplateResult) -> str:
    return f"template {template.template} ({shortened(template.text, STATEMENT_LENGTH)})"


def _templates(trial: Trial) -> dict[int, TemplateResult]:
    return {template.template: template for template in trial.replay.templates} if trial.replay is not None else {}


@rule("unequal_rows", "statements do not return the same rows", over_trials=True)
def unequal_rows(case: Case) -> Iterator[Concern]:
    """Finds statements that run without errors, but return or change other rows than on the baseline. Rows are compared
    by their number and by a hash of their values. A statement that finds rows in one arm and never in the other
    withholds the verdict, since what finds nothing is answered sooner.

    If each block replays all recorded sessions, and the answers of an arm nevertheless differ from block to block,
    there is no finding, because the answers then depend on the order in which sessions run.
    """
    for arm in case.others:
        for point in case.plan.load_points:
            odd = [
                unequal
                for pairs in _by_template(case, arm, point).values()
                if (unequal := [pair for pair in pairs if _differ(*pair)])
                and is_frequent(len(unequal), len(pairs))
                and not (_is_whole(point) and _varies(pairs))
            ]
            if odd:
                one_sided = [unequal for unequal in odd if _one_finds_none(unequal)]
                base, other = (one_sided or odd)[0][0]
                more = f"; {len(odd) - 1} more templates differ" if len(odd) > 1 else ""
                unlike = (
                    f"the same rows: {base.rows:,} in {case.baseline} and {other.rows:,} in {arm}"
                    if base.rows != other.rows
                    else f"the same values: {base.rows:,} rows in both have the hashes {base.rows_hash} in "
                    f"{case.baseline} and {other.rows_hash} in {arm}"
                )
                yield Concern(
                    [case.baseline, arm],
                    f"Statements of {_named(base)} do not return or change {unlike} (the first such block){more}.",
                    "Find out which answer is right before the faster arm is chosen: run such a statement on both.",
                    "withhold" if one_sided else "warning",
                )


def _differ(base: TemplateResult, other: TemplateResult) -> bool:
    same_work = base.timed == other.timed and not base.failures and not other.failures
    return same_work and _answer(base) != _answer(other)


def _one_finds_none(pairs: Sequence[_Pair]) -> bool:
    """True if, in these blocks, a statement found or changed rows on one of the two arms, and none on the other."""
    rows = [sum(result.rows for result in results) for results in zip(*pairs, strict=True)]
    return 0 in rows and any(rows)


def _answer(result: TemplateResult) -> tuple[int, str | None]:
    """Returns the number and the hash of the rows, by which two answers are compared."""
    return result.rows, result.rows_hash


def _is_whole(point: LoadPoint) -> bool:
    """True if each block replays all recorded sessions, and not a sample."""
    return point.replay is not None and point.replay.sample == 1


def _varies(pairs: Sequence[_Pair]) -> bool:
    """True if one arm by itself gives different answers in trials with the same number of statements."""
    answers = [{(result.statements, _answer(result)) for result in results} for results in zip(*pairs, strict=True)]
    return any(len(answer) > len({statements for statements, _ in answer}) for answer in answers)


@rule("unequal_errors", "statements fail on some arms only", over_trials=True)
def unequal_errors(case: Case) -> Iterator[Concern]:
    """Finds errors that did not occur in the recording and that occur more often on one arm than on the other. It
    reports one concern (problem) for each arm and load point, about the statement with the most errors."""
    for arm in case.others:
        for point in case.plan.load_points:
            pairs = _by_template(case, arm, point).values()
            failing = [failing for of_template in pairs for failing in _failing(case, arm, of_template)]
            if _consequences(case.completed(None, point)):
                failing = [statement for statement in failing if statement.sqlstate != IN_FAILED_TRANSACTION]
            if failing:
                yield _concern(max(failing, key=lambda statement: statement.failed), len(failing), case, point)


@rule("new_errors", "statements fail that did not when they were recorded", over_trials=True)
def new_errors(case: Case) -> Iterator[Concern]:
    """Finds errors that did not occur in the recording and that occur on all arms. It reports one concern (problem)
    for each load point, which names the most frequent statements."""
    arms = [case.baseline, *case.others]
    for point in case.plan.load_points:
        failed = {arm: _failures(case, arm, point) for arm in arms}
        later = _consequences(case.completed(None, point))
        common = set.intersection(*(set(of_arm) for of_arm in failed.values()))
        if later:
            common = {(number, state) for number, state in common if state != IN_FAILED_TRANSACTION}
        totals = {key: sum(of_arm[key] for of_arm in failed.values()) for key in common}
        ranked = sorted(common, key=lambda key: (-totals[key], key))
        if not ranked:
            continue
        templates = {
            number: result for trial in case.completed(None, point) for number, result in _templates(trial).items()
        }
        named = "; ".join(
            f"{_named(templates[number])} with {state}{_missing_there(state)}, {totals[number, state]:,} times"
            f"{_later(later[number, state])}"
            for number, state in ranked[:_NAMED]
        )
        more = f"; and {len(ranked) - _NAMED} more" if len(ranked) > _NAMED else ""
        yield Concern(
            arms,
            f"Statements fail in all arms that did not fail when they were recorded: {named}{more}.",
            "What fails costs less than what is answered: give the replay the data and the schema of the recorded "
            "server ([load.replay] data, setup_sql, extensions).",
        )


def _failures(case: Case, arm: str, point: LoadPoint) -> Counter[tuple[int, str]]:
    """Counts the statements of an arm that failed although they did not fail in the recording, by template (statements
    that differ only in values) and SQLSTATE."""
    failed: Counter[tuple[int, str]] = Counter()
    for trial in case.completed(arm, point):
        for number, result in _templates(trial).items():
            failed.update({(number, state): count for state, count in result.failures.items()})
    return failed


def _consequences(trials: Iterable[Trial]) -> Counter[tuple[int, str]]:
    """Counts the statements that failed because an earlier error had already aborted their transaction. The key is the
    template (statements that differ only in values) and the SQLSTATE of that earlier error."""
    later: Counter[tuple[int, str]] = Counter()
    for trial in trials:
        for number, result in _templates(trial).items():
            later.update({(number, state): count for state, count in result.consequences.items()})
    return later


def _later(count: int) -> str:
    return f" and {count:,} times later in the same transactions ({IN_FAILED_TRANSACTION})" if count else ""


def _missing_there(sqlstate: str) -> str:
    missing = _MISSING.get(sqlstate)
    return f" ({missing} is missing)" if missing is not None else ""


@dataclass(frozen=True)
class _Failing:
    """An SQLSTATE with which the statements of one template (statements that differ only in values) fail on one arm
    more often than on the other."""

    arm: str
    other: str
    template: TemplateResult
    sqlstate: str
    failed: int
    failed_there: int


def _failing(case: Case, arm: str, pairs: Sequence[_Pair]) -> Iterator[_Failing]:
    states = {state for pair in pairs for template in pair for state in template.failures}
    for state in sorted(states):
        counts = [(base.failures.get(state, 0), other.failures.get(state, 0)) for base, other in pairs]
        of_base, of_arm = (sum(numbers) for numbers in zip(*counts, strict=True))
        odd = sum(theirs != ours for theirs, ours in counts)
        if of_base != of_arm and is_frequent(odd, len(pairs)):
            worse, better = (arm, case.baseline) if of_arm > of_base else (case.baseline, arm)
            yield _Failing(worse, better, pairs[0][0], state, max(of_base, of_arm), min(of_base, of_arm))


def _concern(worst: _Failing, number: int, case: Case, point: LoadPoint) -> Concern:
    more = f"; {number - 1} more templates fail on one arm more than on the other" if number > 1 else ""
    later = _consequences(case.completed(worst.arm, point))[worst.template.template, worst.sqlstate]
    missing = _MISSING.get(worst.sqlstate)
    lacking = f"{missing} is missing there" if missing is not None else "errors that were not recorded"
    everything = sum(trial.replay.statements for trial in case.completed(worst.arm) if trial.replay is not None)
    grave = missing is not None and worst.failed / max(1, everything) > _NOTABLE
    return Concern(
        [worst.arm] if worst.arm != case.baseline else [case.baseline, worst.other],
        f"Statements of {_named(worst.template)} fail in {worst.arm} with SQLSTATE {worst.sqlstate}, {lacking}: "
        f"{worst.failed:,} of them{_later(later)}, and {worst.failed_there:,} in {worst.other}{more}.",
        "Give both arms the same data ([load.replay] data) and the same schema (setup_sql, extensions); what fails "
        "costs less than what is answered.",
        "withhold" if grave else "warning",
    )
