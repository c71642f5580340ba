"""Studies over six numbers of clients and over six sizes on real servers: what they hold, not how fast they are."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest

from pgtrial.conduct.progress import TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.statistics.scalability import FEWEST_BLOCKS, scalability
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.running import ask_to_stop
from pgtrial.verdict.grid import Grid
from tests.conduct.small import FAST, GENTLE, once, small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server

SHORT = {"warmup": "100ms", "duration": "1s"}


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def run(study: StudyDirectory) -> None:
    """Runs the first block, and stores copies of its trials, with some noise, as the trials of all other blocks."""
    run_study(study, once(lambda event: isinstance(event, TrialBegins), lambda: ask_to_stop(study.path)))
    noise = np.random.default_rng(3)
    first = {(trial.load_point, trial.arm): trial for trial in study.trials()}
    for planned in study.plan.trials[len(first) :]:
        trial = first[study.plan.load_points[planned.load_point], planned.arm]
        assert trial.measured is not None
        measured = trial.measured.model_copy(
            update={"transactions": round(trial.measured.transactions * noise.normal(1, 0.02))}
        )
        shutil.copytree(study.trial_path(trial), study.begin_trial(planned), dirs_exist_ok=True)
        own = {"index": planned.index, "block": planned.block, "seed": planned.seed, "measured": measured}
        study.write_trials([trial.model_copy(update=own)])


def report_of(study: StudyDirectory) -> str:
    build_report(study)
    return (study.path / "report.md").read_text()


def test_six_numbers_of_clients_give_a_law_of_each_arm(tmp_path):
    clients = [1, 2, 3, 4, 6, 8]
    load = {**SHORT, "workload": GENTLE, "clients": clients, "interleave": "auto"}
    study = small_study(tmp_path / "s", FEWEST_BLOCKS, load=load)
    run(study)
    result = read_data(study).result
    grid = Grid(study.plan, study.trials())
    assert [of_arm.arm for of_arm in result.scaling] == ["base", "no jit"]
    for of_arm in result.scaling:
        assert (of_arm.clients, of_arm.blocks, of_arm.left_out) == (clients, FEWEST_BLOCKS, 0)
        assert [study.plan.load_points[point].clients for point in of_arm.load_points] == clients
        medians = {
            level.load_point: level.tps.median for level in result.levels if level.arm == of_arm.arm and level.tps
        }
        for point, tps in zip(of_arm.load_points, of_arm.tps, strict=True):
            assert math.log(tps) == pytest.approx(math.log(medians[point]), abs=1.0)
        law = of_arm.law
        assert law is not None
        assert len(law.tps) == len(clients)
        assert law.single.value is not None
        assert law.single.value > 0
        assert 0 <= (law.serial.value or 0) <= 1
        of_trials = [
            [
                math.log(grid.goodput(trial))
                for point in of_arm.load_points
                if (trial := grid.trial(block, point, of_arm.arm))
            ]
            for block in grid.counted
        ]
        again = scalability(clients, np.asarray(of_trials))
        assert again is not None
        assert law.fits == again.fits
    report = report_of(study)
    assert "## Over clients and sizes" in report
    assert "The universal scalability law" in report


def test_six_sizes_give_a_line_of_each_arm_and_what_reads_do(tmp_path):
    """shared_buffers hold the smallest database alone. Servers of their own, or reads would be of both arms."""
    scales = [1, 2, 3, 4, 6, 8]
    # what the server reads is counted from when the lab hears of the measured part, which may be late
    load = {**SHORT, "workload": "select-only", "scale": scales, "duration": "3s"}
    study = small_study(tmp_path / "s", 2, load=load, server={"settings": {**FAST, "shared_buffers": "20MB"}})
    run(study)
    result = read_data(study).result
    assert [of_arm.arm for of_arm in result.cliffs] == ["base", "no jit"]
    for of_arm in result.cliffs:
        assert (of_arm.scales, of_arm.blocks, of_arm.left_out) == (scales, 2, 0)
        assert {round(scale, 6) for scale, _ in of_arm.line} >= set(scales)
        assert all(cliff.reads is not None for cliff in of_arm.cliffs)
        reads = {
            cost.load_point: cost.median
            for cost in result.costs
            if (cost.what, cost.arm) == ("buffers read", of_arm.arm) and cost.median is not None
        }
        smallest, largest = (reads.get(of_arm.load_points[place], 0.0) for place in (0, -1))
        assert largest > smallest + 0.1
    assert "Cliffs over the size of the data" in report_of(study)
