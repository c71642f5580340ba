"""Lengths that a preliminary block finds on real servers: stored before the first block, and kept after a crash."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from typing import Any

import psutil
import pytest

from pgtrial.conduct.planning.block_estimates import planned_lengths
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing, ProgressEvent, Second, TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.marks import in_toml
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.interruptions import read_interruptions
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, PGTRIAL, STUDY, each_once, once, small_study, start_lab
from tests.conftest import require_engine
from tests.processes import until

pytestmark = pytest.mark.server

KILLED_STUDY = (
    STUDY.replace('warmup = "500ms"\n', "")
    .replace('duration = "5s"', 'duration = "1s"')
    .replace('interleave = "off"', 'interleave = "INTERLEAVE"')
    .replace("blocks = 1", 'blocks = 1\nbudget = "2min"')
)


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def auto(path, blocks=2, **sections: Any) -> StudyDirectory:
    load = {"warmup": "auto", "duration": "1s", "interleave": "auto", **sections.pop("load", {})}
    verdict = {"budget": "2min", **sections.pop("verdict", {})}
    return small_study(path, blocks=blocks, load=load, verdict=verdict, **sections)


def texts(events: list[ProgressEvent]) -> list[str]:
    return [in_toml(event.text) for event in events if isinstance(event, Preparing)]


def test_a_preliminary_block_finds_the_lengths_and_does_not_count(tmp_path):
    study = auto(tmp_path / "s")
    before = study.plan
    events: list[ProgressEvent] = []
    run_study(study, events.append)
    plan = StudyDirectory.open(study.path).plan
    assert each_once(study)
    assert plan.lengths is not None
    found = plan.lengths.preliminary
    assert found is not None
    assert {(shape.load_point, shape.arm) for shape in found.shapes} == {(0, "base"), (0, "no jit")}
    assert plan.interleaving is not None
    # 250 ms, unless this machine was so busy in the first warm-up that it took longer slices
    slice_s = plan.interleaving.slice_at(0)
    for shape in found.shapes:
        assert (shape.step_s, found.load_s >= 3) == (slice_s, True)
        assert len(shape.speeds) == found.load_s / slice_s
        assert sum(shape.speeds) > 0
    assert 0 < found.overhead_s == pytest.approx(found.wall_s - 2 * found.load_s, abs=0.01)
    assert (plan.trials, plan.looks, plan.duration_s) == (before.trials, before.looks, 1)
    assert plan.block_estimate_s == pytest.approx(found.overhead_s + 2 * (plan.warmup_s + 1))
    for trial in study.trials():
        slices = study.slices(trial)
        assert len(slices.filter(phase="warmup")) == plan.warmup_s / slice_s
        assert len(slices.filter(phase="measure")) == 1 / slice_s
    sentences = texts(events)
    assert "a preliminary block, which does not count, finds the lengths of trials" in sentences
    (chosen,) = [text for text in sentences if text.startswith("lengths: ") and "measured:" in text]
    assert "and 1s measured: the speed" in chosen
    first = next(number for number, event in enumerate(events) if isinstance(event, TrialBegins))
    assert events.index(Preparing(chosen, stays=True)) < first
    assert read_data(study).result.blocks_complete == 2


def test_after_a_crash_the_study_goes_on_with_the_lengths_that_were_found(tmp_path):
    study = auto(tmp_path / "s", blocks=1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    in_preliminary = once(lambda event: isinstance(event, Second), interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, in_preliminary)
    assert StudyDirectory.open(study.path).plan == study.plan
    assert study.plan.awaits_lengths
    assert read_interruptions(study.path) == []
    with pytest.raises(KeyboardInterrupt):
        run_study(study, once(lambda event: isinstance(event, TrialBegins), interrupt))
    there = StudyDirectory.open(study.path)
    assert not there.plan.awaits_lengths
    assert there.trials() == []
    events: list[ProgressEvent] = []
    run_study(there, events.append)
    assert not [text for text in texts(events) if "preliminary" in text]
    assert there.plan == StudyDirectory.open(study.path).plan
    assert each_once(there)


_SBTEST = {"workload": "oltp_point_select", "sysbench": {"tables": 1, "table_size": 1000}}
LOADS = {
    "sysbench": _SBTEST,
    "sysbench one after the other": {**_SBTEST, "interleave": "off"},
    "sysbench at a rate": {**_SBTEST, "rate": 40},
    "pgbench at a rate": {"workload": "select-only", "rate": 40},
}


@pytest.mark.parametrize("name", LOADS)
def test_lengths_are_found_for_other_loads(tmp_path, name):
    load = LOADS[name]
    scale = {} if "sysbench" in load else {"scale": 1}
    arms = {"a": {}, "b": {"settings": {"jit": "off"}}}
    given = {"clients": 2, "warmup": "auto", "duration": "2s", **scale, **load}
    content = {"load": given, "arms": arms, "server": {"settings": FAST}}
    spec = build_study({**content, "verdict": {"blocks": 1, "budget": "2min"}}, "test")
    study = StudyDirectory.create(tmp_path / "s", spec, plan_now(spec))
    run_study(study, lambda event: None)
    assert study.plan.lengths is not None
    found = study.plan.lengths.preliminary
    assert found is not None
    assert all(any(shape.speeds) for shape in found.shapes)
    if "sysbench" in load:  # it takes whole seconds
        assert study.plan.warmup_s == round(study.plan.warmup_s) > 0
    assert each_once(study)
    assert [trial.reason for trial in study.trials()] == [None, None]
    for trial in study.trials():
        assert trial.measured is not None
        assert trial.measured.transactions > 0


@pytest.mark.parametrize("interleave", ["auto", "off"])
def test_a_lab_that_is_killed_in_the_preliminary_block_goes_on_as_if_that_had_not_begun(
    tmp_path, postmasters, interleave
):
    lab = start_lab(tmp_path, KILLED_STUDY.replace("INTERLEAVE", interleave))

    def engines():
        found = []
        for note in tmp_path.glob("results/*/trials/.*/engine.pid"):
            with suppress(FileNotFoundError, json.JSONDecodeError):  # it is just written, or removed
                found.append(json.loads(note.read_text())["pid"])
        return found

    try:
        until(lambda: bool(engines()) or lab.poll() is not None, "an engine of the preliminary block runs")
    finally:
        lab.kill()
        _, err = lab.communicate()
    orphans = engines()
    assert orphans, err
    (path,) = (tmp_path / "results").iterdir()
    killed = StudyDirectory.open(path)
    assert killed.plan.awaits_lengths
    assert killed.unfinished() != []

    done = subprocess.run([PGTRIAL, "run", path], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a preliminary block, which does not count, finds the lengths of trials" in done.stdout
    assert not any(map(psutil.pid_exists, orphans))
    assert not postmasters()
    study = StudyDirectory.open(path)
    assert not study.plan.awaits_lengths
    assert each_once(study)
    assert read_interruptions(path) == []
    assert "interruption" not in (path / "report.md").read_text()


def test_one_after_the_other_and_with_long_transactions_the_slices_are_found_first(tmp_path):
    alone = auto(tmp_path / "alone", blocks=1, load={"interleave": "off"})
    run_study(alone, lambda event: None)
    assert alone.plan.lengths is not None
    assert alone.plan.lengths.preliminary is not None
    assert [shape.step_s for shape in alone.plan.lengths.preliminary.shapes] == [1.0, 1.0]
    assert each_once(alone)

    (tmp_path / "slow.sql").write_text("SELECT pg_sleep(0.15);\n")
    load = {"workload": "slow.sql", "scale": 1, "duration": "auto"}
    slow = auto(tmp_path / "slow", blocks=8, folder=tmp_path, load=load)
    assert slow.plan.interleaving is not None

    def stop(event: ProgressEvent) -> None:
        if isinstance(event, TrialBegins):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(slow, stop)
    assert slow.plan.interleaving is not None
    (slice_s,) = slow.plan.interleaving.longer.values()
    assert slice_s >= 5 * 0.15
    assert slow.plan.duration_s % slice_s == 0
    assert slow.plan.duration_s >= 2 * slice_s
    assert slow.plan.lengths is not None
    found = slow.plan.lengths.preliminary
    assert found is not None
    # the trials that found the slices too short were in their warm-up of a second for each arm, and are no overhead
    assert found.overhead_s <= found.wall_s - 2 * found.load_s - 2


def test_a_plan_from_before_there_were_chosen_lengths_is_read_and_goes_on(tmp_path):
    study = small_study(tmp_path / "s", blocks=1)
    assert "lengths" not in (study.path / "plan.json").read_text()
    run_study(study, lambda event: None)
    lengths = planned_lengths(study.plan)
    assert (lengths.warmup_s, lengths.duration_s, lengths.chosen) == (0.4, 2, None)
    assert make_plan(study.spec, study.plan.seed, study.plan.created) == study.plan
