"""The progress of a study, line by line and as JSON Lines."""

from __future__ import annotations

import io
import json

import pytest

from pgtrial.cli.live_display import sparkline
from pgtrial.cli.progress import shown
from pgtrial.cli.progress_words import how_far
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.progress import BlockEnds, JobProgress, Second, TrialBegins
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.machine import Precision
from pgtrial.model.records.plan import PlannedTrial

POINT = LoadPoint(workload="select-only", scale=1, clients=4, protocol="simple")
FOURTH = BlockEnds(
    3, look=False, decided=False, running={"off": 0.03}, precision=Precision(difference=0.061, margin=0.069, blocks=12)
)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            FOURTH,
            "off is 3.0% faster (not yet decided); by the end it finds a difference of 6.1% (80% power) and "
            "establishes a margin of 6.9%",
        ),
        (BlockEnds(2, look=False, decided=False, running={"off": 0.03}), "off is 3.0% faster (not yet decided)"),
        (
            BlockEnds(6, look=False, decided=False, running={"off": 0.03}, intervals={"off": (-0.011, 0.07)}),
            "off is 3.0% faster (-1.1 to +7.0% at the last look) (not yet decided)",
        ),
        (
            BlockEnds(7, look=True, decided=True, running={"off": 0.03}, precision=FOURTH.precision),
            "off is 3.0% faster (a planned look at the verdict, decided)",
        ),
        (
            BlockEnds(11, look=True, decided=False, running={"off": 0.03}, precision=FOURTH.precision),
            "off is 3.0% faster (a planned look at the verdict, not yet decided)",
        ),
        (
            BlockEnds(6, look=False, decided=False, running={"off": -0.12}, metric="p99"),
            "p99 of off is 12% lower (not yet decided)",
        ),
        (
            BlockEnds(6, look=False, decided=False, running={"off": 0.03}, metric="response"),
            "off is 3.0% faster (not yet decided)",
        ),
    ],
    ids=["known", "too early", "with its interval", "decided", "no look to come", "of a percentile", "of a speed"],
)
def test_from_the_fourth_block_on_the_progress_tells_what_the_study_can_find_while_nothing_is_decided(event, told):
    out = io.StringIO()
    with shown(Terminal(file=out, force_terminal=False), as_json=False) as listener:
        listener(event)
    assert out.getvalue().rstrip().endswith(f"estimate so far: {told}")


def test_blocks_that_say_nothing_are_told_as_such():
    out = io.StringIO()
    with shown(Terminal(file=out, force_terminal=False), as_json=False) as listener:
        listener(BlockEnds(7, look=True, decided=False, running={}))
    assert (
        out.getvalue().rstrip().endswith("complete; no estimate yet (a planned look at the verdict, not yet decided)")
    )


@pytest.mark.parametrize(("values", "drawn"), [([], ""), ([0, 0], "▁▁"), ([0, 700, 350, 100], "▁█▅▂"), ([5], "█")])
def test_seconds_are_drawn_as_bars_beside_the_highest(values, drawn):
    assert sparkline(values) == drawn


def test_json_lines_hold_it_as_numbers(capsys):
    with shown(Terminal(), as_json=True) as listener:
        listener(FOURTH)
    assert json.loads(capsys.readouterr().out)["precision"] == {"difference": 0.061, "margin": 0.069, "blocks": 12}


def test_the_live_display_shows_it_as_well():
    out = io.StringIO()
    with shown(Terminal(file=out, force_terminal=True, width=160), as_json=False) as listener:
        listener(TrialBegins(PlannedTrial(index=7, block=3, load_point=0, arm="off", seed=1), POINT, 8, 24, 12, 60.0))
        listener(FOURTH)
        for second, tps in enumerate((100.0, 700.0)):
            listener(Second("off", "measure", second, tps))
    assert "finds a difference of 6.1%" in out.getvalue()
    assert "▂█ off" in out.getvalue()


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            JobProgress("on", 12, "create index", "building index: scanning table", 0.45, 8.2),
            "second 12, create index: building index: scanning table, 45%, about 8s left of it",
        ),
        (JobProgress("on", 3, "vacuum", "", None, None), "second 3, vacuum"),
        (JobProgress("on", 3, None, None, None, None), "second 3"),
    ],
)
def test_a_job_shows_how_far_the_server_says_that_it_is(progress, text):
    assert how_far(progress) == text


def test_the_progress_of_a_job_is_an_event_of_the_json_lines(capsys):
    with shown(Terminal(file=io.StringIO(), force_terminal=False), as_json=True) as listener:
        listener(JobProgress("on", 12, "vacuum", "scanning heap", 0.5, 3.0))
    event = json.loads(capsys.readouterr().out)
    assert (event["event"], event["command"], event["share"]) == ("job_progress", "vacuum", 0.5)
