"""Studies around a harness of the user's, which prints the number that arms are compared by: on real servers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.model.errors import ArmError
from pgtrial.report.data import read_measured
from pgtrial.store.comparison import comparison
from pgtrial.store.study_file import read_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)


def spec_of(command, reads, *, blocks=1, arms=("work_mem=4MB", "work_mem=5MB"), **verdict):
    load = {"workload": "job:", "scale": 1, "job": {"command": command, "reads": reads}}
    return comparison(list(arms), "test", None, 5, {"load": load, "verdict": {"blocks": blocks, **verdict}})


def run(spec):
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda _: None, spec=spec)
    return study


def trials_of(command, reads):
    return {trial.arm: trial for trial in run(spec_of(command, reads)).trials()}


SPEED = """sh -c 'case $(psql -Atc "show work_mem") in 4MB) speed=100;; *) speed=105;; esac
    echo "achieved $((speed + $$ % 3)) NOPM"'"""
"""A harness with a planted difference of five per cent, and with noise."""


def test_a_planted_difference_of_what_a_harness_prints_is_found():
    study = run(spec_of(SPEED, {"NOPM": {"pattern": r"achieved (\d+) NOPM"}}, blocks=8, margin=0.01))
    assert [trial.reason for trial in study.trials()] == [None] * 16
    assert study.plan.metrics == ["NOPM"]
    (claim,) = read_measured(study).result.primary
    assert claim.verdict == "better"
    assert claim.difference.value == pytest.approx(0.05, abs=0.021)


@pytest.mark.parametrize(
    ("prints", "said"),
    [
        ("echo ready", "sh printed no number for NOPM that 'NOPM=(.*)' matches; its last line is 'ready'"),
        (
            "echo NOPM=1; echo NOPM=2",
            "sh printed 2 numbers for NOPM that 'NOPM=(.*)' matches (1, 2), but the pattern must match only one",
        ),
        ("echo NOPM=many", "sh printed 'many' for NOPM, which is not a number"),
        ("echo NOPM=1; echo no server >&2; exit 3", "sh ended with status 3: no server"),
    ],
    ids=["no number", "two numbers", "text", "an error"],
)
def test_a_harness_without_its_number_fails_the_trial(prints, said):
    command = f"""sh -c 'if test "$(psql -Atc "show work_mem")" = 4MB; then echo NOPM=7; else {prints}; fi'"""
    trials = trials_of(command, {"NOPM": {"pattern": "NOPM=(.*)"}})
    assert trials["work_mem=4MB"].own_metrics == {"NOPM": 7}
    assert trials["work_mem=5MB"].reason == said
    assert trials["work_mem=5MB"].own_metrics == {}


def test_a_number_on_standard_error_is_found_and_one_in_a_file_must_be_written_in_the_trial():
    Path("old.json").write_text('{"speed": 7}')
    reads = {
        "errors": {"pattern": r"errors (\d+)", "better": "less"},
        "speed": {"json_path": "speed", "file": "new.json"},
    }
    command = """sh -c 'echo "errors 3" >&2; echo "{\\"speed\\": 12}" >new.json'"""
    for trial in trials_of(command, reads).values():
        assert trial.reason is None
        assert trial.own_metrics == {"errors": 3, "speed": 12}
    stale = {"speed": {"json_path": "speed", "file": "old.json"}}
    says = (
        r"on all arms: true did not write old.json in this trial, from which speed is read "
        r"\(the file is older than the trial\)"
    )
    with pytest.raises(ArmError, match=says):
        trials_of("true", stale)


PYTHON = """
import time, subprocess
began, done = time.monotonic(), 0
for _ in range(20):
    subprocess.run(["psql", "-qAtc", "SELECT count(*) FROM pgbench_accounts"], check=True, stdout=subprocess.DEVNULL)
    done += 1
print(f'{{"requests": {done}, "rate": {done / (time.monotonic() - began)}}}')
"""


def test_a_load_test_in_python_prints_json():
    Path("load_test.py").write_text(PYTHON)
    for trial in trials_of(f"{sys.executable} load_test.py", {"rate": {"json_path": "rate"}}).values():
        assert trial.reason is None
        assert trial.own_metrics["rate"] > 1


def test_pgbench_itself_is_a_harness(tmp_path):
    Path("study.toml").write_text(
        """
        [load]
        workload = "job:"
        [load.job]
        command = "pgbench -n -S -c 2 -T 1"
        [load.job.reads."pgbench tps"]
        pattern = '^tps = ([\\d.]+)'
        [load.job.reads.latency]
        pattern = 'latency average = ([\\d.]+)'
        unit    = "ms"
        better  = "less"
        [arms.small]
        [arms.large]
        settings = { work_mem = "5MB" }
        [verdict]
        blocks  = 1
        """
    )
    study = run(read_study("study.toml"))
    for trial in study.trials():
        assert trial.reason is None
        assert trial.own_metrics["pgbench tps"] > 10
        assert 0 < trial.own_metrics["latency"] < 100
    assert study.plan.metrics == ["pgbench tps", "latency"]


def test_sysbench_itself_is_a_harness():
    if shutil.which("sysbench") is None:
        pytest.skip("there is no sysbench")
    command = """sh -c 'run="sysbench oltp_point_select --db-driver=pgsql --pgsql-host=$PGHOST --pgsql-port=$PGPORT
        --pgsql-user=$PGUSER --pgsql-db=$PGDATABASE --tables=1 --table-size=1000 --time=1"; $run prepare && $run run'"""
    reads = {"tps": {"pattern": r"transactions: +\d+ +\(([\d.]+) per sec"}}
    for trial in trials_of(command, {"sysbench tps": reads["tps"]}).values():
        assert trial.reason is None
        assert trial.own_metrics["sysbench tps"] > 10
