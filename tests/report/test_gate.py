"""Tests of a gate's answer to a verdict and of its files: no empty comparison passes, strangers' names stay text."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from pgtrial.cli.verdict import in_short
from pgtrial.model.records.facts import Audit, Finding
from pgtrial.model.records.plan import Interleaving, Spending
from pgtrial.model.records.results import PlanDifference
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.brief import brief
from pgtrial.report.data import StudyData
from pgtrial.report.design import design
from pgtrial.report.gate.junit import Case, junit
from pgtrial.report.gate.outcome import Outcome, Rules, outcome
from pgtrial.report.gate.summary import summary, summary_without_study
from pgtrial.report.next_steps import steps_to_a_verdict
from pgtrial.statistics import p8, p9
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid
from tests.report.conftest import FSYNC
from tests.verdict.replays import Template, run_replays
from tests.verdict.studies import POINT, make_plan, noisy, run, verdict_of
from tests.verdict.suite_trials import Query, run_suites

PAIR = ("base", "head")
TRIPLE = (*PAIR, "base again")
HOSTILE = "]]></failure><script>alert(1)</script> & $(touch x) `id` | @admin [a](b)"


def data_of(tps, arms=PAIR, *, blocks=12, upto=None, audit=None, margin=0.01, points=(POINT,), **known) -> StudyData:
    plan = make_plan(arms, blocks=blocks, margin=margin, points=points, **known)
    plan = plan.model_copy(update={"looks": p8.looks(blocks, len(arms) - 1)})
    trials = run(plan, tps, upto=upto)
    spec = StudySpec(arms={arm: {} for arm in arms})
    return StudyData(spec, plan, trials, facts={}, result=verdict_of(plan, trials, audit))


def status(data: StudyData, **rules) -> int:
    return outcome(data.result, data.plan, Rules(**rules)).status


def silent(*arms):
    return lambda planned: None if planned.arm in arms else 2000.0 + planned.index


SLOWER, FASTER, ALIKE = (noisy({"head": ratio}, sd=0.002) for ratio in (0.94, 1.06, 1.0))
NOISY = noisy({"head": 0.985}, sd=0.03)
WITHHELD = Audit(findings=[FSYNC.model_copy(update={"arms": list(PAIR)})])

CASES = {
    "slower": (data_of(SLOWER), 1, 1, 1),
    "faster": (data_of(FASTER), 0, 1, 0),
    "equivalent": (data_of(ALIKE), 0, 0, 0),
    "slower within the margin": (data_of(noisy({"head": 0.99}, sd=0.001), margin=0.05), 0, 0, 0),
    "undecided": (data_of(NOISY), 2, 2, 0),
    "before the first look": (data_of(SLOWER, upto=14), 2, 2, 2),
    "no trial": (data_of(SLOWER, upto=0), 2, 2, 2),
    "withheld": (data_of(SLOWER, audit=WITHHELD), 2, 2, 2),
    "head fails": (data_of(silent("head")), 1, 1, 1),
    "head fails once, in a first block": (data_of(silent("head"), upto=2), 1, 1, 1),
    "base fails": (data_of(silent("base")), 2, 2, 2),
    "both fail": (data_of(silent(*PAIR)), 2, 2, 2),
    "the same set-up": (data_of(ALIKE, declared=False), 2, 2, 2),
    "the same set-up, called worse": (data_of(SLOWER, declared=False), 1, 1, 1),
    "base differs from itself": (data_of(noisy({"head": 0.94, "base again": 0.95}, sd=0.002), TRIPLE), 2, 2, 2),
    "base is like itself": (data_of(SLOWER, TRIPLE), 1, 1, 1),
}
"""A study, the status of a gate with --fail-on worse, with not-equivalent, and with --accept-undecided."""


@pytest.mark.parametrize("case", CASES)
def test_the_status_of_a_gate(case):
    data, *expected = CASES[case]
    rules = ({}, {"fail_on": "not-equivalent"}, {"accept_undecided": True})
    assert [status(data, **of_gate) for of_gate in rules] == expected


@pytest.mark.parametrize("case", ["slower", "faster", "equivalent", "undecided", "withheld", "no trial"])
def test_the_status_is_that_of_the_verdict(case):
    data = CASES[case][0]
    assert status(data) == data.result.exit_status


def test_the_summary_lists_the_statements_whose_plans_differ():
    data = CASES["slower"][0]
    found = [
        PlanDifference(
            statement=f"SELECT {number} FROM t",
            arm="head",
            baseline="base",
            at_baseline="Index Scan using t_b on t",
            at_arm="Seq Scan on t",
        )
        for number in range(8)
    ]
    changed = replace(data, result=data.result.model_copy(update={"plans": found}))
    text = summary(changed, Outcome(1, "head is slower"), None)
    assert "#### Statements with another plan" in text
    assert "- SELECT 5 FROM t: Seq Scan on t in place of Index Scan using t\\_b on t\n- and 2 more statements" in text
    assert "another plan" not in summary(data, Outcome(1, "head is slower"), None)


def test_arms_that_are_equal_in_effect_do_not_pass():
    data = CASES["equivalent"][0]
    of_gate = outcome(data.result, data.plan, Rules(equal="equal in effect (work_mem = 4MB)", accept_undecided=True))
    assert of_gate.status == 2
    assert "base and head are equal in effect (work_mem = 4MB), so that nothing was compared" in of_gate.sentence


def sentence(case: str) -> str:
    data = CASES[case][0]
    return outcome(data.result, data.plan, Rules()).sentence


def test_an_undecided_gate_says_what_is_excluded_and_what_would_decide():
    said = sentence("undecided")
    assert re.search(r"-\d\.\d to \+\d\.\d% \(95% sequential interval\); about \d+ more blocks", said)
    assert "only differences larger than" in said


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("slower", "fail: head is 5.99% slower than base."),
        ("equivalent", "pass: no difference larger than 1% between head and base."),
        ("no trial", "no verdict: no trial was run, so that nothing was compared."),
        ("withheld", f"no verdict on head against base: {FSYNC.message} {FSYNC.cure}"),
        ("head fails", "fail: head failed in all 12 trials (the server closed the connection)."),
        ("base fails", "no verdict: base failed in all 12 trials (the server closed the connection), so that nothing "),
        ("the same set-up", "no verdict: base and head are identical, so that nothing was compared; no "),
        ("base differs from itself", "no verdict: this runner finds a difference between base and itself: base again "),
    ],
)
def test_a_gate_says_why(case, said):
    assert sentence(case).startswith(said)


def test_a_pass_that_is_slower_within_the_margin_says_so():
    assert re.fullmatch(
        r"pass: head is \d\.\d+% slower, by less than the margin of 5%, than base, and a gate lets pass what is slower "
        r"by less than its margin\.",
        sentence("slower within the margin"),
    )


def of_one_side(tps, blocks=12, **known) -> StudyData:
    """Returns a study that asks only whether HEAD is worse, as a gate plans it. The study ends at the first look that
    decides.
    """
    plan = make_plan(PAIR, blocks=blocks, **known)
    spending = Spending(end=blocks, kept=0.0, worse=p9.ONE_SIDED)
    plan = plan.model_copy(update={"looks": p9.looks(blocks, 1, 0.0), "spending": spending})
    for look in plan.looks:
        trials = run(plan, tps, upto=2 * look)
        result = verdict_of(plan, trials)
        if comparisons(Grid(plan, trials))[0].decided:
            break
    return StudyData(StudySpec(arms={arm: {} for arm in PAIR}), plan, trials, facts={}, result=result)


def test_a_gate_of_one_side_passes_where_a_loss_of_the_margin_is_excluded():
    """The interval reaches beyond the margin upwards, so that nothing is known but that there is no such loss."""
    data = of_one_side(noisy({"head": 1.006}, sd=0.008), seed=3)
    [claim] = data.result.primary
    assert (claim.verdict, claim.not_worse) == ("undecided", True)
    assert claim.difference.low is None, "that it is better has a tenth of the error"
    said = outcome(data.result, data.plan, Rules())
    assert (said.status, said.decided, data.result.exit_status) == (0, True, 0)
    assert re.fullmatch(
        r"pass: no loss of 1% or more on head against base; estimated difference \+\d\.\d+%, at least -1\.0+% "
        r"\(95% sequential interval\)\.",
        said.sentence,
    )
    assert "ends where one of the margin is excluded" in data.result.sentences[0]
    assert data.result.primary[0].more_blocks is None
    console = Console(width=100)
    with console.capture() as shown:
        console.print(in_short(brief(data.result, data.plan)))
    assert shown.get().startswith("NOT WORSE  No loss of 1% or more on head against base")
    assert "at least -1.0% (95% sequential interval), margin 1%" in shown.get()
    assert "goes on" not in shown.get()
    assert "sequential interval at least -1.0%" in data.result.sentences[0]
    [row] = [line for line in summary(data, said, None).splitlines() if line.startswith("| ") and "not worse" in line]
    assert "at least -1" in row
    assert "undecided" not in row


def test_a_gate_whose_budget_was_too_short_says_how_long_one_has_to_be_that_excludes_the_loss():
    short = of_one_side(noisy({"head": 1.0}, sd=0.04, seed=2), 8, margin=0.03)
    said = outcome(short.result, short.plan, Rules()).sentence
    found = re.search(
        r"; a gate of about (\d+) blocks \((?:\d+h )?\d+min\) excludes a loss of 3% or more in 80% of cases if head is "
        r"as fast as base\.$",
        said,
    )
    assert found is not None, said
    assert int(found[1]) > 8


def test_a_gate_says_what_more_trials_of_a_load_that_does_not_use_the_difference_could_show():
    gate = of_one_side(noisy({"head": 1.0}, sd=0.04, seed=2), 8, margin=0.03)
    unused = Finding(rule="unused_difference", severity="warning", arms=list(PAIR), message="", cure="")
    result = gate.result.model_copy(update={"findings": [unused]})
    first, *others = steps_to_a_verdict(result, gate.plan, None)
    assert first == (
        f"choose a load that uses what differs between {PAIR[0]} and {PAIR[1]}; more trials of this load could exclude "
        "a loss, but say nothing about this difference"
    )
    assert others[0] == (
        "a new gate with a longer budget: this one has reached the end of its plan and cannot be continued"
    )


@pytest.mark.parametrize(("ratio", "expected"), [(0.94, 1), (1.06, 0), (1.0, 0), (0.985, 1)])
def test_a_gate_of_one_side_has_the_status_of_its_study(ratio, expected):
    data = of_one_side(noisy({"head": ratio}, sd=0.003))
    assert (status(data), data.result.exit_status) == (expected, expected)


def test_the_word_of_the_outcome_stands_before_an_arm_that_begins_with_it():
    assert Outcome(1, "failover is 5% slower than base").sentence == "fail: failover is 5% slower than base."


def text_of(case: str, bundle: str | None = "gate.tar.xz") -> str:
    data = CASES[case][0]
    return summary(data, outcome(data.result, data.plan, Rules()), bundle)


def test_the_summary_has_levels_causes_and_what_the_runner_can_tell():
    text = text_of("slower")
    assert text.startswith("### pgtrial gate: fail\n\n**fail: head is 5.99% slower than base.**\n")
    assert "| load | base, tps | head, tps | difference | 95% interval | verdict |" in text
    assert re.search(
        r"\| tpcb-like, scale 10, 8 clients \| 2,0\d\d \| 1,8\d\d \| -6\.0% \| -6\.\d\d..-5\.\d\d% \| worse", text
    )
    assert re.search(r"\| client CPU, us \| [\d.]+ \| [\d.]+ \| \+6\.\d% ", text)
    assert "12 blocks, the most of this plan, find a difference of 0." in text
    assert "--base-twice does that" in text
    assert "Bundle: `gate.tar.xz`" in text
    assert "Bundle" not in text_of("slower", None)


def test_the_summary_says_which_costs_were_measured_if_none_differs():
    data = CASES["equivalent"][0]
    said = "Of the costs of a transaction only client CPU was measured, and it does not differ clearly."
    unobserved = "The server is not observed while sessions of all arms take turns on it."
    rules = outcome(data.result, data.plan, Rules())
    assert said in summary(data, rules, None)
    assert unobserved not in summary(data, rules, None)
    on_one_server = data.plan.model_copy(update={"interleaving": Interleaving(slice_s=0.25, shared_server=True)})
    data = replace(data, plan=on_one_server)
    assert f"{said} {unobserved}" in summary(data, rules, None)
    assert dict(design(data))["not observed"].startswith("the server, while sessions of all arms take turns on it")


def test_base_stands_beside_itself():
    assert re.search(r"- Base against base: [-+\d.%]+, \w+\.", text_of("base is like itself"))
    assert "--base-twice" not in text_of("base is like itself")


def on_runner(speed, **known) -> str:
    """Returns the summary of a gate on a runner whose own speed in each block is `speed(block)`."""
    tps = noisy({"head": 1.0}, sd=0.004)
    data = data_of(lambda planned: tps(planned) * speed(planned.block), **known)
    return summary(data, outcome(data.result, data.plan, Rules()), None)


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        (
            lambda block: 0.85 if block in {2, 3, 6, 9} else 1.0,
            "This runner is bistable: it switched 6 times between two speeds that are about 18% apart, for all set-ups",
        ),
        (
            lambda block: 0.9 if block >= 5 else 1.0,
            "The speed of this runner changed once: from block 6 on all set-ups were about 10% slower.",
        ),
        (
            lambda block: 1.1 if block >= 5 else 1.0,
            "The speed of this runner changed once: from block 6 on all set-ups were about 10% faster.",
        ),
        (
            lambda block: 1.0 - 0.01 * block,
            "This runner drifts: from the first block to the last one all set-ups became about 11% slower.",
        ),
    ],
)
def test_a_runner_that_changes_its_speed_is_named(speed, said):
    assert f"- {said}" in on_runner(speed)


@pytest.mark.parametrize(
    "known", [{}, {"points": (POINT, POINT.model_copy(update={"clients": 64}))}, {"upto": 2 * 5}], ids=str
)
def test_a_runner_that_keeps_its_speed_is_not_named(known):
    text = on_runner(lambda _: 1.0, **known)
    assert not re.search("bistable|drifts|changed once", text)


def test_the_throughput_at_a_given_rate_says_nothing_of_the_runner():
    paced = POINT.model_copy(update={"rate": 500.0})
    assert "changed once" not in on_runner(lambda block: 0.9 if block >= 5 else 1.0, points=(paced,))


def test_a_summary_of_many_load_points_fits_a_comment():
    points = [POINT.model_copy(update={"clients": clients}) for clients in range(1, 121)]
    data = data_of(SLOWER, points=points, blocks=8)
    text = summary(data, outcome(data.result, data.plan, Rules()), None)
    assert len(text) < 20_000
    assert "| mean over 120 load points (decides) |" in text
    assert "and 80 more load points, see the report" in text


@pytest.mark.parametrize("others", [1.2, 1.6], ids=["the mean is equivalent", "the mean is faster"])
def test_what_is_slower_at_one_load_point_does_not_pass_by_the_mean(others):
    points = [POINT.model_copy(update={"clients": clients}) for clients in (1, 8, 32)]
    rng = np.random.default_rng(3)

    def tps(planned):
        speed = (0.7 if points[planned.load_point].clients == 8 else others) if planned.arm == "head" else 1.0
        return 2000.0 * speed * float(np.exp(0.002 * rng.standard_normal()))

    data = data_of(tps, points=points, margin=0.02, blocks=18)
    assert data.result.primary[0].verdict in ("equivalent", "better")
    for rules in (Rules(), Rules(accept_undecided=True)):
        of_gate = outcome(data.result, data.plan, rules)
        assert (of_gate.status, of_gate.decided) == (2, True)
        assert re.search(r"^head is [\d.]+% slower than base at .*8 clients, although the mean over 3", of_gate.reason)
    alike = data_of(noisy({}, sd=0.002), points=points, margin=0.02, blocks=18)
    assert status(alike) == 0


def of_suite(*factors: float) -> StudyData:
    """Returns a study of a suite, as a gate plans it, whose queries take so many times as long on HEAD as on BASE."""
    rng = np.random.default_rng(5)

    def queries(planned):
        noise = np.exp(0.003 * rng.standard_normal(len(factors)))
        return [Query(one * factor if planned.arm == "b" else one) for one, factor in zip(noise, factors, strict=True)]

    plan, trials = run_suites(20, queries)
    plan = plan.model_copy(update={"families": 2, "margin": 0.02})
    spec = StudySpec(arms={arm: {} for arm in plan.arms})
    return StudyData(spec, plan, trials, facts={}, result=verdict_of(plan, trials))


def test_a_query_that_is_slower_fails_the_gate_though_the_mean_of_the_suite_is_equal():
    data = of_suite(1.0, 1.5, 1.0, 1 / 1.5)
    assert data.result.primary[0].verdict == "equivalent"
    for rules in (Rules(), Rules(accept_undecided=True), Rules("not-equivalent")):
        said = outcome(data.result, data.plan, rules)
        assert (said.status, said.decided) == (1, True)
        assert said.sentence == (
            "fail: 1 of 4 queries is slower: q1 (1.5 times as long); over all of them: no difference larger than 2% "
            "between b and a."
        )
    text = summary(data, said, None)
    means = re.search(r"^\| suite:shop, 4 queries, caches warm \| ([\d.]+) \| ([\d.]+) \|", text, re.MULTILINE)
    assert means is not None
    assert [float(mean) for mean in means.groups()] == pytest.approx([1.0, 1.0], rel=0.01), "the geometric means in ms"
    assert "Of 4 queries: 1 slower, 1 faster, 0 undecided" in text
    rows = [line for line in text.splitlines() if line.startswith(("| q1 ", "| q3 "))]
    assert [re.split(r" \| ?", row)[-2] for row in rows] == ["worse", "better"]
    assert not re.search(r"^\| q[02] ", text, re.MULTILINE)


def test_a_query_that_differs_between_base_and_itself_gives_no_verdict():
    rng = np.random.default_rng(5)

    def queries(planned):
        noise = np.exp(0.003 * rng.standard_normal(4))
        factors = (1.0, 1.0, 1.0, 1.0) if planned.arm == "base" else (1.0, 1.5, 1.0, 1 / 1.5)
        return [Query(one * factor) for one, factor in zip(noise, factors, strict=True)]

    plan, trials = run_suites(20, queries, arms=TRIPLE)
    plan = plan.model_copy(update={"families": 2, "margin": 0.02})
    result = verdict_of(plan, trials)
    assert {claim.verdict for claim in result.primary} == {"equivalent"}
    said = outcome(result, plan, Rules())
    assert (said.status, said.decided) == (2, False)
    assert said.reason == (
        "this runner finds a difference between base and itself: on base again, 1 of 4 queries is slower: q1 (1.5 "
        "times as long)"
    )


def test_a_query_that_is_faster_fails_only_where_nothing_else_than_equivalence_may_pass():
    data = of_suite(1 / 1.01**8, *[1.01] * 8)
    assert data.result.primary[0].verdict == "equivalent"
    assert status(data) == 0
    said = outcome(data.result, data.plan, Rules("not-equivalent"))
    assert said.status == 1
    assert re.match(r"1 of 9 queries is faster: q0 \(0\.92\d* times as long\), and only what is equiv", said.reason)


def test_a_suite_that_is_slower_as_a_whole_names_its_slower_queries():
    said = sentence_of(of_suite(1.0, *[1.2] * 11))
    assert re.match(r"fail: b is 1\d\.\d+% slower than a; 11 of 12 queries are slower: q\d+ \(1\.2\d? times", said)
    assert said.endswith("times as long), 1 more.")


def test_a_suite_without_a_slower_query_passes():
    data = of_suite(1.0, 1.0, 1.0)
    assert status(data) == 0
    text = summary(data, outcome(data.result, data.plan, Rules()), None)
    assert "Of 3 queries: 0 slower, 0 faster, 0 undecided" in text


def test_a_statement_of_a_replay_that_is_slower_fails_the_gate():
    rng = np.random.default_rng(6)

    def templates(planned):
        slow = 1.3 if planned.arm == "b" else 1.0
        return [Template(ms * float(np.exp(0.002 * rng.standard_normal()))) for ms in (slow, 1.3 / slow, 40.0)]

    plan, trials = run_replays(20, templates)
    plan = plan.model_copy(update={"families": 2})
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "equivalent"
    said = outcome(result, plan, Rules())
    assert said.status == 1
    assert said.reason.startswith("1 of 3 statements is slower: SELECT 0 (1.3 times as long); over all of them: no ")


def sentence_of(data: StudyData) -> str:
    return outcome(data.result, data.plan, Rules()).sentence


def test_names_of_strangers_stay_text_in_the_summary():
    data = data_of(noisy({HOSTILE: 0.9}, sd=0.002), ("git:.@main", HOSTILE))
    of_gate = outcome(data.result, data.plan, Rules())
    for text in (summary(data, of_gate, "a`b\n$(id).tar.xz"), summary_without_study(*data.plan.arms[:2], of_gate)):
        assert not re.search(r"(?<!\\)<(?!!-- -->)", text)
        assert not re.search(r"@(?!<!-- -->)", text)
        assert not re.search(r"(?<!\\)\[", text)
        assert "a`b" not in text
    rows = [line for line in summary(data, of_gate, None).splitlines() if line.startswith("| load")]
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 7


@pytest.mark.parametrize(
    "name", ["&commat;admin", "&#64;admin", "&#x40;admin", "see &num;12", "!12 or ~bug and $3, &4", 'a %"next" b']
)
def test_a_name_refers_to_nothing_on_a_forge(name):
    data = data_of(noisy({name: 0.9}, sd=0.002), ("base", name))
    of_gate = outcome(data.result, data.plan, Rules())
    for text in (summary(data, of_gate, None), summary_without_study(*data.plan.arms[:2], of_gate)):
        assert name not in text
        assert not re.search(r"(?<!\\)&(?=#?\w+;)", text)
        assert not re.search(r"(?<![\w&])[!~$&](?=\w)(?!\w+;)", text)


ATTRIBUTES = {"id", "package", "name", "timestamp", "hostname", "tests", "failures", "errors", "time"}


def suite_of(of_gate: Outcome, base: str = "base", head: str = "head") -> ElementTree.Element:
    created = "2026-11-20T14:12:03+02:00"
    case = Case(of_gate, 12.5, "a ]]> b\x00\x1b[31m\ufffe")
    text = junit(base, head, of_gate, [case], created=created, host="runner")
    suites = ElementTree.fromstring(text.encode())
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    return suite


@pytest.mark.parametrize(("of_status", "child"), [(0, None), (1, "failure"), (2, "error"), (3, "error")])
def test_the_junit_file_is_as_its_schema_has_it(of_status, child):
    suite = suite_of(Outcome(of_status, "why"))
    assert suite.attrib.keys() == ATTRIBUTES
    assert suite.attrib["timestamp"] == "2026-11-20T12:12:03"
    assert [part.tag for part in suite] == ["properties", "testcase", "system-out", "system-err"]
    case = suite[1]
    assert case.attrib.keys() == {"name", "classname", "time"}
    counts = [int(suite.attrib[name]) for name in ("tests", "failures", "errors")]
    assert counts == [1, int(child == "failure"), int(child == "error")]
    assert [part.tag for part in case] == ([child] if child else [])
    assert all(part.attrib.keys() == {"message", "type"} for part in case)


def test_names_of_strangers_stay_text_in_the_junit_file():
    suite = suite_of(Outcome(1, f"{HOSTILE} is slower"), "b", HOSTILE)
    case = suite[1]
    assert case.attrib["name"] == f"{HOSTILE} against b"
    assert case[0].attrib["message"] == f"fail: {HOSTILE} is slower."
    assert case[0].text == "a ]]> b␀␛[31m\ufffd"
    assert not list(suite.iter("script"))
