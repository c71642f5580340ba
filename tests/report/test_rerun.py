"""Tests of the agreement of two runs of a study. Two runs of the same truth must not be called different; runs of
different ones must.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from pgtrial.cli import rerun as command
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.report.data import read_measured
from pgtrial.report.rerun import STATUSES, _room, rerun_of
from pgtrial.statistics.p8 import Interval
from pgtrial.statistics.recovery import difference
from pgtrial.store.bundle import write_bundle
from tests.report.conftest import FSYNC, facts, write_study
from tests.report.test_gate import data_of
from tests.verdict.studies import make_plan, noisy, run


def study(ratio: float, *, sd: float = 0.01, seed: int = 1, **more):
    return data_of(noisy({"head": ratio}, sd=sd, seed=seed), **more)


def test_the_difference_of_two_intervals_is_that_of_normal_estimates():
    one, other = Interval(0.9, 1.0, 1.1), Interval(0.1, 0.3, 0.5)
    found = difference(one, other)
    half = np.hypot(0.1, 0.2)
    assert [found.low, found.estimate, found.high] == pytest.approx([0.7 - half, 0.7, 0.7 + half])
    assert difference(one, Interval(-np.inf, 0.0, np.inf)) == Interval(-np.inf, 1.0, np.inf)
    lopsided = difference(Interval(0.99, 1.0, 1.5), Interval(0.0, 0.0, 0.0))
    assert (lopsided.low, lopsided.high) == pytest.approx((0.99, 1.5))


CASES = {
    "the same, better": (study(1.4), study(1.4, seed=2), "agrees", "the verdict is better again"),
    "the same, worse": (study(0.8), study(0.8, seed=2), "agrees", "the verdict is worse again"),
    "the same, exactly": (study(1.0, sd=0.001), study(1.0, sd=0.001, seed=2), "agrees", "less than the margin of 1%"),
    "opposite": (study(1.2), study(0.8), "disagrees", "was better and is worse"),
    "another size": (study(1.4), study(1.2), "disagrees", "further apart than the margin of 1%"),
    "a difference that is gone": (
        study(0.94),
        study(1.0, sd=0.003),
        "disagrees",
        "further apart than the margin of 1%",
    ),
    "a small difference that is gone": (
        study(1.008, sd=0.003),
        study(1.0, sd=0.002, seed=7),
        "disagrees",
        "the intervals exclude the same difference",
    ),
    "a small difference that is not found again": (
        study(1.003, sd=0.002),
        study(1.001, sd=0.002, seed=7),
        "cannot say",
        "the verdict was better and is equivalent",
    ),
    "too noisy": (study(1.02), study(1.0, sd=0.1, seed=5), "cannot say", "exclude neither"),
    "both too noisy": (study(1.0, sd=0.1), study(1.0, sd=0.1, seed=2), "cannot say", "too wide"),
    "too short": (study(1.4), study(1.4, upto=14), "cannot say", "this run has no interval"),
    "withheld": (
        study(1.4),
        study(1.4, audit=Audit(findings=[FSYNC.model_copy(update={"arms": ["base", "head"]})])),
        "cannot say",
        "this run has no interval",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_two_runs_are_compared_by_their_intervals(case):
    then, now, word, why = CASES[case]
    rerun = rerun_of(then, now, "b.tar.xz", "results/s")
    (pair,) = rerun.pairs
    assert (pair.word, rerun.agreement) == (word, word)
    assert why in pair.sentence
    assert (pair.then_verdict, pair.now_verdict) == tuple(data.result.primary[0].verdict for data in (then, now))


def test_two_runs_of_one_truth_seldom_disagree():
    words = []
    for number in range(40):
        pair = [study(1.2, sd=0.03, seed=2 * number + place) for place in (0, 1)]
        words.append(rerun_of(*pair, "b", "s").agreement)
    assert words.count("disagrees") <= 2
    assert words.count("agrees") >= 36


def test_one_comparison_that_disagrees_is_a_rerun_that_disagrees():
    arms = ("base", "head", "other")
    then, now = (data_of(noisy({"head": 1.4, "other": ratio}, sd=0.01), arms) for ratio in (0.8, 1.2))
    rerun = rerun_of(then, now, "b", "s")
    assert [pair.word for pair in rerun.pairs] == ["agrees", "disagrees"]
    assert (rerun.agreement, STATUSES[rerun.agreement]) == ("disagrees", 1)


def write(path, plan, ratio, *, seed=1):
    audit = Audit(findings=[])
    return write_study(path, plan, run(plan, noisy({"off": ratio}, sd=0.01, seed=seed)), audit, "Is off faster?")


def test_a_budget_without_a_verdict_is_answered_with_one_that_holds_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_bundle(write(tmp_path / "first", make_plan(), 1.4), tmp_path / "b.tar.xz", everything=False)
    assert command.rerun_command(tmp_path / "b.tar.xz", budget="1s") == 2
    message = (
        r"pgtrial: the budget is too short for a verdict, so the rerun could not agree with the first result; "
        r"use --budget \d+(s|min) or more\n"
    )
    assert re.fullmatch(message, capsys.readouterr().err)
    assert not list((tmp_path / "results").glob("*"))


@pytest.mark.parametrize(("low", "estimate", "high"), [(0.001, 0.02, 0.05), (0.019, 0.02, 0.03), (-0.04, -0.03, -0.01)])
def test_a_rerun_that_is_long_enough_and_finds_nothing_excludes_the_first_difference(low, estimate, high):
    first = Interval(low, estimate, high)
    for by, excludes in ((0.99, True), (1.01, False)):
        half = by * _room(first)
        gap = difference(Interval(-half, 0.0, half), first)
        assert (gap.high < 0 or gap.low > 0) == excludes


@pytest.mark.parametrize(
    ("seed", "length"),
    [
        (
            26,
            (
                21,
                "the rerun has up to 21 blocks in place of 8, because fewer blocks could not tell the first result "
                "from no difference",
            ),
        ),
        (
            1,
            (
                32,
                "32 blocks are too few to tell the first result from no difference, so this rerun can hardly disagree",
            ),
        ),
    ],
)
def test_a_rerun_is_longer_than_the_first_study_if_that_takes_it_to_disagree(
    tmp_path, monkeypatch, capsys, seed, length
):
    blocks, said = length
    plan = make_plan()
    trials = run(plan, noisy({"off": 1.03}, sd=0.025, seed=seed))
    first = write_study(tmp_path / "first", plan, trials, Audit(findings=[]), "Is off faster?")
    assert read_measured(first).result.primary[0].verdict == "better"
    started = []
    monkeypatch.setattr(command, "start", lambda spec, *_, **__: started.append(spec) or 143)
    assert command.rerun_command(first.path) == 143
    assert started[0].verdict.blocks == blocks
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("ratio", "status"), [(1.4, 0), (0.8, 1)])
def test_the_study_of_a_bundle_runs_again(tmp_path, monkeypatch, capsys, ratio, status):
    monkeypatch.chdir(tmp_path)
    plan = make_plan()
    first = write(tmp_path / "first", plan, 1.4)
    write_bundle(first, tmp_path / "b.tar.xz", everything=False)
    started = []

    def start(spec, results, *, conclude, console, **_):
        started.append(spec)
        conclude(write(tmp_path / "second", plan, ratio, seed=2))
        return 0

    monkeypatch.setattr(command, "start", start)
    monkeypatch.setattr(command, "build_report", lambda study: None)
    assert command.rerun_command(tmp_path / "b.tar.xz", seed=7, json=True) == status
    (spec,) = started
    assert (spec.load, spec.arms) == (first.spec.load, first.spec.arms)
    assert (spec.verdict.blocks, spec.study.seed) == (plan.max_blocks, 7)
    assert f'"agreement": "{["agrees", "disagrees"][status]}"' in capsys.readouterr().out


def test_a_budget_stands_for_the_number_of_blocks(tmp_path, monkeypatch):
    first = write(tmp_path / "first", make_plan(), 1.4)
    started = []
    monkeypatch.setattr(command, "start", lambda spec, *_, **__: started.append(spec) or 143)
    assert command.rerun_command(first.path, budget="10min") == 143
    assert (started[0].verdict.blocks, started[0].verdict.budget, started[0].study.seed) == (None, 600.0, None)


def test_a_study_without_an_interval_is_not_run_again(tmp_path):
    plan = make_plan()
    first = write_study(tmp_path / "s", plan, run(plan, noisy({}), upto=4), Audit(findings=[]), "Is off faster?")
    with pytest.raises(
        StudyError, match=r"has no interval with which a rerun could be compared, since its study was not finished"
    ):
        command.rerun_command(first.path)


def test_facts_of_another_machine_are_named():
    here = facts("head")
    other = here.model_copy(update={"facts": {**here.facts, "cpu": {"model": "another"}}})
    then, now = (replace(study(1.4), facts={"head": of_arm}) for of_arm in (here, other))
    rerun = rerun_of(then, now, "b", "s")
    assert [(fact.key, fact.then, fact.now) for fact in rerun.facts] == [("cpu.model", "AMD EPYC 7B13", "another")]
