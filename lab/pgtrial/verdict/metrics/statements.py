"""The comparisons of the statements of a replay: which statement templates are faster or slower on an arm. A template
stands for all statements that differ only in values.

The mean time of a template's statements is compared within a block, in the same way as speeds. Each look (interim
analysis) chooses the templates from its own blocks, and they share the probability of a wrong verdict that the look
allows, so that all verdicts hold together. The choice treats the two trials of every block alike, and so favours
neither arm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from functools import partial
from statistics import median

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.replay import TemplateResult
from pgtrial.model.records.results import StatementClaim
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.replay import MOST_STATEMENTS
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.series import Question, Series, follow

FEWEST_STATEMENTS = 10
"""A template (statements that differ only in values) is compared only if each completed trial has at least this number
of its statements with a time."""

LEAST_SHARE = 0.01
"""A template (statements that differ only in values) is compared only if it takes at least this share of the time of
all statements. In each block the larger share of the two trials counts, and of these the median over the blocks. If
more than MOST_STATEMENTS templates have such a share, those with the largest shares are compared."""


def statement_claims(grid: Grid, primary: Sequence[Claim]) -> list[StatementClaim]:
    """Returns the comparisons of the statement templates (statements that differ only in values) on each arm with the
    baseline, beginning with the template that has the largest share of the time. The result is empty if the study has
    no replay."""
    if all(point.replay is None for point in grid.plan.load_points):
        return []
    trials = _statements_of_trials(grid)
    return [
        statement
        for claim in primary
        for statement in _Comparison(grid, claim.arm, trials).claims(withheld=claim.verdict == "withheld")
    ]


def series_of_statements(grid: Grid, arm: str) -> list[Series]:
    """Returns the states of the comparisons of the replay's statement templates (statements that differ only in values)
    on an arm. The result is empty if the study has no replay."""
    if all(point.replay is None for point in grid.plan.load_points):
        return []
    return list(_Comparison(grid, arm, _statements_of_trials(grid)).series().values())


def _statements_of_trials(grid: Grid) -> dict[int, _Statements]:
    """Returns the results of the statements in each trial of a replay that did not fail, by the index of the trial."""
    return {
        trial.index: _Statements(trial.replay.templates)
        for trial in grid.trials
        if trial.status != "failed" and trial.replay is not None
    }


class _Statements:
    """The results of the statements in a completed trial of a replay, by template (the text of statements that differ
    only in values)."""

    def __init__(self, templates: Sequence[TemplateResult]):
        self.results = {result.template: result for result in templates}
        self._total_us = math.fsum(result.total_us for result in templates)
        self.enough = {result.template for result in templates if result.timed >= FEWEST_STATEMENTS}

    def share(self, number: int) -> float:
        """Returns the share of the time of all statements that one template took. A template stands for all statements
        that differ only in values."""
        return self.results[number].total_us / self._total_us if self._total_us and number in self.results else 0.0

    def mean_us(self, number: int) -> float | None:
        """Returns the mean time in microseconds of the statements of one template (statements that differ only in
        values); None if none of them has a time."""
        result = self.results.get(number)
        return result.time_us.mean if result is not None and result.time_us is not None else None


class _Comparison:
    """The comparison of an arm's statements in a replay with those of the baseline, template by template."""

    def __init__(self, grid: Grid, arm: str, trials: dict[int, _Statements]):
        self._grid, self._arm, self._trials = grid, arm, trials
        self._arms = (arm, grid.plan.baseline)
        self._values: dict[int, dict[int, float]] = {}

    def series(self) -> dict[int, Series]:
        """Returns the state of the comparison of each chosen template (statements that differ only in values), by the
        number of the template."""
        return follow(self._grid, self._choice)

    def claims(self, *, withheld: bool) -> list[StatementClaim]:
        """Returns the comparison of each chosen template (statements that differ only in values) between the arm and
        the baseline. The result is empty as long as one of the two arms has no completed trial."""
        trials = {name: self._completed(self._grid.of(name)) for name in self._arms}
        if not all(trials.values()):
            return []
        claims = []
        for number, series in self.series().items():
            results = {
                name: [trial.results[number] for trial in trials[name] if number in trial.results]
                for name in self._arms
            }
            both = [result for of_arm in results.values() for result in of_arm]
            claims.append(
                StatementClaim(
                    template=number,
                    text=both[0].text,
                    arm=self._arm,
                    baseline=self._grid.plan.baseline,
                    statements=round(median(result.statements for result in both)),
                    share={name: median(trial.share(number) for trial in trials[name]) for name in self._arms},
                    mean_us={
                        name: median(trial.mean_us(number) or 0.0 for trial in trials[name]) for name in self._arms
                    },
                    verdict=series.verdict(withheld=withheld),
                    within_margin=series.within_margin,
                    difference=series.difference,
                    claims=series.asked.family,
                    blocks=len(series.used),
                )
            )
        return claims

    def _completed(self, trials: Sequence[Trial]) -> list[_Statements]:
        return [self._trials[trial.index] for trial in trials if trial.index in self._trials]

    def _choice(self, blocks: Set[int], _decided: Set[int]) -> dict[int, Question]:
        """Returns the comparisons that a look (interim analysis) reads: those of the templates (statements that differ
        only in values) that take a notable share of the time in its blocks, beginning with the largest share."""
        pairs = [self._completed([trial for trial in self._pair(block) if trial is not None]) for block in blocks]
        pairs = [pair for pair in pairs if pair]
        if not pairs:
            return {}
        enough = set.intersection(*(trial.enough for pair in pairs for trial in pair))
        shares = {number: median(max(trial.share(number) for trial in pair) for pair in pairs) for number in enough}
        notable = sorted(number for number, share in shares.items() if share >= LEAST_SHARE)
        family = sorted(notable, key=lambda number: -shares[number])[:MOST_STATEMENTS]
        sharing = self._grid.plan.sharing(len(family), in_each_comparison=True)
        return {number: Question(self._of_units(number), sharing, self._grid.plan.margin) for number in family}

    def _pair(self, block: int) -> tuple[Trial | None, Trial | None]:
        return self._grid.pair(block, 0, self._arm)

    def _of_units(self, number: int) -> dict[int, float]:
        """Returns by how much the statements of one template (statements that differ only in values) are faster on the
        arm, for each block or, if each arm has several servers, for each pair of servers. The result is computed once
        for each template."""
        if number not in self._values:
            # a failed trial gets the worst rank; a pair in which both trials failed does not count
            metric = Metric(f"template {number}", "us", partial(self._mean_us, number), "less", missing="worst")
            gains = self._grid.gains(self._arm, [0], metric)
            self._values[number] = self._grid.units.means(gains, self._grid.counted)
        return self._values[number]

    def _mean_us(self, number: int, trial: Trial) -> float | None:
        statements = self._trials.get(trial.index)
        return statements.mean_us(number) or None if statements is not None else None
