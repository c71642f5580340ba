"""Arms with a job each, on real servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.model.errors import StudyError
from pgtrial.report.build import build_report
from pgtrial.store.bundle import open_study, write_bundle
from pgtrial.store.comparison import comparison
from pgtrial.store.study_file import read_study
from tests.conduct.small import undeclared_differences
from tests.conftest import require_engine

pytestmark = pytest.mark.server

SHOP = "CREATE TABLE orders (id int, total int);\n"
ROWS = "INSERT INTO orders SELECT i, i % 7 FROM generate_series(1, 20000) AS i;\n"
INDEX = "CREATE INDEX ON orders (total);\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)
    texts = {"shop": SHOP, "early": INDEX + ROWS, "late": ROWS + INDEX, "wrong": "INSERT INTO nothing VALUES (1);\n"}
    for name, text in texts.items():
        Path(f"{name}.sql").write_text(text)


def run(arms, load=None):
    load = {"data": "shop.sql", **(load or {})}
    spec = comparison(arms, "test", None, 5, {"load": load, "verdict": {"blocks": 1}})
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda event: None, spec=spec)
    return study, {trial.arm: trial for trial in study.trials()}


def test_each_arm_runs_its_own_job_on_the_same_data(tmp_path):
    study, trials = run(["early=job:early.sql", "late=job:late.sql"])
    assert [trial.reason for trial in trials.values()] == [None, None]
    assert trials["early"].job.wal_bytes > 1.2 * trials["late"].job.wal_bytes, (
        "each row is put into the index by itself"
    )
    found = study.audit().findings
    assert undeclared_differences(found) == []
    assert not [each for each in found if each.rule == "other_answers"]
    facts = {arm: facts.facts for arm, facts in study.facts().items()}
    assert facts["early"]["load"]["script"].startswith("early.sql (SHA-256 ")
    assert facts["late"]["load"]["script"].startswith("late.sql (SHA-256 ")
    build_report(study)
    text = (study.path / "report.md").read_text()
    assert "job of each arm on shop.sql" in text
    assert "The statements of the job of each arm, line by line: early runs early.sql; late runs late.sql." in text
    path = tmp_path / "b.tar.xz"
    with path.open("wb") as file:
        write_bundle(study, file, everything=True)
    with open_study(path) as kept:
        assert kept.spec.scripts == study.spec.scripts
        assert kept.plan.load_points == study.plan.load_points


def test_a_load_may_run_beside_the_jobs_of_arms():
    Path("look.sql").write_text("SELECT count(*) FROM orders;\n")
    beside = {"job": {"beside": "look.sql", "limit": "1min"}, "rate": 5, "clients": 1}
    _, trials = run(["early=job:early.sql", "late=job:late.sql"], beside)
    assert [trial.reason for trial in trials.values()] == [None, None]
    assert all(trial.served is not None for trial in trials.values())


def test_the_job_of_one_arm_that_fails_is_refused_before_the_first_trial():
    with pytest.raises(StudyError, match=r'wrong\.sql, line 1 .* relation "nothing" does not exist, on wrong alone'):
        run(["late=job:late.sql", "wrong=job:wrong.sql"])


_DUMP = "pg_dump -f {arm}.sql --table=orders"


def test_each_arm_runs_its_own_program_on_the_same_data():
    arms = [f"all=command={_DUMP.format(arm='all')}", f"schema=command={_DUMP.format(arm='schema')} --schema-only"]
    study, trials = run(arms, {"workload": "job:"})
    assert [trial.reason for trial in trials.values()] == [None, None]
    assert trials["all"].load_point.label == "job pg_dump on shop.sql"
    assert "COPY public.orders" in Path("all.sql").read_text()
    assert "CREATE TABLE public.orders" in Path("schema.sql").read_text()
    assert "COPY" not in Path("schema.sql").read_text()
    assert undeclared_differences(study.audit().findings) == []
    facts = {arm: facts.facts["client"]["command"] for arm, facts in study.facts().items()}
    assert facts == {"all": _DUMP.format(arm="all"), "schema": f"{_DUMP.format(arm='schema')} --schema-only"}
    build_report(study)
    assert "schema-only" in (study.path / "report.md").read_text()


def test_the_environment_of_an_arm_reaches_the_program_of_its_job():
    Path("study.toml").write_text("""
[load]
workload = "job:"
data = "shop.sql"
job.command = "sh -c 'echo $LEVEL >> levels; test $LEVEL != 9'"
[arms.low]
environment = { LEVEL = "1" }
[arms.high]
environment = { LEVEL = "9" }
[verdict]
blocks = 1
""")
    spec = read_study("study.toml")
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda event: None, spec=spec)
    trials = {trial.arm: trial for trial in study.trials()}
    assert set(Path("levels").read_text().split()) == {"1", "9"}
    assert trials["low"].reason is None
    assert trials["high"].reason == "sh ended with status 1: it wrote no message"


def test_a_program_of_an_arm_that_does_not_exist_is_named_before_the_first_trial():
    with pytest.raises(StudyError, match=r"arms\.b\.command: there is no program pg_dmp"):
        run(["a=command=true", "b=command=pg_dmp -f x"], {"workload": "job:"})


def test_a_script_that_a_program_runs_must_not_change_between_trials():
    Path("bench.sh").write_text("exit 0\n")
    spec = comparison(
        ["a=command=sh bench.sh", "b=command=sh bench.sh --fast"],
        "test",
        None,
        5,
        {"load": {"data": "shop.sql", "workload": "job:"}, "verdict": {"blocks": 1}},
    )
    study, _ = find_or_create(spec, None, anew=True)
    Path("bench.sh").write_text("exit 0 # changed\n")
    with pytest.raises(StudyError, match=r"arms\.[ab]: bench\.sh of the command .* has changed since the study was"):
        run_study(study, lambda event: None, spec=spec)
