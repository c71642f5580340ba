"""The workload app-tasks: its one load point, its estimates, and what is refused at planning."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.loads.command_lines import engine_options, front_end
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import load_points
from pgtrial.model.study.tasks import TasksSection
from pgtrial.servers.arm import Needs
from pgtrial.servers.templates import TemplateKey
from pgtrial.store.study_file import build_study

ARMS = {"a": {}, "b": {"settings": {"jit": "off"}}}


def _spec(tasks=None, **load):
    return build_study({"load": {"workload": "app-tasks", "tasks": tasks or {}, **load}, "arms": ARMS}, "test")


def test_all_tasks_are_one_load_point_with_the_connections_of_all_pools():
    (point,) = load_points(_spec({"tasks": 5000, "pool": 20}))
    assert point.label == "app-tasks, 10 x 100,000 rows, 3 x 5,000 tasks at once on pools of 20"
    assert point.slug == "app-tasks-3x5000-p20"
    assert Needs.of(Design(_spec({"tasks": 5000, "pool": 20}))).clients == point.clients == 60


def test_a_plan_has_no_warm_up_and_no_duration_and_its_verdict_is_about_the_tasks():
    plan = make_plan(_spec(), 1, "now")
    assert (plan.warmup_s, plan.duration_s) == (0, 0)
    assert plan.measure == "mean response time of tasks"


def test_what_a_trial_takes_follows_from_the_tasks():
    def estimate(**tasks):
        return make_plan(_spec(tasks), 1, "now").trial_estimate_s

    assert estimate(tasks=100, rows=1000) < 5
    assert estimate(tasks=4000, rows=20_000, pool_timeout="1h") > 4 * estimate(tasks=500, rows=20_000)
    assert 15 < estimate(tasks=5000) < 30, "after 15 s each task is on the server or has failed"
    assert 100 < estimate(tasks=100, rows=10, arrival=1) < 120, "the last one comes after 100 s"


def test_the_load_may_last_until_the_last_task_has_given_up_or_is_done():
    load = _spec({"tasks": 1000, "arrival": "poisson:10", "pool_timeout": "20s"}).load
    assert load.longest_s > 100 + 20 + 121, "the longest published task took 121 s"


def test_the_engine_gets_the_options_of_its_front_end():
    spec = _spec({"tasks": 40, "pool": 4, "pool_timeout": "200ms", "pool_lifetime": 5, "arrival": 12.5}, threads=8)
    (point,) = load_points(spec)
    assert front_end(point) == "tasks"
    assert engine_options(spec.load, point, 7, None) == [
        *("--apps=3", "--tasks=40", "--arrival=12.5", "--pool=4", "--pool-timeout=0.2"),
        *("--threads-in-table=10", "--rows=100000", "--pool-lifetime=5"),
        *("-M", "prepared", "-j", "3", "--random-seed", "7"),
    ]


def test_its_table_is_data_of_its_own_with_a_template_of_its_own():
    (data,) = Needs.of(Design(_spec())).data
    assert data.label == "table_a, 10 x 100,000 rows"
    assert data.short_name == "table_a-10x100000"
    assert 30 < data.mb < 80
    names = {TemplateKey("kind", "18.6", **d.key).name for d in (data, *Needs.of(Design(_spec({"rows": 7}))).data)}
    assert len(names) == 2
    assert all(name.startswith("pg18.6-table_a-") for name in names)


def test_a_frozen_study_on_tasks_is_the_same_study():
    spec = _spec({"arrival": "poisson:3", "pool_lifetime": "1min"})
    assert thaw(freeze(spec)) == spec


def test_the_defaults_are_those_of_the_published_application():
    published = TasksSection()
    assert (published.apps, published.tasks, published.threads_in_table, published.rows) == (3, 5000, 10, 100_000)


WRONG = {
    "beside others": ({"workload": ["app-tasks", "select-only"]}, "give it a study of its own"),
    "for others": ({"workload": "select-only", "tasks": {"pool": 3}}, "tasks is for the workload app-tasks"),
    "clients": ({"clients": 16}, "clients is not for app-tasks: its connections are those of tasks.apps"),
    "duration": ({"duration": "1min"}, "duration is not for app-tasks: all tasks run to their end; remove it"),
    "rate": ({"rate": 50}, "its tasks arrive as tasks.arrival says"),
    "server loss": ({"on_server_loss": "wait 60s"}, "on_server_loss is not for app-tasks: tasks wait for connections"),
    "no tasks": ({"tasks": {"tasks": 0}}, r"\[load\] tasks.tasks must be greater than or equal to 1"),
    "arrival": ({"tasks": {"arrival": "poisson:"}}, "'poisson:' is not an arrival of tasks; write \"at-once\", 50"),
    "no rate": ({"tasks": {"arrival": 0}}, "'0' is not an arrival of tasks"),
    "too many connections": ({"tasks": {"apps": 1000, "pool": 1000}}, "more than 100,000 connections"),
    "misspelt": ({"tasks": {"pool_timout": "3s"}}, r"unknown key 'pool_timout' in \[load.tasks\]; did you mean 'pool_"),
}


@pytest.mark.parametrize(("load", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_refused_with_what_to_do(load, words):
    with pytest.raises(StudyError, match=words):
        build_study({"load": {"workload": "app-tasks", **load}, "arms": ARMS}, "test")
