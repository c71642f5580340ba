"""The report of a rehearsal of an upgrade: its parts, the sentence of counts, and the exit status."""

from __future__ import annotations

import pytest

from pgtrial.model.records.upgrade import (
    NewError,
    OnNew,
    OtherPlan,
    OtherRows,
    RehearsedStatement,
    TimedStatement,
    TimedStatements,
    Upgrade,
    UpgradedArm,
)
from pgtrial.report.upgrade import as_markdown, as_page, exit_status, headline, parts

SAME = OnNew()
FAILS = OnNew(error=NewError(sqlstate="42883", message="function gone() does not exist"))
CHANGED = OnNew(rows=OtherRows(old_rows=3, new_rows=3, column="upper", old_value="MüLLER", new_value="MÜLLER"))
MOVED = OnNew(plan=OtherPlan(at_old="Hash Join", at_new="Seq Scan on o", old=["Hash Join"], new=["Seq Scan on o"]))
CANCELLED = OnNew(over_limit=True)


def statement(name: str, **on: OnNew) -> RehearsedStatement:
    arms = {"restored": on.get("restored", SAME), "pg_upgraded": on.get("upgraded", on.get("restored", SAME))}
    return RehearsedStatement(name=name, text=f"SELECT {name}();\n", on=arms)


def cancelled_until_analyze(after: OnNew) -> RehearsedStatement:
    """Returns a statement that was cancelled before ANALYZE, with what it shows afterwards."""
    arms = {"restored": SAME, "pg_upgraded": CANCELLED, "pg_upgraded, analysed": after}
    return RehearsedStatement(name="early", text="SELECT 1;\n", on=arms)


def uncompared(name: str) -> RehearsedStatement:
    return RehearsedStatement(name=name, text="VACUUM;\n", not_compared="it cannot run in a transaction")


def upgrade(*statements: RehearsedStatement, **keys) -> Upgrade:
    return Upgrade(
        created="2026-11-30T10:00:00+00:00",
        pgtrial="0.3.0",
        old="15.18",
        new="18.6",
        data=["shop.dump"],
        source="suite:queries",
        limit_s=60,
        **{"arms": [UpgradedArm(name="restored"), UpgradedArm(name="pg_upgraded")], **keys},
        statements=list(statements),
    )


def timed(name: str, verdict: str, *, is_slower: bool = False) -> TimedStatements:
    measured = TimedStatement(
        name=name, old_us=1000, new_us=2000, verdict=verdict, is_slower=is_slower, factor="2 times as long"
    )
    return TimedStatements(directory="1-same-plans", plans_differ=False, statements=[measured])


ALL = upgrade(
    statement("gone", restored=FAILS),
    statement("upper", restored=CHANGED, upgraded=SAME),
    statement("joins", restored=MOVED),
    statement("slow", restored=SAME),
    times=[timed("slow", "worse", is_slower=True)],
)


def test_the_parts_come_in_the_order_of_their_weight_and_name_each_statement():
    titles = [part.title for part in parts(ALL)]
    assert titles == ["What breaks", "What gets other rows", "What gets another plan", "What gets slower"]
    rows = [[row for table in part.tables for row in table.rows] for part in parts(ALL)]
    assert rows[0] == [["gone", "SELECT gone()", "42883", "function gone() does not exist"]]
    assert rows[1] == [["upper", "SELECT upper()", "restored", "3", "3", "upper: MüLLER, and now MÜLLER"]]
    assert rows[2] == [["joins", "SELECT joins()", "Hash Join", "Seq Scan on o"]]
    assert rows[3] == [["slow", "SELECT slow()", "same", "1.00", "2.00", "2 times as long"]]
    assert headline(ALL) == (
        "From 15.18 to 18.6: of 4 statements 1 breaks, 1 gets other rows, 1 gets another plan, 1 gets slower"
    )


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (upgrade(statement("a"), times=[timed("a", "equivalent")]), 0),
        (upgrade(statement("a", restored=MOVED), times_asked=False), 0),
        (upgrade(statement("a"), times=[timed("a", "undecided")]), 2),
        (upgrade(statement("a"), no_times="the budget is too short"), 2),
        (upgrade(RehearsedStatement(name="a", text="", not_compared="it fails on the old version: x")), 2),
        (upgrade(statement("a", restored=FAILS), times=[timed("a", "undecided")]), 1),
        (upgrade(statement("a", restored=SAME, upgraded=CHANGED)), 1),
        (upgrade(statement("a", restored=CANCELLED)), 1),
        (upgrade(cancelled_until_analyze(SAME), times_asked=False), 0),
        (upgrade(cancelled_until_analyze(CANCELLED), times_asked=False), 1),
        (upgrade(statement("a"), times=[timed("a", "worse", is_slower=True)]), 1),
        (upgrade(statement("a"), times=[timed("a", "worse")]), 0),
        (upgrade(arms=[UpgradedArm(name="restored", failure="type abstime does not exist")]), 1),
        (upgrade(statement("a"), arms=[UpgradedArm(name="pg_upgraded", failure="no pg_upgrade", is_absent=True)]), 0),
    ],
)
def test_the_exit_status_is_that_of_the_gravest_finding(found, status):
    assert exit_status(found) == status


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            upgrade(statement("a"), times=[timed("a", "better")]),
            "of 1 statement none breaks or gets other rows, another plan or slower",
        ),
        (
            upgrade(statement("a"), times=[timed("a", "undecided")]),
            "of 1 statement none breaks or gets other rows or another plan; 1 is undecided",
        ),
        (
            upgrade(statement("a"), uncompared("b"), uncompared("c"), times_asked=False),
            "of 1 statement none breaks or"
            " gets other rows or another plan; 2 were not compared; no times were measured",
        ),
        (
            upgrade(statement("a"), times=[timed("a", "better")], no_times="it was stopped"),
            "of 1 statement none breaks or gets other rows or another plan; not all times were measured",
        ),
        (
            upgrade(uncompared("a"), uncompared("b"), times_asked=False),
            "no statement was compared; no times were measured",
        ),
        (
            upgrade(
                statement("a"),
                times=[timed("a", "better")],
                arms=[
                    UpgradedArm(name="restored"),
                    UpgradedArm(name="pg_upgraded"),
                    UpgradedArm(name="pg_upgraded, analysed", failure="ANALYZE failed: no"),
                ],
            ),
            "ANALYZE fails after pg_upgrade; of 1 statement none breaks or gets other rows, another plan or slower",
        ),
    ],
    ids=["all", "undecided", "uncompared", "stopped", "none", "no ANALYZE"],
)
def test_the_headline_claims_only_what_was_found_out(found, words):
    assert headline(found) == f"From 15.18 to 18.6: {words}"


def test_no_part_claims_anything_if_no_statement_was_compared():
    found = parts(upgrade(uncompared("a"), times_asked=False))
    assert [part.sentences for part in found[:3]] == [["No statement was compared."]] * 3


def test_a_limit_exceeded_only_before_analyze_is_named():
    slower = parts(upgrade(cancelled_until_analyze(SAME)))[3]
    assert slower.sentences == ["Between pg_upgrade and ANALYZE early took longer than 1min."]


def test_data_that_are_refused_are_what_breaks_and_nothing_else_is_claimed():
    arms = [UpgradedArm(name="restored", failure="type abstime does not exist")]
    refused = upgrade(arms=arms, no_times="no statement runs on both versions")
    assert headline(refused) == (
        "From 15.18 to 18.6: the new version refuses the data, so that no statement was compared"
    )
    assert [(part.title, part.sentences) for part in parts(refused)] == [
        ("What breaks", ["The data, restored: type abstime does not exist."])
    ]


def test_no_finding_is_said_in_a_sentence_of_each_part():
    found = upgrade(statement("a"), times=[timed("a", "better")])
    text = as_markdown(found)
    assert "No statement that runs on 15.18 fails on 18.6." in text
    assert "No statement returns or changes other rows." in text
    assert "No statement has another plan, as far as EXPLAIN shows plans." in text
    assert "Of 1 statement measured, none got slower and 1 faster; none are undecided." in text


def test_what_was_not_compared_is_named_with_its_reason():
    found = upgrade(
        RehearsedStatement(name="a", text="VACUUM", not_compared="it cannot run in a transaction"),
        left_out=["2 statements of monday, since no recorded execution succeeded"],
    )
    text = as_markdown(found)
    assert "| a | VACUUM | it cannot run in a transaction |" in text
    assert "Left out: 2 statements of monday, since no recorded execution succeeded." in text


def test_markdown_and_page_show_the_plans_and_no_markup_of_statements():
    hostile = statement("<script>", restored=MOVED)
    assert "\nHash Join\n" in as_markdown(ALL)
    page = as_page(upgrade(hostile))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "Plans of &lt;script&gt; (restored; pg_upgraded)" in page
