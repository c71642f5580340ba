"""A study of an application's tasks on real servers with the real engine, from planning to the report."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.run_study import run_study
from pgtrial.model.records.trial import TaskSummary, Trial
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.report.sections import draw
from pgtrial.servers.arm import Needs
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, templates_with
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server


TASKS = {"apps": 2, "tasks": 40, "pool": 3, "pool_timeout": "4s", "threads_in_table": 2, "rows": 100}
NAP = (
    "CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.6); RETURN NEW; END $$",
    "CREATE TRIGGER nap BEFORE UPDATE ON table_a FOR EACH ROW EXECUTE FUNCTION nap()",
)
"""A trigger that makes each task sleep 0.6 s. The load of 40 tasks then needs 8 s on its three connections, so that
half of the tasks find no connection in time. Without the sleep all tasks take some 0.05 s, and many times that on a
busy machine.
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory, workspace):
    """Returns a study after one block, read from disk. The tasks of one arm end at once, and those of the other arm
    sleep.
    """
    require_engine()
    require_server(18)
    spec = build_study(
        {
            "load": {"workload": "app-tasks", "tasks": TASKS},
            "server": {"settings": FAST},
            "arms": {"awake": {}, "napping": {"setup_sql": [*NAP]}},
            "verdict": {"blocks": 1},
        },
        "test",
    )
    path = tmp_path_factory.mktemp("tasks") / "results"
    created = StudyDirectory.create(path, spec, make_plan(spec, 11, "2026-11-20T14:12:00+00:00"))
    run_study(created, lambda event: None)
    return StudyDirectory.open(path)


def _of(study: StudyDirectory, arm: str) -> tuple[Trial, TaskSummary]:
    (trial,) = (trial for trial in study.trials() if trial.arm == arm)
    assert (trial.status, trial.reason) == ("completed", None)
    assert trial.tasks is not None
    return trial, trial.tasks


def test_a_trial_is_one_run_of_all_tasks_without_warm_up(study):
    trial, tasks = _of(study, "awake")
    assert trial.warmup is None
    assert trial.checkpoint_s is not None, "one before it"
    assert trial.measured is not None
    assert (tasks.planned, tasks.completed, tasks.failed) == (80, 80, 0)
    assert trial.measured.transactions == 80
    assert trial.relations_before["table_a"]["live_tuples"] == 200
    assert "table_a" in trial.relations


def test_times_in_the_queue_and_on_the_server_add_up_to_the_response(study):
    for arm in study.plan.arms:
        _, tasks = _of(study, arm)
        assert tasks.queue_us is not None
        assert tasks.service_us is not None
        assert tasks.response_us is not None
        assert tasks.queue_us.mean + tasks.service_us.mean == pytest.approx(tasks.response_us.mean, rel=1e-6)
        assert tasks.queue_us.p95 is not None
        assert sum(tasks.classes.values()) == tasks.completed


def test_a_task_that_gets_no_connection_in_time_counts_with_the_time_that_it_waited(study):
    _, tasks = _of(study, "napping")
    assert tasks.failures == {"pool-timeout": tasks.failed}
    assert tasks.failed == 80 - tasks.completed > 30
    assert tasks.response_us is not None
    assert tasks.failed_after_us is not None
    assert tasks.mean_us is not None
    assert tasks.failed_after_us >= 4e6
    assert tasks.response_us.mean < tasks.mean_us < tasks.failed_after_us


def test_the_study_makes_its_table_once_and_how_long_that_took_is_known_in_every_trial(study, workspace):
    (table,) = Needs.of(study.design).data
    assert templates_with(workspace.templates, table) == [], "another study is to measure it anew"
    times = {trial.table_created_s for trial in study.trials()}
    assert len(times) == 1
    assert None not in times


def test_the_report_begins_with_the_failures_and_has_criteria_distribution_and_parts(study):
    result = build_report(study)
    assert result.sentences[0].startswith("Failures of napping: ")
    assert " of 80 tasks" in result.sentences[0]
    assert ". No verdict on napping against awake: napping failed " in result.sentences[0]
    assert {row.what: row.values["napping"] for row in result.criteria}["failures"] == _of(study, "napping")[1].failed
    text = (study.path / "report.md").read_text()
    assert "1 block of 2 x 80 tasks" in text
    assert "## Criteria" in text
    assert "| creation of the table |" in text
    charts = [figure.title for figure in draw("criteria", read_data(study))]
    assert charts == ["How soon tasks are done", "Queue and server"]
