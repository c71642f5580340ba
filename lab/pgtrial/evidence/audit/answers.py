"""Rules on replays: whether the arms give the same answers, since a fast wrong answer is no better one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgtrial.evidence.audit.case import Case, Concern, is_frequent, rule
from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.records.replay import TemplateResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import shortened

_MISSING = {"42P01": "a table", "42703": "a column", "42883": "a function", "3F000": "a schema"}
"""SQLSTATEs of what is missing, and what it is."""

_NOTABLE = 0.001
"""Share of an arm's statements that fail because something is missing, above which there is no verdict on it."""

_SHOWN = 60
"""Characters of a statement in a message."""


@dataclass(frozen=True)
class _Pair:
    """A template in two trials of one block: of the baseline, and of an arm."""

    base: TemplateResult
    own: TemplateResult

    @property
    def name(self) -> str:
        return f"template {self.base.template} ({shortened(self.base.text, _SHOWN)})"


def _by_template(case: Case, arm: str, point: LoadPoint) -> dict[int, list[_Pair]]:
    """The templates of both arms, each with its pairs."""
    found: dict[int, list[_Pair]] = {}
    for base, own in case.pairs(arm, point):
        theirs, ours = _templates(base), _templates(own)
        for number in theirs.keys() & ours.keys():
            found.setdefault(number, []).append(_Pair(theirs[number], ours[number]))
    return dict(sorted(found.items()))


def _templates(trial: Trial) -> dict[int, TemplateResult]:
    return {each.template: each for each in trial.replay.templates} if trial.replay is not None else {}


@rule("unequal_rows", "statements do not return the same rows", over_trials=True)
def unequal_rows(case: Case) -> Iterator[Concern]:
    """Statements without errors that return or change another number of rows than on the baseline, or other values.

    Where the answers of one arm differ from block to block it is no finding: the order of sessions decides.
    """
    for arm in case.others:
        for point in case.plan.load_points:
            odd = {
                number: unequal[0]
                for number, pairs in _by_template(case, arm, point).items()
                if (unequal := [pair for pair in pairs if _differ(pair)])
                and is_frequent(len(unequal), len(pairs))
                and not (_is_whole(point) and _varies(pairs))
            }
            if odd:
                first = next(iter(odd.values()))
                more = f"; {len(odd) - 1} more templates differ" if len(odd) > 1 else ""
                unlike = (
                    f"the same rows: {first.base.rows:,} in {case.baseline} and {first.own.rows:,} in {arm}"
                    if first.base.rows != first.own.rows
                    else f"the same values: {first.base.rows:,} rows in both have the hashes {first.base.rows_hash} in "
                    f"{case.baseline} and {first.own.rows_hash} in {arm}"
                )
                yield Concern(
                    [case.baseline, arm],
                    f"Statements of {first.name} do not return or change {unlike} (the first such block){more}.",
                    "Find out which answer is right before the faster arm is chosen: run such a statement on both.",
                )


def _differ(pair: _Pair) -> bool:
    same_work = pair.base.timed == pair.own.timed and not pair.base.failures and not pair.own.failures
    return same_work and _answer(pair.base) != _answer(pair.own)


def _answer(result: TemplateResult) -> tuple[int, str | None]:
    """What is compared of the rows."""
    return result.rows, result.rows_hash


def _is_whole(point: LoadPoint) -> bool:
    """Whether each block replays the same sessions."""
    return point.replay is not None and point.replay.sample == 1


def _varies(pairs: list[_Pair]) -> bool:
    """Whether one arm alone has different answers to the same number of statements."""
    of_base = {(pair.base.statements, _answer(pair.base)) for pair in pairs}
    of_own = {(pair.own.statements, _answer(pair.own)) for pair in pairs}
    return any(len(each) > len({statements for statements, _ in each}) for each in (of_base, of_own))


@rule("unequal_errors", "statements fail on some arms only", over_trials=True)
def unequal_errors(case: Case) -> Iterator[Concern]:
    """Errors that were not recorded, and that one arm has more of: one concern for each arm, about the commonest."""
    for arm in case.others:
        for point in case.plan.load_points:
            found = [
                each for number, pairs in _by_template(case, arm, point).items() for each in _failing(case, arm, pairs)
            ]
            if found:
                yield _told(max(found, key=lambda each: each.failed), len(found), case)


@dataclass(frozen=True)
class _Failing:
    """An SQLSTATE with which statements of a template fail on one arm, and less or not at all on the other."""

    arm: str
    other: str
    name: str
    sqlstate: str
    failed: int
    failed_there: int
    share: float
    """Of all statements of the arm."""


def _failing(case: Case, arm: str, pairs: list[_Pair]) -> Iterator[_Failing]:
    states = {state for pair in pairs for each in (pair.base, pair.own) for state in each.failures}
    for state in sorted(states):
        base, own = (
            sum(each.failures.get(state, 0) for each in results)
            for results in ([pair.base for pair in pairs], [pair.own for pair in pairs])
        )
        odd = [pair for pair in pairs if pair.base.failures.get(state, 0) != pair.own.failures.get(state, 0)]
        if base != own and is_frequent(len(odd), len(pairs)):
            worse, other = (arm, case.baseline) if own > base else (case.baseline, arm)
            everything = sum(t.replay.statements for t in case.completed(worse) if t.replay is not None)
            failed = max(base, own)
            yield _Failing(worse, other, pairs[0].name, state, failed, min(base, own), failed / max(1, everything))


def _told(worst: _Failing, number: int, case: Case) -> Concern:
    more = f"; {number - 1} more templates fail on one arm more than on the other" if number > 1 else ""
    missing = _MISSING.get(worst.sqlstate)
    lacking = f"{missing} is missing there" if missing is not None else "errors that were not recorded"
    return Concern(
        [worst.arm] if worst.arm != case.baseline else [case.baseline, worst.other],
        f"Statements of {worst.name} fail in {worst.arm} with SQLSTATE {worst.sqlstate}, {lacking}: {worst.failed:,} "
        f"of them, and {worst.failed_there:,} in {worst.other}{more}.",
        "Give both arms the same data ([load.replay] data) and the same schema (setup_sql, extensions); what fails "
        "costs less than what is answered.",
        "withhold" if missing is not None and worst.share > _NOTABLE else "warning",
    )
