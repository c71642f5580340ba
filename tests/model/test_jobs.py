"""The workload job:FILE.sql: its load points, its estimates, and what is refused before the first trial."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.lengths import in_words, measured_lengths
from pgtrial.conduct.planning.plan import make_plan, with_lengths
from pgtrial.conduct.preliminary import longest_job
from pgtrial.conduct.preparation.own_scripts import check_scripts
from pgtrial.loads.command_lines import engine_options
from pgtrial.loads.command_lines.job import beside_options
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import PreliminaryBlock
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import load_points
from pgtrial.store.study_file import build_study

ARMS = {"16MB": {}, "512MB": {"settings": {"maintenance_work_mem": "512MB"}}}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "index.sql").write_text("-- an index\nCREATE INDEX ON pgbench_accounts (abalance);\n")
    return tmp_path


def build(folder, arms=ARMS, verdict=None, **load):
    data = {"load": {"workload": "job:index.sql", **load}, "arms": arms, "verdict": verdict or {}}
    return build_study(data, "test", folder)


def test_a_job_is_a_load_point_for_each_scale(folder):
    spec = build(folder, scale=[1, 10])
    assert [point.label for point in load_points(spec)] == ["job index.sql, scale 1", "job index.sql, scale 10"]
    assert load_points(spec)[0].slug == "job-index.sql-s1"
    assert spec.load.workload == ["job:scripts/index.sql"], "it is kept with the study"
    assert interleaved(Design(spec)).interleaving is None


def test_a_study_of_a_job_is_the_same_after_it_was_frozen(folder):
    spec = build(folder, job={"limit": "10min"})
    thawed = thaw(freeze(spec)).with_scripts(spec.scripts)
    assert load_points(thawed) == load_points(spec)
    assert load_points(spec)[0].job.limit_s == 600


def test_the_engine_runs_the_file_once_in_one_session(folder):
    spec = build(folder)
    (point,) = load_points(spec)
    script = folder / "index.sql"
    assert engine_options(spec.load, point, 7, script) == [
        *("-n", "-f", f"{script}@1", "-s", "10", "-M", "simple", "-c", "1", "-t", "1"),
        *("-j", "1", "--random-seed", "7"),
    ]


def test_the_verdict_is_about_the_time_and_the_first_block_sets_the_number_of_others(folder):
    spec = build(folder, verdict={"budget": "1h"})
    plan = make_plan(spec, 1, "now")
    assert (plan.measure, plan.warmup_s, plan.duration_s) == ("time of the job", 0, 0)
    assert plan.awaits_lengths
    assert plan.max_blocks == 6, "the longest job with which a verdict is possible"
    assert "6 blocks if a trial takes 4min 17s" in next(in_words(plan, Design(spec)))
    block = PreliminaryBlock(wall_s=40.0, load_s=15.0, overhead_s=10.0, checkpoint_s=0.1, shapes=[])
    known = with_lengths(
        plan, Design.planned(spec, plan), measured_lengths(Design.planned(spec, plan), plan, block, None)
    )
    assert known.max_blocks == (3600 - 40) // 40
    assert not known.awaits_lengths
    assert next(in_words(known, Design(spec))) == "the job takes 15s in the mean of all arms; 89 blocks of about 40s"


def test_a_job_that_is_too_long_for_the_budget_is_answered_with_the_budget_that_it_takes(folder):
    spec = build(folder, verdict={"budget": "10min"})
    plan = make_plan(spec, 1, "now")
    block = PreliminaryBlock(wall_s=260.0, load_s=120.0, overhead_s=20.0, checkpoint_s=0.1, shapes=[])
    lengths = measured_lengths(Design.planned(spec, plan), plan, block, None)
    with pytest.raises(StudyError) as refused:
        with_lengths(plan, Design.planned(spec, plan), lengths)
    assert str(refused.value) == (
        "a verdict needs at least 6 blocks of about 4min 20s, and the budget of 10min holds 1; set [verdict] budget = "
        '"26min" or more, take less data ([load] scale), or use fewer load points'
    )


def test_no_job_that_the_budget_may_hold_is_ended_before_its_limit(folder):
    spec = build(folder, verdict={"budget": "10min"})
    assert longest_job(Design(spec)) == 1.25 * 600 / 6 / 2


def test_a_number_of_blocks_needs_no_block_before_them(folder):
    plan = make_plan(build(folder, verdict={"blocks": 9}), 1, "now")
    assert plan.lengths is None
    assert plan.max_blocks == 9


@pytest.mark.parametrize(
    ("load", "arms", "says"),
    [
        ({"clients": 4}, ARMS, "clients is not for a job: one session runs the job; remove it"),
        ({"duration": "5s"}, ARMS, "job.limit ends a job that takes too long; remove it"),
        ({"rate": 100}, ARMS, "rate is not for a job: the job runs once; remove it"),
        ({"protocol": "extended"}, ARMS, "protocol is not for a job"),
        ({"workload": ["job:index.sql", "select-only"]}, ARMS, "give the job a study of its own"),
        ({"workload": "job:"}, ARMS, 'job: names no file; write "job:index.sql", or the program to run as command'),
        ({"job": {"command": "pg_dump"}}, ARMS, 'a job is either a file or a command; write workload = "job:"'),
        ({"job": {"command": "psql 'a"}}, ARMS, "the command cannot be parsed (No closing quotation)"),
        ({"job": {"command": "pg_dump 'password=x'"}}, ARMS, "the command has a password or token, which other users"),
        (
            {"job": {"command": "pg_dump postgresql://u:x@h/d"}},
            ARMS,
            "the command has a password or token, which other users",
        ),
        ({"workload": "job:none.sql"}, ARMS, "cannot read the script"),
        ({"workload": "select-only", "job": {"limit": "1s"}}, ARMS, "job is for the workload job:FILE.sql"),
        ({"job": {"limt": "1s"}}, ARMS, "unknown key 'limt' in [load.job]; did you mean 'limit'?"),
        (
            {},
            {"a": {"dsn": "host=db1"}, "b": {"dsn": "host=db2"}},
            "[arms.a] a job changes the data, and a given server has no fresh copy of them for each trial; set "
            '[load.job] undo to the SQL that undoes the job, or to "none"',
        ),
        ({"job": {"undo": "DROP INDEX i"}}, ARMS, "[load.job] undo is for given servers"),
        (
            {},
            {"a": {"reset": "vacuum"}, "b": {"reset": "vacuum"}},
            '[arms.a] reset = "vacuum" keeps what a job has done',
        ),
    ],
)
def test_what_does_not_go_with_a_job_is_named(folder, load, arms, says):
    with pytest.raises(StudyError) as refused:
        build(folder, arms=arms, **load)
    assert says in str(refused.value)


def test_a_load_beside_a_job_is_run_at_its_rate_until_it_is_ended(folder):
    (folder / "orders.sql").write_text("SELECT 1;\n")
    spec = build(folder, scale=3, clients=[4, 40], rate=200, job={"beside": "orders.sql", "limit": "1min"})
    assert spec.load.job.beside == "scripts/orders.sql"
    few, many = load_points(spec)
    assert few.label == "job index.sql, scale 3 beside orders.sql, 4 clients, 200/s"
    assert (few.slug, many.clients) == ("job-index.sql-s3-c4-r200", 41)
    assert Design(spec).metrics == ["time", "p99"]
    assert beside_options(spec.load, few, few.job.beside, 7, script=folder / "orders.sql", lengths=(5, 130)) == [
        *("-n", "-f", f"{folder}/orders.sql@1", "-s", "3", "-M", "prepared", "-c", "4", "-j", "1"),
        *("-R", "200", "-T", "130", "--warmup", "5", "--time-after-connecting", "--random-seed", "7"),
    ]
    thawed = thaw(freeze(spec)).with_scripts(spec.scripts)
    assert load_points(thawed) == load_points(spec)


@pytest.mark.parametrize(
    ("load", "says"),
    [
        ({"job": {"beside": "select-only"}}, "job.beside is a load at a rate; set [load] rate"),
        (
            {"job": {"beside": "orders.lua"}, "rate": 5},
            "[load.job] beside: orders.lua is not a script of pgbench; write",
        ),
        (
            {"job": {"beside": "index.sql"}, "rate": 5},
            "[load.job] beside: index.sql has the same name as the file of the job",
        ),
        ({"job": {"beside": "select-only"}, "rate": 5, "warmup": "1s"}, "warmup is not for a job"),
    ],
)
def test_what_does_not_go_with_a_load_beside_a_job_is_named(folder, load, says):
    with pytest.raises(StudyError) as refused:
        build(folder, **load)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-- nothing\n", "index.sql has no statement; write what the job does"),
        ("SELECT 1;\nCOPY t FROM STDIN;\n1\n\\.\n", "index.sql, line 2: COPY ... FROM STDIN gets no rows in a job"),
        ("COPY t TO STDOUT;", "index.sql, line 1: pgtrial does not read the rows of COPY ... TO STDOUT"),
        ("\\timing\n", "\\timing is a command of psql"),
    ],
)
def test_a_file_that_no_session_can_run_is_refused(folder, text, says):
    (folder / "index.sql").write_text(text)
    with pytest.raises(StudyError) as refused:
        check_scripts(Design(build(folder)))
    assert says in str(refused.value)
