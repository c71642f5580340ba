"""Verdicts on metrics that the user has defined: which direction is better, failed trials, and values not known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgtrial.model.records.own_metrics import OwnMetric
from pgtrial.report.brief import brief
from tests.verdict.studies import make_plan, make_trial, verdict_of


def study_of(better, ratio, *, blocks=12, metrics=("rows",), unknown=(), failed=None):
    """Returns a plan and trials whose own metric has 1% of noise, and in the second arm `ratio` times the value."""
    plan = make_plan(("off", "on"), blocks=blocks).model_copy(
        update={
            "metrics": list(metrics),
            "own_metrics": {"rows": OwnMetric(unit="rows", better=better, source="SELECT 1")},
        }
    )
    rng = np.random.default_rng(4)
    trials = []
    for planned in plan.trials:
        value = 1000 * (ratio if planned.arm == "on" else 1) * math.exp(0.01 * rng.standard_normal())
        trial = make_trial(plan, planned, None if planned.arm == failed else 500.0)
        known = {} if planned.index in unknown else {"rows": value}
        trials.append(trial.model_copy(update={"own_metrics": known}))
    return plan, trials


@pytest.mark.parametrize(
    ("better", "ratio", "word", "headline"),
    [
        ("more", 1.2, "better", "higher than that of off"),
        ("more", 0.8, "worse", "lower than that of off"),
        ("less", 1.2, "worse", "higher than that of off"),
        ("less", 0.8, "better", "lower than that of off"),
    ],
)
def test_the_study_says_which_value_is_better(better, ratio, word, headline):
    plan, trials = study_of(better, ratio)
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == word
    assert result.primary[0].difference.value == pytest.approx(ratio - 1, abs=0.01)
    text = brief(result, plan).headlines[0].text
    assert text.startswith("rows of on is ")
    assert text.endswith(headline)


@pytest.mark.parametrize("better", ["more", "less"])
def test_a_failed_trial_is_the_worst_whichever_value_is_better(better):
    assert verdict_of(*study_of(better, 1.0, failed="on")).primary[0].verdict == "worse"
    assert verdict_of(*study_of(better, 1.0, failed="off")).primary[0].verdict == "better"


def test_equal_arms_are_not_called():
    for better in ("more", "less"):
        assert verdict_of(*study_of(better, 1.0)).primary[0].verdict in ("undecided", "equivalent")


def test_it_is_a_second_metric_with_its_unit():
    plan, trials = study_of("less", 0.8, metrics=("tps", "rows"))
    (row,) = [row for row in verdict_of(plan, trials).metrics if not row.primary]
    assert (row.metric, row.unit, row.better, row.verdict) == ("rows", "rows", "less", "better")
    assert row.values["off"] == pytest.approx(1000, rel=0.01)
    (line,) = [text.text for text in brief(verdict_of(plan, trials), plan).headlines[0].lines if "rows" in text.text]
    assert line.startswith("rows 795 rows against 1,002 rows, -20")


def test_a_value_that_is_not_known_withholds_the_claim_on_it():
    plan, trials = study_of("less", 0.8, metrics=("tps", "rows"), unknown=(3,))
    (row,) = [row for row in verdict_of(plan, trials).metrics if not row.primary]
    assert row.verdict == "withheld"
    assert row.withheld.startswith("rows is not known of 1 of 24 trials")
    plan, trials = study_of("less", 0.8, unknown=(3,))
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "withheld"
    assert "metric_does_not_stand" in {finding.rule for finding in result.findings}
