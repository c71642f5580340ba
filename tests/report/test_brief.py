"""The verdict in ten seconds: what the terminal prints, at most eight lines of 80 columns."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from pgtrial.cli.verdict import in_short
from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.facts import Audit
from pgtrial.report.brief import Brief, brief
from pgtrial.report.words import interval_words, open_end, outlook
from tests.verdict.studies import POINT, make_plan, noisy, run, verdict_of

from .conftest import FSYNC, POINTS, THP


def short(plan, trials, *findings) -> Brief:
    result = verdict_of(plan, trials, Audit(findings=list(findings)))
    return brief(result, plan, Path("results/wal-2026-11-20-1412"))


def printed(summary: Brief) -> str:
    console = Console(width=80, file=io.StringIO(), no_color=True)
    console.print(in_short(summary))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def of(*findings, blocks=8, sd=0.03, **ratios):
    plan = make_plan(blocks=blocks)
    return short(plan, run(plan, noisy(ratios, sd=sd)), *findings)


def finding(rule, *arms):
    return THP.model_copy(update={"rule": rule, "severity": "warning", "arms": list(arms)})


def failing():
    plan = make_plan()
    tps = noisy({"off": 1.3})
    return short(plan, run(plan, lambda planned: None if planned.arm == "off" else tps(planned)))


STUDIES = {
    "better": lambda: of(finding("durability", "on", "off"), finding("pending_restart", "off"), off=1.41),
    "worse": lambda: of(*(finding(rule, "on", "off") for rule in ("locale", "noisy_host", "dead_tuples")), off=0.9),
    "equivalent": lambda: of(off=1.001, sd=0.002),
    "undecided": lambda: of(off=1.0, sd=0.04),
    "withheld": lambda: of(THP, FSYNC, off=1.4),
    "failed": failing,
}
SNAPSHOTS = Path(__file__).with_name("brief")


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_two_arms_takes_at_most_eight_lines_of_80_columns(name):
    text = printed(STUDIES[name]())
    assert text == (SNAPSHOTS / f"{name}.txt").read_text().rstrip("\n")
    assert len(text.splitlines()) <= 8
    assert max(map(len, text.splitlines())) <= 80


def test_each_comparison_has_its_headline_and_says_how_the_load_points_differ():
    plan = make_plan(("15", "16", "17"), points=POINTS[:2], blocks=12)
    summary = short(plan, run(plan, noisy({"16": 1.2, "17": 1.0}, sd=0.02)))
    assert summary.headlines[0].text.startswith("16 is ")
    assert [line.label for line in summary.headlines[0].lines] == ["interval", "by load"]
    assert summary.headlines[0].lines[1].text == "better at 2"


def test_a_study_that_was_interrupted_names_the_command_that_goes_on():
    plan = make_plan()
    summary = short(plan, run(plan, noisy({"off": 1.4}), upto=5))
    assert summary.then is not None
    assert summary.then.startswith(
        "pgtrial run results/wal-2026-11-20-1412 goes on: 2 of 8 blocks are complete, and a verdict takes 8 "
        "(6 more blocks, about "
    )


def test_blocks_that_wait_for_a_look_are_named():
    plan = make_plan(blocks=16)
    ended = plan.model_copy(update={"looks": [8, 12]})
    noise = noisy({"off": 1.0}, sd=0.04)
    text = printed(short(ended, run(ended, noise)))
    assert "the last 4 blocks wait for the next look at the verdict, after block 18" in " ".join(text.split())
    whole = printed(short(plan, run(plan, noise)))
    assert "wait for the next look" not in " ".join(whole.split())


def test_the_report_names_everything_to_watch_out_for_and_the_terminal_the_first_two():
    summary = STUDIES["worse"]()
    assert summary.watched == ["locales differ", "other work used the host", "trials began with dead rows"]
    (line,) = (line.text for line in summary.lines(2) if line.label == "watch out")
    assert line == "locales differ; other work used the host; 1 more: pgtrial verdict --all"
    (line,) = (line.text for line in summary.lines() if line.label == "watch out")
    assert line.endswith("trials began with dead rows")


def test_a_rule_that_is_no_more_is_named_by_its_name():
    summary = of(finding("a_rule_of_before", "on", "off"), off=1.4)
    assert summary.watched == ["a rule of before"]


def test_warnings_and_the_next_step_name_the_comparisons_of_a_study_with_several_arms():
    plan = make_plan(("15", "16", "17"), blocks=12)
    trials = run(plan, noisy({"16": 1.2, "17": 1.0}, sd=0.03))
    every = (finding("locale", "15", "16"), finding("locale", "15", "17"))
    told = short(
        plan,
        trials,
        finding("durability", "15", "16"),
        finding("pending_restart", "16"),
        finding("noisy_host", "16", "17"),
        *every,
        finding("unused_difference", "15", "16"),
    )
    assert told.watched == [
        "durability differs (16 against 15)",
        "a changed setting is not in force (16)",
        "other work used the host (16 and 17)",
        "locales differ",
        "the load never used what differs between 15 and 16",
    ]
    assert told.then is not None
    assert re.search(r"( and decides 17 against 15 with|would not decide 17 against 15$)", told.then)
    withheld = short(plan, trials, *(FSYNC.model_copy(update={"arms": ["15", arm]}) for arm in ("16", "17")))
    assert withheld.then == f"16 against 15: {FSYNC.cure}"


def test_the_end_of_an_interval_that_is_not_known_yet_is_named():
    ends = [Estimate(low=low, value=0.05, high=high) for low, high in ((None, 0.14), (-0.04, None), (None, None))]
    assert list(map(open_end, ends)) == [", no lower end yet", ", no upper end yet", ""]
    [claim] = verdict_of(make_plan(), run(make_plan(), noisy({"off": 1.0}, sd=0.04))).primary
    assert interval_words(claim, ends[0], None, 0.01, "95% interval") == (
        "+5.0%, at most +14.0%, no lower end yet (95% interval), margin 1%"
    )


def test_two_next_steps_are_joined_like_the_parts_of_one_sentence(monkeypatch):
    monkeypatch.setattr("pgtrial.report.brief.next_sizes", lambda result: "a study with scale = [1, 2]")
    assert of(THP, FSYNC, off=1.4).then == f"{FSYNC.cure.removesuffix('.')}; a study with scale = [1, 2]"


def test_an_a_a_study_says_that_it_is_one():
    plan = make_plan().model_copy(update={"declared": {}})
    summary = short(plan, run(plan, noisy({})))
    assert summary.watched[0] == "no difference is declared: this is a check of the method"


def test_the_headline_says_when_all_arms_failed():
    plan = make_plan()
    text = printed(short(plan, run(plan, lambda planned: None)))
    assert text.splitlines()[0] == "UNDECIDED  all arms failed in all 8 trials"


def test_the_mean_response_time_is_shown_also_of_few_transactions():
    plan = make_plan(points=[POINT.model_copy(update={"rate": 10.0})])
    result = verdict_of(plan, run(plan, noisy({"off": 1.0}, base=10.0)), seconds={})
    assert all(level.latency_us["mean"] and not level.latency_us["p99"] for level in result.levels)
    line = brief(result, plan).headlines[0].lines[0]
    assert line.label == "medians"
    assert re.fullmatch(r"[\d.,]+ ms against [\d.,]+ ms", line.text)


def test_a_load_that_never_used_what_differs_is_changed_before_more_blocks_are_proposed():
    unused = finding("unused_difference", "on", "off")
    assert of(unused, off=1.0, sd=0.04).then == (
        "choose a load that uses what differs between on and off; more trials of this load would not help"
    )
    part = unused.model_copy(update={"severity": "info", "cure": "Nothing to do."})
    assert of(part, off=1.0, sd=0.04).then == of(off=1.0, sd=0.04).then


def test_more_blocks_that_would_hardly_decide_are_not_proposed():
    plan = make_plan()
    result = verdict_of(plan, run(plan, noisy({"off": 1.0}, sd=0.04)))

    def with_chance(chance):
        changes = {"more_blocks": 12, "more_s": 300.0, "more_chance": chance}
        return result.model_copy(update={"primary": [claim.model_copy(update=changes) for claim in result.primary]})

    assert "--more 12" in (brief(with_chance(0.3), plan).then or "")
    hopeless = with_chance(0.004)
    summary = brief(hopeless, plan).then or ""
    assert summary.startswith("longer trials, less noise on the machine, or a wider margin")
    assert "0%" not in summary
    assert "12 more blocks would hardly decide; longer trials" in outlook(hopeless.primary[0], plan)


def test_failed_trials_are_named_as_the_reason_of_a_wide_interval_with_their_error():
    plan = make_plan()
    tps = noisy({"off": 1.3}, sd=0.01)
    trials = run(plan, lambda planned: None if planned.arm == "off" and planned.block in (2, 5) else tps(planned))
    summary = brief(verdict_of(plan, trials), plan, Path("s"), trials)
    assert summary.headlines[0].verdict == "undecided"
    assert summary.failures == "off: 2 of 8 trials (the server closed the connection), the other arms none"
    assert summary.then == (
        "mend what made 2 of 8 trials of off fail, then run the study again: a failed trial counts as the worst "
        "result, and that makes the interval wide"
    )


@pytest.mark.parametrize(
    ("ratio", "headline", "interval"),
    [
        (1.411, r"off is 41[.\d]*% faster than on", r"\+39.* to \+43.*%"),
        (49.0, r"off is 4[89] times as fast as on", r"4\d to 5\d times"),
        (0.2, r"off takes 5 times as long as on", r"4\.9\d* to 5\.\d+ times as long"),
        (0.6, r"off is 40[.\d]*% slower than on", r"-4\d.* to -39.*%"),
    ],
)
def test_from_twice_on_a_ratio_is_told_in_times(ratio, headline, interval):
    summary = of(off=ratio, sd=0.01)
    assert re.fullmatch(headline, summary.headlines[0].text)
    (line,) = (line.text for line in summary.headlines[0].lines if line.label == "interval")
    assert re.fullmatch(rf"{interval} \(95% sequential interval\), margin 1%", line)
