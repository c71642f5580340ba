"""Interrupted trials are counted by arm; one that is interrupted more often than chance allows is named."""

from __future__ import annotations

from pgtrial.model.records.interruptions import InterruptedTrial, Interruption
from pgtrial.model.records.plan import EarlierTry, Spending
from pgtrial.report.brief import brief
from pgtrial.report.verdict import interruption_notes
from tests.verdict.studies import verdict_of

from .studies import make_plan, run


def interrupted(*arms: str) -> list[Interruption]:
    return [
        Interruption(
            number=number + 1,
            noted="2026-11-20T14:20:00+00:00",
            how="SIGINT",
            trials=[InterruptedTrial(index=number, block=number, arm=arm, load_point=0, under_way_s=4.0, tps=90.0)],
        )
        for number, arm in enumerate(arms)
    ]


def test_somebody_who_interrupts_one_arm_again_and_again_is_noticed():
    notes = interruption_notes(make_plan(), interrupted(*["off"] * 6))
    assert len(notes) == 2
    assert notes[0].endswith("on 0, off 6.")
    assert "6 are of off (p = 0.031)" in notes[1]


def test_interruptions_without_a_pattern_are_counted_alone():
    assert len(interruption_notes(make_plan(), interrupted("on", "off", "off"))) == 1
    assert interruption_notes(make_plan(), []) == []


def test_the_verdict_does_not_depend_on_them():
    plan = make_plan()
    trials = run(plan, lambda planned: 1000.0 + planned.block)
    plain, told = verdict_of(plan, trials), verdict_of(plan, trials, interruptions=interrupted("off"))
    assert told.primary == plain.primary
    assert "interruptions" not in plain.model_dump_json()
    assert [each.how for each in told.interruptions] == ["SIGINT"]


def test_many_interruptions_and_earlier_tries_stand_in_the_short_form_too():
    earlier = EarlierTry(directory="before", created="2026-11-19T14:00:00+00:00", blocks=6, planned=6)
    plan = make_plan().model_copy(update={"earlier": [earlier], "spending": Spending(end=8, kept=0.01)})
    trials = run(plan, lambda planned: 1000.0 + planned.block)
    told = verdict_of(plan, trials, interruptions=interrupted("on", "off", "off"))
    assert brief(told, plan).watched[:2] == [
        "this is try 2 of the same question in this results directory",
        "3 interruptions ended trials, which ran again",
    ]
