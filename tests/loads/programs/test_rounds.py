"""The turns of client programs: one at a time, in rounds of random order, in whole rounds."""

from __future__ import annotations

import itertools
import json
import queue
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgtrial.loads.engine import events_of
from pgtrial.loads.programs.program import Batch, ProgramOrder
from pgtrial.loads.programs.rounds import Rounds
from pgtrial.loads.programs.run import ProgramRun, left_out

PHASES = [("warmup", 0.05), ("measure", 0.2)]
CLIENT = """
import json, os, sys, time
diary = open("diary", "a", buffering=1)
for token in sys.stdin:
    begin = time.monotonic()
    while time.monotonic() < begin + 0.004: pass
    end = time.monotonic()
    if EXTRA: exec(EXTRA)
    print(json.dumps({"batch": int(token.split()[1]), "ms": 1000 * (end - begin), "operations": 10}), flush=True)
    diary.write(f"{begin} {end} {NAME}\\n")
"""


class Player:
    """Takes turns of the length of a slice and notes them; leaves at a turn of this number."""

    def __init__(self, name: str, rounds: Rounds, game: Game, last: int | None = None) -> None:
        self.name, self.rounds, self.game, self.last = name, rounds, game, last
        rounds.join(self)

    def begin_phase(self, phase: str) -> None:
        self.game.turns.append((self.name, f"begin {phase}", 0))

    def take_turn(self, phase: str, in_phase: int, in_load: int, slice_s: float, began: float) -> None:
        self.game.turns.append((self.name, phase, in_load))
        self.game.now += slice_s
        if self.last == in_load:
            self.rounds.leave(self)

    def report(self) -> None:
        self.game.turns.append((self.name, "report", 0))


class Game:
    """Runs players in simulated time and records their turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns: list[tuple[str, str, int]] = []

    def play(self, *last: int | None, seed: int = 5, measured_s: float = 1.0) -> list[tuple[str, str, int]]:
        self.now, self.turns = 0.0, []
        rounds = Rounds(len(last), 0.25, [("warmup", 0.0), ("measure", measured_s)], seed)
        players = [Player("abc"[number], rounds, self, at) for number, at in enumerate(last)]
        for player in players:
            assert not self.turns
            rounds.begin(player)
        rounds.wait()
        return self.turns


@pytest.fixture
def game(monkeypatch) -> Game:
    made = Game()
    monkeypatch.setattr("pgtrial.loads.programs.rounds.time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_each_has_a_slice_in_each_round(game):
    turns = game.play(None, None, None)
    assert [turn for turn in turns if turn[1].startswith("begin")] == [(name, "begin measure", 0) for name in "abc"]
    of_rounds = [turn for turn in turns if turn[1] == "measure"]
    assert [number for _, _, number in of_rounds] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(sorted(name for name, _, of in of_rounds if of == number) == ["a", "b", "c"] for number in range(4))
    assert [turn[0] for turn in turns if turn[1] == "report"] == ["a", "b", "c"]


def test_long_batches_make_a_load_longer_by_a_round_for_each_phase():
    assert Rounds(3, 0.25, PHASES, 1).overrun_s(30.0) == 180.0
    assert Rounds(2, 0.25, [("warmup", 0.0), ("measure", 1.0)], 1).overrun_s(30.0) == 60.0


def test_the_order_is_drawn_from_the_seed(game):
    def orders(seed: int) -> list[str]:
        return [turn[0] for turn in game.play(None, None, None, seed=seed, measured_s=5.0) if turn[1] == "measure"]

    assert orders(1) == orders(1) != orders(2)
    assert len(orders(1)) == 60
    assert len({tuple(orders(1)[3 * n : 3 * n + 3]) for n in range(20)}) > 3


def test_the_others_go_on_without_one_that_fails(game):
    turns = game.play(1, None)
    assert [number for name, what, number in turns if (name, what) == ("a", "measure")] == [0, 1]
    assert [number for name, what, number in turns if (name, what) == ("b", "measure")] == [0, 1, 2, 3, 4, 5]
    assert [turn[0] for turn in turns if turn[1] == "report"] == ["b"]


def test_one_that_leaves_before_the_start_is_not_waited_for(game):
    rounds = Rounds(2, 0.25, [("measure", 0.5)], 1)
    gone, stays = Player("a", rounds, game), Player("b", rounds, game)
    rounds.leave(gone)
    rounds.begin(stays)
    rounds.wait()
    assert {turn[0] for turn in game.turns} == {"b"}


def has_trouble(run: ProgramRun) -> bool:
    """True if something went wrong other than time lost between batches, which a busy machine may cause."""
    return run.trouble is not None and "of the time from the token to the answer" not in run.trouble


def run_programs(
    path: Path, *programs: dict[str, object], limit_s: float = 60.0
) -> list[tuple[ProgramRun, list[dict]]]:
    """Programs of CLIENT with these variables, in turns; each with its events."""
    rounds, inbox = Rounds(len(programs), 0.02, PHASES, 3), queue.SimpleQueue()
    runs, events = [], {}
    for number, variables in enumerate(programs):
        words = {"EXTRA": "", "NAME": str(number), **variables}
        text = "".join(f"{name} = {value!r}\n" for name, value in words.items()) + CLIENT
        (path / f"client{number}.py").write_text(text)
        order = ProgramOrder(f"{sys.executable} -S client{number}.py", path, {})
        run = ProgramRun(order, rounds, events_file=path / f"{number}.jsonl", inbox=inbox, waits=True)
        runs.append(run.__enter__())
        events[run] = []
    for run in runs:
        run.begin_at(0.0)
    for run, event in events_of(runs, time.monotonic() + limit_s):
        events[run].append(event)
    for run in runs:
        run.__exit__(None, None, None)
    return [(run, events[run]) for run in runs]


def test_two_programs_never_run_at_the_same_time(tmp_path):
    (one, of_one), (other, of_other) = run_programs(tmp_path, {}, {})
    times = sorted(tuple(line.split()) for line in (tmp_path / "diary").read_text().splitlines())
    assert len({name for *_, name in times}) == 2
    assert all(float(first[1]) <= float(second[0]) for first, second in itertools.pairwise(times))
    for run, events in ((one, of_one), (other, of_other)):
        assert not has_trouble(run)
        assert events[-1] is None
        kinds = [event["event"] for event in events[:-1]]
        assert kinds[:3] == ["hello", "connected", "ready"]
        assert kinds[-1] == "done"
        ticks = [event for event in events[:-1] if event["event"] == "tick"]
        done = events[-2]
        for phase in ("warmup", "measure"):
            of_phase = [tick for tick in ticks if tick["phase"] == phase]
            assert sum(tick["transactions"] for tick in of_phase) == done[phase]["transactions"]
            claimed_s = sum(tick["slice"]["client_s"] for tick in of_phase)
            assert done[phase]["tps"] == pytest.approx(done[phase]["transactions"] / claimed_s)
    rounds_of = [
        [event["slice"]["round"] for event in events[:-1] if event["event"] == "tick"] for events in (of_one, of_other)
    ]
    assert rounds_of[0] == rounds_of[1] == list(range(len(rounds_of[0])))
    assert [json.loads(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()] == of_one[:-1]


@pytest.mark.parametrize(
    ("claimed_ms", "trouble", "note"),
    [
        (
            2,
            "claim only 20% of the time from the token to the answer, so most of the time is not measured",
            None,
        ),
        (
            7,
            None,
            "claim only 70% of the time from the token to the answer; the remaining time of the program is not "
            "measured",
        ),
        (9.5, None, None),
    ],
)
def test_what_a_program_leaves_out_of_its_times(claimed_ms, trouble, note):
    batches = [Batch(claimed_ms / 1000, 5, 100.0 + number, 100.01 + number) for number in range(3)]
    for said, expected in zip(left_out(batches, "the client program x", "x"), (trouble, note), strict=True):
        assert (said is None) if expected is None else expected in said


def test_a_program_that_outlasts_the_load_is_named(tmp_path):
    ((run, events),) = run_programs(tmp_path, {"EXTRA": "if '4' in token: time.sleep(600)"}, limit_s=1.0)
    assert str(events[-1]) == f"the client program {run.maker.split(' ', 3)[3]} did not finish in time and was stopped"
    assert "client0.py" in run.maker


def test_the_others_go_on_when_a_program_ends(tmp_path):
    # however slow the machine is, each has a batch in the warm-up and one in the measured part
    (one, of_one), (other, of_other) = run_programs(tmp_path, {"EXTRA": "if '2' in token: sys.exit('error: full')"}, {})
    assert one.trouble is not None
    assert one.trouble.endswith("before it answered `go 2`; its last message: error: full")
    assert of_one[-1] is None
    assert all(event["event"] != "done" for event in of_one[:-1])
    assert not has_trouble(other)
    assert of_other[-2]["event"] == "done"
