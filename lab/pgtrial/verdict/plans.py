"""Compares how PostgreSQL plans the statements of a load on two arms: whether the plans are the same, and in which node
they begin to differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import PlanDifference
from pgtrial.model.records.trial import PLAN_NODE, LoadStatement, Trial

_CHILD = re.compile(r"\s*->\s*")
_RETURNS = re.compile(r"(InitPlan [\d?]+) \(returns [^)]*\)")
_RESULT = re.compile(r"\(InitPlan [\d?]+\)\.col[\d?]+")
"""Matches a reference to the result of an InitPlan as PostgreSQL 17 and later versions print it. Earlier versions print
`$0`, and `(returns $0)` after the name of the InitPlan."""
_OF_BEFORE = re.compile(r"\$\d+")

_KINDS = {"custom": "custom plan", "generic": "generic plan"}


@dataclass(frozen=True)
class PlanPair:
    """A statement with its plans on the baseline and on another arm."""

    base: LoadStatement
    other: LoadStatement

    @property
    def plans(self) -> tuple[Sequence[str], Sequence[str]]:
        """Returns the lines of both plans, as EXPLAIN prints them."""
        return self.base.plan, self.other.plan

    @property
    def kinds_differ(self) -> bool:
        """True if one of the two servers uses a custom plan, which it makes for each execution, and the other a generic
        plan, which it uses for all values."""
        return {self.base.chosen, self.other.chosen} == _KINDS.keys()

    @property
    def is_same(self) -> bool:
        """True if both servers plan and execute the statement in the same way."""
        plans = [[_in_one_form(line) for line in plan] for plan in self.plans]
        return not self.kinds_differ and plans[0] == plans[1]

    @property
    def has_same_shape(self) -> bool:
        """True if both plans have the same nodes with the same kinds of conditions. The texts of conditions are not
        compared, since versions of PostgreSQL write the same condition in different ways."""
        return not self.kinds_differ and shape_of(self.base.plan) == shape_of(self.other.plan)

    def first_difference(self) -> tuple[str, str]:
        """Returns the first pair of nodes that differ. If all nodes are the same, returns the first pair of lines that
        differ."""
        nodes = [[line for line in plan if PLAN_NODE.match(line)] for plan in self.plans]
        pairs = [*zip_longest(*nodes, fillvalue="nothing more"), *zip_longest(*self.plans, fillvalue="nothing more")]
        base, other = next((pair for pair in pairs if _in_one_form(pair[0]) != _in_one_form(pair[1])), ("", ""))
        parts = [_CHILD.sub("", line).strip() for line in (base, other)]
        if self.kinds_differ:
            kinds = [_KINDS[one.chosen or ""] for one in (self.base, self.other)]
            parts = [": ".join(filter(None, pair)) for pair in zip(kinds, parts, strict=True)]
        return parts[0], parts[1]


def _in_one_form(line: str) -> str:
    """Returns a line of EXPLAIN in which the results of InitPlans are replaced by `$`, since versions of PostgreSQL
    name them differently."""
    return _OF_BEFORE.sub("$", _RESULT.sub("$", _RETURNS.sub(r"\1", line)))


_CONDITIONS = re.compile(
    r"\s*((?:Index|Recheck|Hash|Merge|TID|Tid|Run) Cond(?:ition)?|(?:Join |One-Time )?Filter|Order By|Presorted Key): "
)
"""Matches the lines of EXPLAIN that show by which kind of condition a node finds or sorts its rows. `Index Cond` in
place of `Filter`, for example, is another plan."""


def shape_of(plan: Sequence[str]) -> list[str]:
    """Returns what a plan does, in a form that is the same for all versions of PostgreSQL: its nodes, and below each
    node the kinds of its conditions without their texts."""
    shape = []
    for line in plan:
        if PLAN_NODE.match(line):
            shape.append(_in_one_form(line))
        elif (condition := _CONDITIONS.match(line)) is not None:
            shape.append(condition[1])
    return shape


_Nodes = tuple[str, ...]
"""The nodes of a plan, in a form that is the same for all versions of PostgreSQL."""


@dataclass(frozen=True)
class PlanInTrials:
    """A plan that a statement had in some trials of an arm. The plan may vary between trials because ANALYZE draws new
    statistics for each trial."""

    node: str
    """The first node in which this plan differs from the statement's most frequent plan. For the most frequent plan
    itself it is the first node that differs from the second most frequent one."""
    trials: Sequence[Trial]
    """The trials of the arm in which the statement had this plan."""
    of: int
    """The number of the arm's trials in which the plan of the statement is known."""


def varying_plans(trials: Iterable[Trial]) -> dict[str, list[PlanInTrials]]:
    """Returns the statements that had several plans in the trials of one arm at one load point, each with its plans.

    The most frequent plan comes first.
    """
    return {text: _with_distinct_nodes(plans) for text, plans in _trials_by_plan(trials).items() if len(plans) > 1}


def _trials_by_plan(trials: Iterable[Trial]) -> dict[str, dict[_Nodes, list[Trial]]]:
    """Returns, for each statement, its plans in the trials for which ANALYZE drew statistics, each plan with its
    trials."""
    by_plan: dict[str, dict[_Nodes, list[Trial]]] = {}
    for trial in trials:
        for text, nodes in trial.plan_nodes.items():
            by_plan.setdefault(text, {}).setdefault(tuple(map(_in_one_form, nodes)), []).append(trial)
    return by_plan


def _with_distinct_nodes(by_plan: Mapping[_Nodes, Sequence[Trial]]) -> list[PlanInTrials]:
    plans = sorted(by_plan.items(), key=lambda item: (-len(item[1]), item[0]))
    of = sum(len(trials) for _, trials in plans)
    usual, next_one = plans[0][0], plans[1][0]
    others = [next_one, *[usual] * (len(plans) - 1)]
    return [
        PlanInTrials(_first_node(plan, beside), trials, of)
        for (plan, trials), beside in zip(plans, others, strict=True)
    ]


def _first_node(plan: Sequence[str], other: Sequence[str]) -> str:
    """Returns the first node of a plan that differs from the node at the same position of another plan."""
    pairs = zip_longest(plan, other, fillvalue="nothing more")
    return next(_CHILD.sub("", mine).strip() for mine, its in pairs if mine != its)


def load_statements(trials: Iterable[Trial]) -> dict[str, LoadStatement]:
    """Returns the statements of a load, by their text without values."""
    return {text: statement for trial in trials for text, statement in trial.statements.items()}


def plan_pairs(base: Mapping[str, LoadStatement], other: Mapping[str, LoadStatement]) -> dict[str, PlanPair]:
    """Returns the statements that have a plan on both arms, by their text without values."""
    pairs = {text: PlanPair(base[text], statement) for text, statement in other.items() if text in base}
    return {text: pair for text, pair in pairs.items() if all(pair.plans)}


def own_statements(by_arm: Mapping[str, Mapping[str, LoadStatement]]) -> list[dict[str, LoadStatement]]:
    """Returns the statements that not all arms send. The first dictionary has the first such statement of each arm, the
    second one the second such statement of each arm, and so on.

    `by_arm` has the statements of each arm by their text without values.
    """
    common = set.intersection(*(set(of_arm) for of_arm in by_arm.values())) if by_arm else set()
    own = {arm: [one for text, one in of_arm.items() if text not in common] for arm, of_arm in by_arm.items()}
    longest = max(map(len, own.values()), default=0)
    return [{arm: of_arm[index] for arm, of_arm in own.items() if index < len(of_arm)} for index in range(longest)]


def _is_luck(base: Set[_Nodes], other: Set[_Nodes]) -> bool:
    """True if the two arms had some plan in common, but other trials had another plan. It then depends on the random
    sample of ANALYZE which plan a trial gets, and not on the arm."""
    return len(base | other) > 1 and bool(base & other)


def plan_differences(plan: Plan, trials: Sequence[Trial]) -> list[PlanDifference]:
    """Returns the statements whose plans differ between an arm and the baseline. Differences that may come from the
    random sample of ANALYZE are left out, and so are trials of older versions of pgtrial, which did not record plans
    for known parameter values."""
    of_arms = {arm: load_statements(trial for trial in trials if trial.arm == arm) for arm in plan.arms}
    drawn = {arm: _trials_by_plan(trial for trial in trials if trial.arm == arm) for arm in plan.arms}
    differences = []
    for arm in plan.others:
        for text, pair in plan_pairs(of_arms[plan.baseline], of_arms[arm]).items():
            is_luck = _is_luck(drawn[plan.baseline].get(text, {}).keys(), drawn[arm].get(text, {}).keys())
            if not pair.is_same and None not in (pair.base.chosen, pair.other.chosen) and not is_luck:
                at_baseline, at_arm = pair.first_difference()
                differences.append(
                    PlanDifference(
                        statement=text, arm=arm, baseline=plan.baseline, at_baseline=at_baseline, at_arm=at_arm
                    )
                )
    return differences
