"""Tests of the plans of a load's statements that `pgtrial plan --rehearse` prints."""

from __future__ import annotations

import pytest

from pgtrial.cli.rehearsed import show_plans
from pgtrial.conduct.preparation.rehearsed_plans import RehearsedPlans
from pgtrial.model.records.trial import LoadStatement
from tests.verdict import studies

ONE, TWO = "SELECT a FROM t WHERE a = $1;", "SELECT b FROM t WHERE b = $1;"
SCAN, BY_INDEX = ["Seq Scan on t"], ["Index Scan using t_a on t"]


@pytest.fixture
def shown(capsys, monkeypatch):
    """Returns a function that shows each arm's plans of two statements, and returns the lines of stdout and the text of
    stderr.
    """
    monkeypatch.setenv("COLUMNS", "200")

    def show(declared, unlisted=(), **arms):
        plan = studies.make_plan(tuple(arms), blocks=2)
        plan = plan.model_copy(update={"declared": dict.fromkeys(arms, declared)})
        by_arm = {
            arm: {text: LoadStatement(text=text, plan=lines) for text, lines in zip((ONE, TWO), plans, strict=False)}
            for arm, plans in arms.items()
        }
        show_plans(plan, RehearsedPlans(by_arm, set(unlisted)))
        out, err = capsys.readouterr()
        return [line.rstrip() for line in out.splitlines()], err

    return show


def test_the_same_plan_on_all_arms_is_one_line_and_what_is_never_used_a_warning(shown):
    out, err = shown(["settings.random_page_cost"], on=[SCAN, BY_INDEX], off=[SCAN, BY_INDEX], low=[SCAN, BY_INDEX])
    assert out == ["plans: same plan on all arms, 2 statements"]
    assert [line.partition(" (")[0] for line in err.splitlines()] == [
        f"pgtrial: warning: this load never uses what differs between on and {arm}: random_page_cost"
        for arm in ("off", "low")
    ]
    assert err.endswith("(the plans of the statements that were seen are the same); choose a load that uses it\n")


def test_a_part_that_is_never_used_does_not_warn(shown):
    out, err = shown(["settings.jit", "settings.max_wal_size"], on=[SCAN], off=[SCAN])
    assert out == [
        "plans: same plan on all arms, 1 statement",
        "this load never uses a part of what differs between on and off: jit (no plan of the statements that were seen "
        "has just-in-time compilation)",
    ]
    assert err == ""


def test_a_statement_with_another_plan_is_named_with_both_plans(shown):
    out, err = shown(["settings.random_page_cost"], on=[SCAN, SCAN], off=[BY_INDEX, SCAN], low=[SCAN, SCAN])
    assert out[:3] == [
        "plans: same plan on on and low, 2 statements",
        f"plans: off has another plan than on for {ONE}",
        "on              off",
    ]
    assert out[4:] == [
        "Seq Scan on t   Index Scan using t_a on t",
        "plans: same plan on on and off for 1 other statement",
    ]
    assert err.count("between on and low: random_page_cost") == err.count("\n") == 1


def test_what_is_not_known_is_said_and_no_warning(shown):
    declared = ["settings.random_page_cost"]
    assert shown(declared, on=[SCAN, []], off=[SCAN, []]) == (
        ["plans: same plan on all arms, 1 of 2 statements; EXPLAIN shows none of the others"],
        "",
    )
    assert shown(declared, on=[], off=[]) == (
        ["plans: the plans of on and off are not known before the first block"],
        "",
    )
    assert shown(declared, ["oltp_read_only"], on=[SCAN], off=[SCAN]) == (
        [
            "plans: same plan on all arms, 1 statement",
            "plans: the statements of oltp_read_only become known in the first block; the report then compares their "
            "plans",
        ],
        "",
    )


def test_other_plans_are_named_by_their_first_nodes_before_a_study_measures_anything():
    plan = studies.make_plan(("on", "off"), blocks=2)
    texts = [f"SELECT {letter} FROM t" for letter in "abcdefgh"]
    by_arm = {
        arm: {text: LoadStatement(text=text, plan=lines) for text in texts}
        for arm, lines in {"on": SCAN, "off": BY_INDEX}.items()
    }
    by_arm["off"][texts[0]] = LoadStatement(text=texts[0], plan=[*SCAN, "  Disabled: true"])
    (compared,) = RehearsedPlans(by_arm).compare(plan)
    named = list(compared.other_plans("on"))
    assert (
        named[0] == f"off has another plan than on for {texts[1]}: Index Scan using t_a on t in place of Seq Scan on t"
    )
    assert named[-1] == "off has another plan than on for 1 more statement"
    assert len(named) == 7
