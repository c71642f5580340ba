"""A running study as its pages see it: records that grow, are long, or begin anew, and the drawing of the estimates."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from pgtrial.model.records.job import JobLoad
from pgtrial.report.serve import live as live_module
from pgtrial.report.serve.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, narrowing, spark
from pgtrial.report.serve.live import SHOWN_S, Live
from pgtrial.report.serve.pages import Pages
from pgtrial.store.directory import JOB_PROGRESS
from tests.verdict.declared import at_the_rate, declaring, with_latency
from tests.verdict.slices import interleaved_plan
from tests.verdict.studies import POINT, make_plan, noisy, run

from .conftest import Audit, write_study


@pytest.fixture
def study(tmp_path):
    plan = make_plan()
    return write_study(tmp_path / "s", plan, run(plan, noisy({"off": 1.4}), upto=4), Audit(findings=[]), "Live?")


def tick(second, transactions, phase="measure", **more):
    event = {"event": "tick", "phase": phase, "second": second, "seconds": 1.0, "transactions": transactions, **more}
    return json.dumps(event) + "\n"


def begun(study, index=4):
    return study.begin_trial(study.plan.trials[index]) / "engine.jsonl"


def test_a_record_is_read_as_it_grows(study):
    with study.locked():
        live = Live(study.path)
        assert live.look().under_way == []
        record = begun(study)
        assert live.look().under_way[0].phase is None
        record.write_text('{"event":"hello"}\n' + tick(0, 90, "warmup") + tick(0, 100) + tick(1, 200)[:20])
        (trial,) = live.look().under_way
        assert (trial.phase, trial.second, trial.tps) == ("measure", 0, [90.0, 100.0])
        with record.open("a") as file:
            file.write(tick(1, 200)[20:])
        assert live.look().under_way[0].tps == [90.0, 100.0, 200.0]
        begun(study).write_text(tick(0, 7))
        assert live.look().under_way[0].tps == [7.0]
    assert not live.look().running


def test_a_job_shows_what_postgresql_reports_of_it(tmp_path):
    plan = make_plan(points=[POINT.model_copy(update={"job": JobLoad(limit_s=60)})])
    study = write_study(tmp_path / "j", plan, [], Audit(findings=[]), "How long?")
    with study.locked():
        record, live = begun(study, 0), Live(study.path)
        record.write_text(tick(2, 0))
        assert live.look().under_way[0].job is None
        progress = record.with_name(JOB_PROGRESS)
        progress.write_text('{"command": "create index", "phase": "building index", "share": 0.453}')
        assert live.look().under_way[0].job == "create index: building index, 45%"
        progress.write_text("null")
        assert live.look().under_way[0].job is None
        progress.write_text('{"command": "create')
        assert live.look().under_way[0].job is None


def test_of_a_long_record_the_end_is_read(study):
    """The file is longer than the part that the first look reads, and this part begins in the middle of a line."""
    beginning = tick(0, 1e9, padding="x" * 2**21)
    with study.locked():
        begun(study).write_text(beginning + "".join(tick(second, second) for second in range(1, SHOWN_S)))
        (trial,) = Live(study.path).look().under_way
    assert trial.second == SHOWN_S - 1
    assert trial.tps == [float(second) for second in range(1, SHOWN_S)]


def test_trials_that_alternate_are_seen_together_at_the_speed_of_their_slices(tmp_path):
    plan = interleaved_plan(blocks=8)
    study = write_study(tmp_path / "s", plan, [], Audit(findings=[]), "Side by side?", slices={})
    clients = plan.load_points[plan.trials[0].load_point].clients
    with study.locked():
        for index in (0, 1):
            begun(study, index).write_text(tick(0, 50, slice={"round": 0, "client_s": 0.25 * clients}))
        look = Live(study.path).look()
    assert {each.planned.arm for each in look.under_way} == set(plan.arms)
    assert [each.tps for each in look.under_way] == [[200.0], [200.0]]
    assert len(look.queue) == len(plan.due) - 2


def test_trials_are_analysed_when_a_block_is_complete(study, monkeypatch):
    read = []
    monkeypatch.setattr(
        live_module, "read_measured", lambda study, data=live_module.read_measured: read.append(1) or data(study)
    )
    with study.locked():
        live = Live(study.path)
        for index in (4, 5, 6):
            live.look()
            live.look()
            trial = run(study.plan, noisy({}))[index]
            where = study.begin_trial(study.plan.trials[index])
            shutil.copy(next(study.path.glob("trials/0000-*/timeline.parquet")), where)
            study.write_trials([trial])
        assert (live.look().blocks, live.look().stored) == (3, 7)
    assert len(read) == 2


def test_what_cannot_be_read_is_one_sentence_and_comes_back(study):
    plan = (study.path / "plan.json").read_text()
    with study.locked():
        live = Live(study.path)
        (study.path / "plan.json").write_text("{")
        assert "plan.json is damaged" in (live.look().trouble or "")
        (study.path / "plan.json").write_text(plan)
        assert live.look().trouble is None
        assert live.look().so_far[0].claim.arm == "off"


def test_intervals_are_drawn_inside_the_drawing(tmp_path):
    plan = make_plan(("on", "off", "local"), blocks=12)
    trials = run(plan, noisy({"off": 1.4, "local": 0.9}, sd=0.2), upto=30)
    study = write_study(tmp_path / "s", plan, trials, Audit(findings=[]), "Drawn?")
    with study.locked():
        look = Live(study.path).look()
    drawn = narrowing(look.so_far, plan.arms, plan.margin, plan.end)
    assert drawn is not None
    assert [(band.name, band.index) for band in drawn.bands] == [("off", 2), ("local", 3)]
    for band in drawn.bands:
        points = [tuple(map(float, point)) for point in re.findall(r"([\d.]+),([\d.]+)", f"{band.area} {band.line}")]
        assert len(points) == 3 * len(look.so_far[0].steps)
        assert all(LEFT <= x <= WIDTH - RIGHT and TOP <= y <= HEIGHT - BOTTOM for x, y in points)
    assert "0" in [tick.label for tick in drawn.rows]
    assert [tick.label for tick in drawn.columns] == [str(block) for block in range(1, 13)]
    assert TOP < drawn.zero < HEIGHT - BOTTOM


@pytest.mark.parametrize(
    ("metrics", "words"),
    [(["p99"], r"p99 of off is 2\d% higher than that of on so far"), ([], "off is .* than on so far")],
)
def test_estimates_so_far_are_of_the_metric_that_decides(tmp_path, metrics, words):
    plan = declaring(*metrics)
    of_both = at_the_rate(plan, lambda _, trial: with_latency(trial, p99=10_000 if trial.arm == "off" else 8_000))
    trials = [trial for trial in of_both if trial.block < 6]
    study = write_study(tmp_path / "s", plan, trials, Audit(findings=[]), "Which tail is shorter?")
    with study.locked():
        look = Live(study.path).look()
    assert re.search(words, Pages("/", []).parts(look)["so-far"])


def test_without_an_interval_nothing_is_drawn(study):
    with study.locked():
        look = Live(study.path).look()
    assert look.blocks == 2
    assert narrowing(look.so_far, ["on", "off"], 0.01, 8) is None


def test_throughput_is_drawn_up_to_now():
    assert spark([]) == spark([5.0]) == spark([0.0, 0.0]) == ""
    points = [point.split(",") for point in spark([10.0, 20.0, 0.0]).split()]
    assert [float(y) for _, y in points] == [5.25, 0.5, 10.0]
    assert float(points[-1][0]) == 100.0


def test_tables_that_the_estimates_do_not_need_are_not_read_beside_the_measurement(study):
    for trial in study.trials():
        for name in ("waits", "observed"):
            study.table_path(trial, name).write_bytes(b"no table")
    with study.locked():
        look = Live(study.path).look()
    assert look.trouble is None
    assert look.so_far
