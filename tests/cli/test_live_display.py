"""The display of a running study copes with every event in any order, and its faults do not end a study."""

from __future__ import annotations

import io
import math
import threading
import typing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.cli.invocation import Invocation
from pgtrial.cli.live_display import LiveDisplay
from pgtrial.cli.progress import shown
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.progress import (
    BlockEnds,
    JobProgress,
    Preparing,
    ProgressEvent,
    QueryEnds,
    Second,
    StudyBegins,
    StudyEnds,
    TrialBegins,
    TrialEnds,
)
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.machine import Precision
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.trial import Probe, Trial
from tests.conftest import Example

WIDTHS = (80, 20)
ARMS = st.sampled_from(["off", "on", "random_page_cost=1.1", "a name [of] " + "many words " * 8])
TEXTS = st.sampled_from(["", "off: loading the template", "a sentence " * 30]) | st.text(max_size=40)
COUNTS = st.integers(0, 10**9)
NUMBERS = st.floats(0, 1e12)
POINT = LoadPoint(workload="select-only", scale=1, clients=4, protocol="simple")


@pytest.fixture(scope="module")
def trials(example: Example) -> list[Trial]:
    """Returns trials of all kinds: of the committed studies, failed ones, and those of a search for the capacity."""
    kinds = ("huge-pages-1gb", "create-index", "reports-15-18", "app-tasks", "order-entry", "replay-demo")
    real = [example(name).trials()[0] for name in kinds]
    first = real[0]
    probe = Probe(
        rate=900, duration_s=5, tps=890, transactions=4450, slower=3, failed=0, waiting=0, at_percentile_us=None,
        lag_p99_us=None, kept=True,
    )  # fmt: skip
    assert first.measured is not None
    unmeasured = first.measured.model_copy(update={"latency_us": None, "failures": {"40001": 12}})
    return [
        *real,
        *(trial.model_copy(update={"measured": None}) for trial in real),
        *(trial.model_copy(update={"status": "failed", "reason": "its server ended"}) for trial in real),
        first.model_copy(update={"measured": unmeasured}),
        first.model_copy(update={"capacity": 890.0, "probes": [probe, probe]}),
        first.model_copy(update={"capacity": 0.0, "probes": []}),
    ]


def events(trials: list[Trial]) -> st.SearchStrategy[ProgressEvent]:
    """Returns events of all types: those of jobs, suites, searches for the capacity and trials that alternate too."""
    trial = st.sampled_from(trials)
    intervals = st.dictionaries(ARMS, st.tuples(st.floats(-1, 0), st.floats(0, 50)), max_size=2)
    by_type: dict[type, st.SearchStrategy[ProgressEvent]] = {
        Preparing: st.builds(Preparing, TEXTS, stays=st.booleans()),
        StudyBegins: st.builds(StudyBegins, st.just(Path("results/a-study")), COUNTS, COUNTS, COUNTS, NUMBERS),
        TrialBegins: st.builds(
            TrialBegins,
            st.builds(PlannedTrial, index=COUNTS, block=COUNTS, load_point=st.just(0), arm=ARMS, seed=st.just(1)),
            trial.map(lambda one: one.load_point),
            COUNTS,
            COUNTS,
            COUNTS,
            NUMBERS,
            st.lists(ARMS, max_size=3).map(tuple),
        ),
        Second: st.builds(
            Second,
            ARMS,
            st.sampled_from(["warmup", "measure"]),
            COUNTS,
            NUMBERS,
            st.none() | COUNTS,
            st.none() | NUMBERS,
        ),
        JobProgress: st.builds(
            JobProgress,
            ARMS,
            COUNTS,
            st.none() | TEXTS,
            st.none() | TEXTS,
            st.none() | st.floats(0, 1),
            st.none() | NUMBERS,
        ),
        QueryEnds: st.builds(QueryEnds, ARMS, TEXTS, COUNTS, COUNTS, st.booleans()),
        TrialEnds: st.builds(TrialEnds, trial),
        BlockEnds: st.builds(
            BlockEnds,
            COUNTS,
            look=st.booleans(),
            decided=st.booleans(),
            running=st.dictionaries(ARMS, st.floats(-1, 50), max_size=3),
            precision=st.none() | st.builds(Precision, difference=NUMBERS, margin=NUMBERS, blocks=COUNTS),
            metric=st.sampled_from([None, "p99", "response"]),
        ).flatmap(
            lambda ends: intervals.map(
                lambda known: replace(ends, intervals={arm: known[arm] for arm in known if arm in ends.running})
            )
        ),
        StudyEnds: st.builds(StudyEnds, TEXTS, COUNTS),
    }
    assert set(by_type) == set(typing.get_args(ProgressEvent)), "an event that this test does not send"
    return st.one_of(list(by_type.values()))


@given(data=st.data(), width=st.sampled_from(WIDTHS))
def test_the_live_display_draws_every_event_in_any_order(trials, data, width):
    terminal = Terminal(file=io.StringIO(), force_terminal=True, width=width)
    faults: list[Exception] = []
    display = LiveDisplay(terminal.print_line, faults.append)
    for event in data.draw(st.lists(events(trials), max_size=12)):
        display.on_event(event)
        terminal.print(display)
        assert faults == []


@given(data=st.data(), is_terminal=st.booleans(), as_json=st.booleans())
def test_each_way_to_show_a_study_takes_every_event_in_any_order(trials, data, is_terminal, as_json):
    terminal = Terminal(file=io.StringIO(), force_terminal=is_terminal, width=80)
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr("pgtrial.cli.progress.warn", said.append)
        patch.setattr("pgtrial.cli.progress.json_line", lambda content, default: None)
        with shown(terminal, as_json=as_json) as listener:
            for event in data.draw(st.lists(events(trials), max_size=6)):
                listener(event)
        assert said == []


def test_the_seconds_of_a_preliminary_block_are_shown_before_the_first_trial_begins():
    out = io.StringIO()
    with shown(Terminal(file=out, force_terminal=True, width=80), as_json=False) as listener:
        listener(Preparing("a preliminary block, which does not count, finds the lengths of trials", stays=True))
        listener(Second("random_page_cost=1.1", "warmup", 0, 3210.0))
        listener(Second("random_page_cost=4", "warmup", 0, 1605.0))
        listener(StudyEnds("all 8 planned blocks are complete", 8))
    assert "warm-up, slice 1 of random_page_cost=4: 1,605 tps" in out.getvalue()
    assert "end: all 8 planned blocks are complete" in out.getvalue()


@pytest.mark.parametrize("with_debug", [False, True])
def test_a_fault_of_the_live_display_is_reported_at_the_end_and_the_study_is_shown_by_lines(
    capsys, monkeypatch, with_debug
):
    monkeypatch.setattr(Invocation, "tracebacks", with_debug)
    out = io.StringIO()
    with shown(Terminal(file=out, force_terminal=True, width=80), as_json=False) as listener:
        listener(StudyBegins(Path("results/a-study"), 8, 0, 4, 60.0))
        # An infinite remaining time is a value that the display cannot draw.
        listener(TrialBegins(PlannedTrial(index=0, block=0, load_point=0, arm="on", seed=1), POINT, 1, 8, 4, math.inf))
        listener(Preparing("off: loading the template", stays=True))  # above what is drawn anew, which fails
        listener(BlockEnds(0, look=False, decided=False, running={}))
        assert capsys.readouterr().err == ""
    assert "block 1/4 complete; no estimate yet" in out.getvalue()
    told = capsys.readouterr().err
    assert (
        "the study itself was not affected: OverflowError: cannot convert float infinity to integer; this is a fault"
        in told
    )
    assert ("Traceback" in told) == with_debug
    assert ("with --debug" in told) == (not with_debug)


def test_nothing_is_drawn_while_a_line_is_printed_that_stays():
    drawn = threading.Event()
    drawn_meanwhile: list[bool] = []
    drawing = threading.Thread(target=lambda: (live.refresh(), drawn.set()))

    class Busy(Terminal):
        def print(self, *texts: object, **options: object) -> None:
            if threading.current_thread() is threading.main_thread() and "end: done" in texts:
                drawing.start()
                drawn_meanwhile.append(drawn.wait(0.3))
            super().print(*texts, **options)

    terminal = Busy(file=io.StringIO(), force_terminal=True, width=80)
    with shown(terminal, as_json=False) as listener:
        (live,) = terminal._live_stack
        listener(StudyEnds("done", 8))
    assert drawn_meanwhile == [False]
    assert drawn.wait(60)
    drawing.join()


def test_an_output_that_fails_does_not_end_a_study(capsys):
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    with shown(Terminal(file=Full(), force_terminal=False), as_json=False) as listener:
        listener(Preparing("loading"))
        listener(StudyEnds("all 8 planned blocks are complete", 8))
    assert "No space left on device" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_ends_the_study():
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with shown(Terminal(file=Gone(), force_terminal=False), as_json=False) as listener, pytest.raises(BrokenPipeError):
        listener(Preparing("loading"))
