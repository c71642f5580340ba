"""Screening studies from plan to verdict: which factors matter, the winning set-up, and what withholds all of it."""

from __future__ import annotations

import math
import re

import pytest

from pgtrial.model.records.facts import Audit, Finding
from pgtrial.model.records.trial import Percentiles
from pgtrial.report.brief import brief
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import measured_spread
from pgtrial.verdict.screening import factor_series, labels, signs_of

from .screens import FACTORS, plan_of, screened, screening_study
from .studies import verdict_of

EFFECTS = {"shared_buffers": 0.2, "jit": -0.1}


@pytest.fixture(scope="module")
def plan():
    return plan_of(screening_study())


@pytest.fixture(scope="module")
def result(plan):
    return verdict_of(plan, screened(plan, EFFECTS))


def test_the_factors_that_matter_are_decided_and_come_first(result):
    verdicts = [(claim.arm, claim.baseline, claim.verdict) for claim in result.primary]
    assert verdicts[:2] == [
        ("shared_buffers=1GB", "shared_buffers=128MB", "better"),
        ("jit=off", "jit=on", "worse"),
    ]
    assert {word for _, _, word in verdicts[2:]} <= {"undecided", "equivalent"}
    for claim, true in zip(result.primary, EFFECTS.values(), strict=False):
        assert claim.difference is not None
        assert claim.difference.low < math.expm1(true) < claim.difference.high
        assert claim.family == 4
    assert result.exit_status == 0


def test_the_winning_set_up_has_the_better_level_of_each_decided_factor(result):
    assert result.screen is not None
    assert result.screen.winner == {"shared_buffers": "1GB", "jit": "on"}


def test_the_claims_on_arms_are_left_out(result):
    assert result.by_load_point == result.levels == result.costs == result.plans == []
    assert result.arms == ["drawn", "complement"]


def test_the_short_result_names_the_decided_factors_and_the_next_step(result, plan):
    short = brief(result, plan)
    assert [re.sub(r"[\d.]+%", "N%", headline.text) for headline in short.headlines] == [
        "shared_buffers=1GB is N% faster than shared_buffers=128MB",
        "jit=off is N% slower than jit=on",
    ]
    texts = {line.label: line.text for line in short.lines()}
    assert "undecided: " in texts["the rest"] or "within the margin" in texts["the rest"]
    assert texts["next"].startswith("pgtrial run DIRECTORY --confirm compares shared_buffers=1GB with the first levels")
    assert len(result.sentences) == 4
    assert "30 blocks of 2 x 5s" in result.sentences[0]


def test_a_study_without_effects_has_no_winner_and_says_how_to_go_on(plan):
    result = verdict_of(plan, screened(plan, {}))
    assert result.screen is not None
    assert result.screen.winner == {}
    assert result.exit_status == 2
    short = brief(result, plan)
    assert [headline.verdict for headline in short.headlines] == ["undecided"]
    assert short.then is not None
    assert short.then.startswith("pgtrial run DIRECTORY --more TIME")


def test_an_ended_study_whose_factors_are_all_decided_does_not_go_on(plan):
    ended = screened(plan, {"jit": 0.4, "work_mem": -0.4, "shared_buffers": 0.3, "wal_compression": 0.3})[:36]
    result = verdict_of(plan, ended)
    assert {claim.verdict for claim in result.primary} == {"better", "worse"}
    then = brief(result, plan).then
    assert then is not None
    assert "--confirm compares" in then


def test_a_level_with_which_trials_fail_loses(plan):
    result = verdict_of(plan, screened(plan, {"jit": 0.1}, failing="work_mem"))
    verdicts = {claim.arm: claim.verdict for claim in result.primary}
    assert verdicts["work_mem=64MB"] == "worse"
    assert result.screen is not None
    assert result.screen.winner["work_mem"] == "4MB"


def test_a_level_with_which_some_trials_fail_is_not_called_equivalent():
    plan = plan_of(screening_study(blocks=27))
    quiet = verdict_of(plan, screened(plan, {}, sd=0.001))
    assert {claim.verdict for claim in quiet.primary} == {"equivalent"}
    result = verdict_of(plan, screened(plan, {}, sd=0.001, failing="work_mem", failing_share=0.25))
    assert not [claim.arm for claim in result.primary if claim.verdict == "equivalent" or claim.within_margin]
    assert {claim.blocks for claim in result.primary} == {27}


def test_failed_trials_in_each_block_leave_nothing_to_say_about_the_other_factors():
    plan = plan_of(screening_study(blocks=12))
    result = verdict_of(plan, screened(plan, {"work_mem": -0.3}, failing="jit"))
    others = [claim for claim in result.primary if claim.arm != "jit=off"]
    assert {claim.verdict for claim in others} == {"undecided"}
    assert [(claim.difference, claim.running) for claim in others] == [(None, None)] * 3


def test_values_that_are_only_bounds_leave_only_the_verdict_against_their_level():
    plan = plan_of(screening_study(blocks=27, verdict={"metrics": ["p99"]}))
    trials = [
        trial.model_copy(update={"measured": with_percentiles(trial.measured)})
        for trial in screened(plan, {"jit": -0.2, "shared_buffers": 0.1}, lost={"jit": 0.3})
    ]
    verdicts = {arm: factor_series(Grid(plan, trials), arm, 4)[1].decision.verdict for arm in labels(plan)}
    assert verdicts.pop("jit=off") == "worse"
    assert set(verdicts.values()) == {"undecided"}


def test_a_level_that_fails_transactions_does_not_win_by_that():
    timeout = {"statement_timeout": ["0", "20ms"]}
    plan = plan_of(screening_study({**FACTORS, **timeout}, blocks=18))
    effects = {"statement_timeout": 0.15, "shared_buffers": 0.2}
    honest = verdict_of(plan, screened(plan, effects))
    assert {claim.arm for claim in honest.primary if claim.verdict == "better"} >= {"statement_timeout=20ms"}
    result = verdict_of(plan, screened(plan, effects, lost={"statement_timeout": 0.08}))
    verdicts = {claim.arm: claim.verdict for claim in result.primary}
    assert verdicts["statement_timeout=20ms"] == "withheld"
    assert verdicts["shared_buffers=1GB"] == "better"
    assert [arm for arm, verdict in verdicts.items() if verdict == "withheld"] == ["statement_timeout=20ms"]
    (reason,) = result.withheld
    assert reason.startswith("8.0% of the transactions with statement_timeout=20ms failed, and none with")
    assert result.screen is not None
    assert "statement_timeout" not in result.screen.winner
    texts = [headline.text for headline in brief(result, plan).headlines]
    assert any("statement_timeout=20ms" in text for text in texts)
    assert any("shared_buffers=1GB is" in text for text in texts)


def test_a_level_that_fails_transactions_may_lose():
    plan = plan_of(screening_study(blocks=18))
    result = verdict_of(plan, screened(plan, {"jit": -0.2}, lost={"jit": 0.08}))
    assert [claim.verdict for claim in result.primary if claim.arm == "jit=off"] == ["worse"]
    assert [finding.severity for finding in result.findings if finding.arms == ["jit=off"]] == ["warning"]


def test_the_first_level_of_a_factor_does_not_win_by_its_failures():
    turned = {"statement_timeout": ["20ms", "0"], "jit": ["on", "off"]}
    plan = plan_of(screening_study(turned, blocks=18))
    trials = screened(plan, {"statement_timeout": -0.15}, lost={"statement_timeout": 0.08})
    exchanged = [trial.model_copy(update={"measured": other_failures(trial.measured)}) for trial in trials]
    verdicts = {claim.arm: claim.verdict for claim in verdict_of(plan, exchanged).primary}
    assert verdicts["statement_timeout=0"] == "withheld"


def other_failures(measured):
    """Returns the measured part with failures if it has none, and otherwise without."""
    return measured.model_copy(update={"failures": {} if measured.failures else {"57014": 900}})


def test_a_level_with_which_more_trials_fail_does_not_win():
    plan = plan_of(screening_study(blocks=40))
    trials = screened(plan, {"work_mem": 0.3}, failing="work_mem", failing_share=0.15)
    result = verdict_of(plan, trials)
    assert {claim.verdict for claim in result.primary if claim.arm == "work_mem=64MB"} <= {"withheld", "undecided"}
    (finding,) = [finding for finding in result.findings if finding.arms == ["work_mem=64MB"]]
    assert "of 40 trials with work_mem=64MB failed, and 0 of 40 with work_mem=4MB" in finding.message


def with_percentiles(measured):
    """Returns the measured part with percentiles in which failed transactions count: p99 falls on one of them."""
    if not measured.failures:
        return measured
    median = measured.latency_us.p50
    return measured.model_copy(
        update={"with_failures_us": Percentiles(p50=median, p90=None, p95=None, p99=None, p999=None)}
    )


def test_a_finding_withholds_the_verdicts_on_all_factors(plan):
    finding = Finding(
        rule="not_durable", severity="withhold", arms=["complement"], message="It is not fair.", cure="Mend it."
    )
    result = verdict_of(plan, screened(plan, EFFECTS), Audit(findings=[finding]))
    assert {claim.verdict for claim in result.primary} == {"withheld"}
    assert result.withheld == ["It is not fair. Mend it."]
    assert result.screen is not None
    assert result.screen.winner == {}
    short = brief(result, plan)
    assert [line.text for line in short.headlines[0].lines if line.label == "because"] == ["It is not fair."]
    assert short.then == "Mend it."


def test_two_factors_that_interact_are_a_hint(plan):
    trials = screened(plan, {}, pairs={("jit", "work_mem"): 0.3})
    screen = verdict_of(plan, trials).screen
    assert screen is not None
    assert [(pair.one.name, pair.other.name) for pair in screen.pairs] == [("jit", "work_mem")]
    assert screen.pairs[0].difference == pytest.approx(math.expm1(0.3), abs=0.15)


def test_only_blocks_up_to_a_look_count_and_a_running_study_gets_the_same_decisions(plan, result):
    trials = screened(plan, EFFECTS)
    grid = Grid(plan, trials)
    decided = {one.arm for one in comparisons(grid) if one.decided}
    assert decided == {claim.arm for claim in result.primary if claim.verdict != "undecided"}
    early = verdict_of(plan, trials[: 2 * (plan.looks[-1] - 1)])
    assert {claim.blocks for claim in early.primary} == {plan.looks[-2]}
    assert comparisons(Grid(plan, trials[:4]))[0].so_far is None


def test_the_noise_of_the_machine_is_that_of_blocks_without_the_factors(plan):
    spread, blocks = measured_spread(Grid(plan, screened(plan, {"shared_buffers": 2.0}, sd=0.02)))
    assert blocks == 30
    assert spread == pytest.approx(0.02 * math.sqrt(2), rel=0.5)
    assert measured_spread(Grid(plan, screened(plan, EFFECTS)[:8])) is None


def test_the_signs_are_those_of_the_drawn_levels(plan):
    signs = signs_of(plan, [0, 1])
    drawn = [trial.levels for trial in plan.trials if trial.arm == "complement"]
    assert [["01"[int(sign > 0)] for sign in row] for row in signs] == [list(levels) for levels in drawn[:2]]
