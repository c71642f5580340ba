"""Tests of the result of a gate of several studies: its outcome, its summary and its JUnit file."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from pgtrial.report.gate.junit import Case, junit
from pgtrial.report.gate.outcome import Outcome, Rules, outcome
from pgtrial.report.gate.studies import GatedResult, outcome_of_studies, summary_of_studies
from tests.cli.test_comment_action import comment
from tests.report.test_gate import ALIKE, FASTER, HOSTILE, NOISY, POINT, SLOWER, data_of

DATA = {"slower": data_of(SLOWER), "faster": data_of(FASTER), "alike": data_of(ALIKE), "noisy": data_of(NOISY)}
ERROR = Outcome(3, "the server is lost")


def result(name: str, case: str | Outcome, **rules) -> GatedResult:
    if isinstance(case, Outcome):
        return GatedResult(name, case)
    data = DATA[case]
    return GatedResult(name, outcome(data.result, data.plan, Rules(**rules)), data)


def results(*of: str | Outcome, **rules) -> list[GatedResult]:
    return [result(name, case, **rules) for name, case in zip("abcde", of, strict=False)]


@pytest.mark.parametrize(
    ("of", "status", "decided", "said"),
    [
        (("alike", "faster"), 0, True, "pass: all 2 studies pass; faster: b."),
        (("alike", "slower"), 1, True, "fail: 1 of 2 studies fails: b (head is 6.0% slower than base); passed: a."),
        (("slower", ERROR), 1, True, "fail: 1 of 2 studies fails: a (head is 6.0% slower than base); error: b."),
        (("slower", "slower"), 1, True, "fail: 2 of 2 studies fail: a (head is 6.0% slower than base); b (head is 6."),
        (("noisy", ERROR), 3, False, "error: 1 of 2 studies has an error: b (the server is lost); no verdict: a."),
        (
            ("alike", "noisy"),
            2,
            False,
            "no verdict: 1 of 2 studies has no verdict: b (undecided after 12 blocks: head ",
        ),
    ],
)
def test_a_gate_has_the_gravest_status_of_its_studies_and_names_them(of, status, decided, said):
    of_gate = outcome_of_studies(results(*of))
    assert (of_gate.status, of_gate.decided) == (status, decided)
    assert of_gate.sentence.startswith(said)


def test_what_is_undecided_and_accepted_is_named_and_leaves_the_gate_without_a_verdict_that_stands():
    of_gate = outcome_of_studies(results("alike", "noisy", "faster", accept_undecided=True))
    assert (of_gate.status, of_gate.decided) == (0, False)
    assert of_gate.sentence == "pass: none of 3 studies fails; undecided: b; passed: a, c; faster: c."
    of_gate = outcome_of_studies(results("slower", "noisy", accept_undecided=True))
    assert of_gate.sentence == "fail: 1 of 2 studies fails: a (head is 6.0% slower than base); undecided: b."


def test_the_summary_has_a_row_and_a_part_for_each_study_the_gravest_first():
    studies = results("alike", "faster", "slower", "noisy", ERROR)
    text = summary_of_studies(studies, outcome_of_studies(studies), "gate.tar.xz")
    assert text.startswith("### pgtrial gate: fail\n\n**fail: 1 of 5 studies fails: c (")
    assert [line.split(" | ")[:2] for line in text.splitlines() if re.match(r"\| [a-e] \|", line)] == [
        ["| a", "pass"], ["| b", "pass, faster"], ["| c", "fail"], ["| d", "no verdict"], ["| e", "error"],
    ]  # fmt: skip
    assert "The 5 studies share the error of 5%" in text
    assert re.findall(r"^#### (.*)", text, re.MULTILINE) == [
        "c: fail",
        "e: error",
        "d: no verdict",
        "a: pass",
        "b: pass",
    ]
    assert text.count("##### Causes per transaction") == 4
    assert "Bundle: `gate.tar.xz` holds the bundles of the studies" in text
    assert "Bundle" not in summary_of_studies(studies, outcome_of_studies(studies), None)


def test_a_summary_of_many_studies_fits_a_comment():
    points = [POINT.model_copy(update={"clients": clients}) for clients in range(1, 41)]
    data = data_of(SLOWER, points=points, blocks=8)
    of_gate = outcome(data.result, data.plan, Rules())
    studies = [GatedResult(f"study {number}", of_gate, data) for number in range(60)]
    text = summary_of_studies(studies, outcome_of_studies(studies), None)
    assert len(comment.plain(text)) < 60_000, "the comment of a pull request from a fork has all of it"
    assert "The summary is too long for " in text


def test_names_of_strangers_stay_text():
    studies = [GatedResult(HOSTILE, Outcome(1, f"{HOSTILE} is slower"))]
    text = summary_of_studies(studies, outcome_of_studies(studies), "a`b\n$(id).tar.xz")
    assert not re.search(r"(?<!\\)<(?!!-- -->)", text)
    assert not re.search(r"@(?!<!-- -->)", text)
    assert not re.search(r"(?<!\\)\[", text)
    assert "a`b" not in text


def test_the_junit_file_has_a_case_for_each_study():
    studies = results("slower", "alike", ERROR)
    cases = [Case(study.of_gate, 60.5, f"details of {study.name}", study.name) for study in studies]
    created = "2026-11-20T14:12:03+00:00"
    text = junit("base", "head", outcome_of_studies(studies), cases, created=created, host="runner")
    (suite,) = ElementTree.fromstring(text.encode())
    assert [part.tag for part in suite] == ["properties", *["testcase"] * 3, "system-out", "system-err"]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "time")] == ["3", "1", "1", "181.500"]
    found = {case.get("name"): [part.tag for part in case] for case in suite.iter("testcase")}
    assert found == {"a: head against base": ["failure"], "b: head against base": [], "c: head against base": ["error"]}
    assert suite[4].text == "a: details of a\n\nb: details of b\n\nc: details of c"
