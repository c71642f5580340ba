"""Trials that measured something else than the arm cost the verdict of their load point."""

from __future__ import annotations

import pytest

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import ClientWarning, Phase, Trial
from pgtrial.statistics import p8
from tests.verdict.studies import verdict_of

from .studies import make_plan, noisy, run

POINTS = [LoadPoint(workload="select-only", scale=10, clients=clients, protocol="prepared") for clients in (8, 32)]
WARNING = ClientWarning(kind="client-busy", message="The busiest load thread used 93% of a CPU.")


def warned(trials: list[Trial], arm: str, point: LoadPoint, count: int) -> list[Trial]:
    """Returns the trials with a warning added to the first `count` ones of an arm at a load point."""
    chosen = [trial.index for trial in trials if (trial.arm, trial.load_point) == (arm, point)][:count]
    return [
        trial.model_copy(update={"client": trial.client.model_copy(update={"warnings": [WARNING]})})
        if trial.index in chosen and trial.client
        else trial
        for trial in trials
    ]


def study(count: int, arm: str = "off", **plan: bool) -> tuple[Plan, list[Trial]]:
    planned = make_plan(("on", "off", "local"), blocks=12, points=POINTS).model_copy(update=plan)
    return planned, warned(run(planned, noisy({"off": 1.4, "local": 1.4})), arm, POINTS[1], count)


def test_a_busy_client_withholds_its_load_point_and_the_mean_and_no_other_arm():
    result = verdict_of(*study(2))
    assert [(claim.arm, claim.verdict) for claim in result.primary] == [("off", "withheld"), ("local", "better")]
    assert [claim.verdict for claim in result.claims("off")] == ["better", "withheld"]
    assert [claim.verdict for claim in result.claims("local")] == ["better", "better"]
    assert result.exit_status == 2


def test_the_sentence_says_where_and_why_and_what_to_do():
    sentence = verdict_of(*study(2)).sentences[0]
    assert sentence.startswith("No verdict on off against on: The client itself was a limit of off (2 of 12 ")
    assert "trials of off at select-only, scale 10, 32 clients)" in sentence
    assert "The busiest load thread used 93% of a CPU." in sentence
    assert "[load] threads" in sentence
    assert "fewer clients" in sentence
    assert "another machine" in sentence


def test_a_busy_client_of_the_baseline_withholds_every_comparison():
    result = verdict_of(*study(12, arm="on"))
    assert [claim.verdict for claim in result.primary] == ["withheld", "withheld"]
    assert len(result.withheld) == 1


def test_several_arms_and_load_points_are_told_once():
    plan, trials = study(12, arm="on")
    for arm, point in (("off", POINTS[0]), ("off", POINTS[1])):
        trials = warned(trials, arm, point, 12)
    result = verdict_of(plan, trials)
    assert [claim.verdict for claim in result.claims("local")] == ["better", "withheld"]
    assert [claim.verdict for claim in result.claims("off")] == ["withheld", "withheld"]
    assert result.sentences[0].count("The client itself was a limit of on and off") == 1
    assert "and others at 1 more load point)" in result.sentences[0]


def test_one_trial_in_eight_is_tolerated():
    result = verdict_of(*study(1))
    assert [claim.verdict for claim in result.primary] == ["better", "better"]
    assert result.findings == []


@pytest.mark.parametrize("count", [2, 12])
def test_a_study_that_allows_a_busy_client_has_its_verdict_with_a_warning_above(count):
    result = verdict_of(*study(count, allow_busy_client=True))
    assert [claim.verdict for claim in result.primary] == ["better", "better"]
    [finding] = result.findings
    assert (finding.rule, finding.severity, finding.arms) == ("busy_client", "warning", ["off"])


def test_a_client_behind_its_schedule_is_told_to_use_more_threads_and_not_more_clients_since_one_was_free():
    late = ClientWarning(kind="schedule-lag", message="The p99 of the schedule lag is above 10% of the median latency.")
    plan, trials = study(12)
    trials = [
        trial.model_copy(update={"client": trial.client.model_copy(update={"warnings": [late]})})
        if trial.client and trial.client.warnings
        else trial
        for trial in trials
    ]
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "withheld"
    [finding] = result.findings
    assert finding.rule == "schedule_lag"
    assert "more threads" in finding.cure
    assert "clients" not in finding.cure
    assert verdict_of(plan.model_copy(update={"allow_busy_client": True}), trials).primary[0].verdict == "better"


LATE = ClientWarning(
    kind="schedule-lag",
    message="1 of 100 transactions began 1.030 ms late or later although a client was free, which is more than 10% of "
    "the median latency of 0.248 ms; to find out whether the load generator is the cause, repeat the run with the load "
    "generator on another machine or on processors of its own",
)


def late_starts(metrics: list[str]) -> StudyResult:
    """Returns the result of a study with a rate whose engine started transactions 1.03 ms late. The response times have
    a p50 near 2 ms and a p95 near 4 ms.
    """
    plan, trials = at_rate()
    slow = [
        trial.model_copy(
            update={
                "client": trial.client and trial.client.model_copy(update={"warnings": [LATE]}),
                "measured": trial.measured
                and trial.measured.model_copy(
                    update={
                        "latency_us": trial.measured.latency_us
                        and trial.measured.latency_us.model_copy(update={"p50": 248.0, "p95": 12_000.0})
                    }
                ),
            }
        )
        for trial in trials
    ]
    return verdict_of(plan.model_copy(update={"metrics": metrics}), slow, seconds={})


def test_late_starts_are_judged_by_the_time_that_is_compared_and_not_by_the_median():
    assert late_starts(["p95"]).findings == []
    [finding] = late_starts(["p50"]).findings
    assert (finding.rule, finding.severity) == ("schedule_lag", "withhold")


def test_a_second_metric_that_late_starts_concern_has_a_warning_and_leaves_the_verdict():
    result = late_starts(["p95", "p50"])
    [finding] = result.findings
    assert (finding.rule, finding.severity) == ("schedule_lag", "warning")
    assert finding.message.startswith("p50 of on and off includes late starts (12 of 12 trials of on at ")
    assert result.primary[0].verdict != "withheld"


def test_trials_without_a_word_of_the_engine_carry_no_warning():
    plan, trials = study(12)
    silent = [trial.model_copy(update={"client": None}) for trial in trials]
    assert verdict_of(plan, silent).findings == []


RATE = POINTS[0].model_copy(update={"rate": 500.0})


def at_rate(faster: float = 1.25, served: dict[str, float] | None = None) -> tuple[Plan, list[Trial]]:
    """Returns twelve blocks at 500/s, in which the arm `off` responds `faster` times as fast. `served` has the tps by
    arm.
    """
    plan = make_plan(blocks=12, points=[RATE])
    responses = noisy({"off": 1 / faster}, base=2000.0)
    planned = {trial.index: trial for trial in plan.trials}
    return plan, [
        trial.model_copy(update={"measured": _answering(trial, responses(planned[trial.index]) or 0.0)})
        for trial in run(plan, lambda trial: (served or {}).get(trial.arm, 500.0))
    ]


def _answering(trial: Trial, mean_us: float) -> Phase | None:
    measured = trial.measured
    assert measured is not None
    assert measured.latency_us is not None
    return measured.model_copy(update={"latency_us": measured.latency_us.model_copy(update={"mean": mean_us})})


def test_at_a_rate_the_verdict_is_about_the_mean_response_time():
    result = verdict_of(*at_rate(), seconds={})
    [claim] = result.primary
    assert claim.verdict == "better"
    assert claim.difference is not None
    assert claim.difference.value == pytest.approx(0.25, abs=0.03)
    assert claim.totals is None
    assert "off is 2" in result.sentences[0]
    assert "(mean response time, select-only, scale 10, 8 clients, 500/s)" in result.sentences[0]
    assert "regime: not checked" in result.sentences[0]


def test_a_slower_response_at_the_same_rate_is_worse():
    assert verdict_of(*at_rate(0.8)).exit_status == 1


def test_an_arm_that_does_not_keep_the_rate_is_told_and_gives_no_verdict_on_response_times():
    result = verdict_of(*at_rate(served={"off": 410.0}))
    assert result.primary[0].verdict == "withheld"
    told = "The rate was not kept by off (12 of 12 trials of off at select-only, scale 10, 8 clients, 500/s), "
    assert told in result.sentences[0]
    assert "for example 2,460 of 3,000 transactions" in result.sentences[0]


def test_the_chance_of_the_schedule_is_no_lack_of_speed():
    # 3,000 transactions are asked for, with a standard deviation of 55
    assert verdict_of(*at_rate(served={"off": 475.0})).primary[0].verdict == "better"


def test_a_failed_trial_at_a_rate_is_the_worst_rank():
    plan, trials = at_rate()
    gone = next(trial for trial in trials if trial.arm == "off")
    failed = gone.model_copy(update={"status": "failed", "measured": None})
    ratios = verdict_of(plan, [failed if trial is gone else trial for trial in trials]).primary[0].ratios
    assert [ratio.log_ratio for ratio in ratios if ratio.failed] == [-p8.WORST]
