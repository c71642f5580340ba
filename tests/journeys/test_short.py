"""Journeys of some seconds, in a terminal of 80 columns: a small study with the lengths that a person gives.

The long ones, with all defaults, are in test_long.py.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.journeys.conftest import Open
from tests.journeys.pages import command_of

pytestmark = pytest.mark.server

LOAD = "--workload tpcb-like --scale 1 --clients 1 --warmup 500ms --duration 1s"
TWO_BLOCKS = f"pgtrial compare synchronous_commit=on synchronous_commit=off {LOAD} --blocks 2"
MANY_BLOCKS = f"pgtrial compare synchronous_commit=on synchronous_commit=off {LOAD} --blocks 200"


def a_trial_runs(screen: list[str]) -> bool:
    """True if the live display shows a second of a trial."""
    return any(re.match(r"now +(warm-up|measuring), ", line) for line in screen)


def test_the_screen_shows_the_trial_while_it_runs_and_the_verdict_and_the_end_when_it_has_ended(open_terminal: Open):
    screen = open_terminal()
    screen.begin(TWO_BLOCKS)
    seen: list[str] = []

    def the_first_block_runs(shown: list[str]) -> bool:
        seen[:] = shown
        in_block = any(line.startswith("trial ") and "block 1 of 2" in line for line in shown)
        return a_trial_runs(shown) and in_block and any("tpcb-like, scale 1, 1 client" in line for line in shown)

    screen.watch(the_first_block_runs)
    assert all(len(line) <= 80 for line in seen)
    done = screen.end()
    assert done.status == 0, done.text
    assert done.says("end: all 2 planned blocks are complete")
    assert re.search(r"^UNDECIDED ", done.text, re.MULTILINE), done.text
    assert re.search(r"^report: results/compare-", done.text, re.MULTILINE), done.text
    assert "now " not in done.text, "the live display is gone"
    assert "Traceback" not in done.text


def test_the_command_that_is_named_as_next_works_in_the_same_terminal(open_terminal: Open):
    screen = open_terminal()
    first = screen.run(TWO_BLOCKS)
    (directory,) = set(re.findall(r"results/compare-[\d-]+", first.text))
    shown = screen.run(f"pgtrial verdict {directory}")
    assert (shown.status, "UNDECIDED" in shown.text) == (2, True), shown.text
    more = screen.run(f"pgtrial run {directory} --more 1")
    assert more.status == 0, more.text
    assert more.says("end: all 3 planned blocks are complete")
    assert more.says("going on after 2 blocks with 1 more")


def test_a_second_run_of_the_same_line_begins_another_study(open_terminal: Open, tmp_path: Path):
    screen = open_terminal()
    assert screen.run(TWO_BLOCKS).status == 0
    again = screen.run(TWO_BLOCKS)
    assert again.status == 0, again.text
    assert len(list((tmp_path / "results").iterdir())) == 2


def test_after_ctrl_c_the_same_line_goes_on_with_the_same_study(open_terminal: Open, tmp_path: Path):
    screen = open_terminal()
    screen.begin(MANY_BLOCKS)
    screen.watch(lambda shown: any(line.startswith("trial") and "block 2 of" in line for line in shown))
    screen.interrupt()
    done = screen.end()
    assert done.status == 130, done.text
    (directory,) = (tmp_path / "results").iterdir()
    assert done.says(f"go on with: pgtrial run results/{directory.name}")
    assert "Traceback" not in done.text
    screen.begin(MANY_BLOCKS)
    screen.watch(lambda shown: any(line.startswith("trial") and "block 3 of" in line for line in shown))
    screen.interrupt()
    again = screen.end()
    assert again.says(f"going on with results/{directory.name}: ")
    assert [path.name for path in (tmp_path / "results").iterdir()] == [directory.name]


def test_a_gate_that_was_interrupted_names_the_command_of_the_gate(open_terminal: Open, tmp_path: Path):
    (tmp_path / "gate.toml").write_text(
        '[load]\nworkload = "select-only"\nscale = 1\nclients = 1\nwarmup = "500ms"\nduration = "1s"\n'
        "[arms.a]\n[arms.b]\n"
    )
    gate = "pgtrial gate jit=on jit=off --study gate.toml --budget 10min --summary gate.md"
    screen = open_terminal()
    screen.begin(gate)
    screen.watch(a_trial_runs)
    screen.interrupt()
    done = screen.end()
    (directory,) = (tmp_path / "results").iterdir()
    assert done.status == 130, done.text
    assert done.says(f"go on with: {gate} --results results/{directory.name}")
    screen.begin(f"{gate} --results results/{directory.name}")
    screen.watch(a_trial_runs)
    screen.interrupt()
    assert screen.end().says(f"going on with results/{directory.name}")


def test_a_window_that_is_resized_while_a_study_runs(open_terminal: Open):
    screen = open_terminal()
    screen.begin(MANY_BLOCKS)
    screen.watch(a_trial_runs)
    for columns, lines in ((40, 12), (20, 24), (132, 50)):
        screen.resize(columns, lines)
        screen.watch(lambda shown: any(line.startswith("left ") and "about" in line for line in shown))
        assert all(len(line) <= columns for line in screen.screen)
    screen.interrupt()
    done = screen.end()
    assert done.status == 130, done.text
    assert not done.says("the display of this study failed")


def test_without_colours_and_into_a_file(open_terminal: Open, tmp_path: Path):
    screen = open_terminal({"NO_COLOR": "1"})
    done = screen.run(TWO_BLOCKS)
    assert (done.status, "UNDECIDED" in done.text) == (0, True), done.text
    into_a_file = screen.run(f"{TWO_BLOCKS} --new > told.txt")
    assert into_a_file.status == 0, into_a_file.text
    told = (tmp_path / "told.txt").read_text()
    assert "\x1b" not in told
    assert [line.split(",")[0] for line in told.splitlines() if line.startswith("trial ")] == [
        f"trial {number}/4" for number in (1, 2, 3, 4)
    ]
    assert "\nend: all 2 planned blocks are complete" in told
    assert "\nUNDECIDED" in told


def test_a_reader_of_the_output_that_goes_away_is_no_regression(open_terminal: Open):
    done = open_terminal().run(f"{TWO_BLOCKS} | head -1; echo status of pgtrial: ${{PIPESTATUS[0]}}")
    assert "status of pgtrial: 0" in done.text, done.text


def test_the_tour_and_what_is_here(open_terminal: Open):
    screen = open_terminal()
    for words in (
        "pgtrial facts",
        "pgtrial list",
        "pgtrial cleanup --unused",
        "pgtrial pack list",
        "@os-comparison --profile full",
    ):
        done = screen.run(command_of("docs/tour.md", words))
        assert done.status == 0, done.text
        assert "Traceback" not in done.text


def test_a_budget_that_ends_before_a_verdict_says_so_and_the_next_command_and_the_same_line_go_on(
    open_terminal: Open, tmp_path: Path
):
    line = f"pgtrial compare synchronous_commit=on synchronous_commit=off {LOAD} --blocks 8 --budget 1min"
    screen = open_terminal()
    screen.begin(line)
    screen.watch(lambda shown: any(line.startswith("trial") and "block 2 of" in line for line in shown))
    screen.interrupt()
    assert screen.end().status == 130
    (directory,) = (tmp_path / "results").iterdir()
    for trial in (directory / "trials").glob("*-b00-*/trial.json"):
        make_slow(trial)

    ended = screen.run(line)
    assert ended.status == 0, ended.text
    assert (
        "end: the budget of 1min ended after 2 of 8 blocks: a verdict takes 8 blocks, and 6 more blocks" in ended.joined
    )
    assert "UNDECIDED" in ended.text
    assert ended.says("2 of 8 blocks are complete, and a verdict takes 8 (6 more blocks, about ")

    screen.begin(line)
    screen.watch(lambda shown: any(line.startswith("trial") and "block 3 of" in line for line in shown))
    screen.interrupt()
    assert screen.end().says(f"going on with results/{directory.name}")

    (following,) = re.findall(r"next +(pgtrial run \S+) goes on", ended.joined)
    gone_on = screen.run(following)
    assert gone_on.status == 0, gone_on.text
    assert gone_on.says("end: all 8 planned blocks are complete") or gone_on.says("end: the intervals of all")
    assert not gone_on.says("after 2 of 8 blocks")
    assert [path.name for path in (tmp_path / "results").iterdir()] == [directory.name]


def make_slow(trial: Path) -> None:
    """Makes a stored trial begin 20 minutes earlier, as on a machine that was busy meanwhile."""
    content = json.loads(trial.read_text())
    began = datetime.fromisoformat(content["started"]) - timedelta(minutes=20)
    trial.write_text(json.dumps({**content, "started": began.isoformat()}))
