"""Studies of jobs on real servers: what is measured, what fails a trial, and what a job reports of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from pgtrial.conduct import preliminary
from pgtrial.conduct.progress import JobProgress
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.loads.job_command import missing_program
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.store.comparison import comparison
from pgtrial.store.directory import JOB_PROGRESS
from tests.conftest import require_engine
from tests.processes import until

pytestmark = pytest.mark.server

JOB = """CREATE TABLE copied AS SELECT * FROM pgbench_accounts;
CREATE INDEX ON copied (bid, filler);
VACUUM copied;
SELECT 1 / (current_setting('work_mem') <> '5MB')::int, pg_sleep(1.2);
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)


DUMP = """sh -c '
    test "$(psql -Atc "show work_mem")" = 4MB || { echo "too much memory" >&2; exit 3; }
    pg_dump -f dumped.sql'"""


def run(text=None, arms=("work_mem=4MB", "work_mem=5MB"), load=None, blocks=1, **job):
    Path("job.sql").write_text(text or "")
    workload = "job:job.sql" if text is not None else "job:"
    load = {"workload": workload, "scale": 1, "job": job, **(load or {})}
    verdict = {"blocks": blocks} if blocks else {}
    spec = comparison(list(arms), "test", None, 5, {"load": load, "verdict": verdict})
    study, _ = find_or_create(spec, None, anew=True)
    events = []
    run_study(study, events.append, spec=spec)
    return {trial.arm: trial for trial in study.trials()}, events


def test_a_job_runs_once_and_a_statement_that_fails_is_named():
    trials, events = run(JOB)
    good, bad = trials["work_mem=4MB"], trials["work_mem=5MB"]
    assert good.reason is None
    assert good.measured.transactions == 1
    assert good.measured.latency_us.mean > 1.2e6
    assert good.job.wal_bytes > 10e6, "the rows, which are logged"
    assert good.job.size_bytes - good.job.size_before_bytes > 13e6, "a table and its index"
    assert good.job.peak_memory_bytes > 10e6
    seconds = [event for event in events if isinstance(event, JobProgress)]
    assert seconds
    assert {event.arm for event in seconds} <= set(trials)
    assert list(Path().rglob(JOB_PROGRESS)) == [], "it is of trials under way"
    assert bad.reason == (
        "job.sql, line 4 (SELECT 1 / (current_setting('work_mem') <> '5MB')::int, pg_…): PostgreSQL says: division by "
        "zero"
    )


def test_a_job_is_ended_at_its_limit():
    with pytest.raises(ArmError, match="the job had not ended after 1s, its limit"):
        run("SELECT pg_sleep(600);", limit="1s")


def test_a_job_that_is_too_long_for_the_budget_is_ended_in_the_block_that_does_not_count(monkeypatch):
    monkeypatch.setattr(preliminary, "longest_job", lambda spec: 0.5)
    says = r"the job had not ended on work_mem=.MB after 500ms, but a verdict needs at least 6 blocks; set \[verdict\]"
    with pytest.raises(StudyError, match=says):
        run("SELECT pg_sleep(600);", blocks=None, limit="1s")


def test_a_name_that_does_not_exist_is_found_before_the_first_trial():
    with pytest.raises(StudyError, match=r'job.sql, line 1 .*relation "acounts" does not exist, on all arms'):
        run("VACUUM acounts;")


def test_a_command_is_run_once_with_the_address_of_the_server():
    trials, _ = run(command=DUMP)
    good, bad = trials["work_mem=4MB"], trials["work_mem=5MB"]
    assert good.reason is None
    assert good.measured.transactions == 1
    assert good.measured.latency_us.mean == pytest.approx(1e6 * good.measured.duration_s)
    assert good.load_point.label == "job sh, scale 1"
    assert "COPY public.pgbench_accounts" in Path("dumped.sql").read_text()
    assert bad.reason == "sh ended with status 3: too much memory"


@pytest.mark.parametrize("daemon", ["sleep 600 &", "setsid sleep 600 &"], ids=["in its group", "in its own session"])
def test_what_a_command_leaves_running_ends_with_it(daemon):
    trials, _ = run(command=f"sh -c '{daemon} echo $! >> left; exit 0'")
    assert [trial.reason for trial in trials.values()] == [None, None]
    left = [int(line) for line in Path("left").read_text().split()]
    assert len(left) >= 2
    until(lambda: not any(psutil.pid_exists(pid) for pid in left), "init has buried them")


def test_a_command_that_is_no_program_is_found():
    environment = {"PATH": str(Path(sys.executable).parent)}
    assert missing_program(["pg_dmp", "-f", "/dev/null"], environment) == "pg_dmp"
    assert missing_program([Path(sys.executable).name], environment) is None


def test_what_a_job_holds_up_counts_in_the_load_beside_it():
    text = "BEGIN;\nLOCK TABLE pgbench_accounts;\nSELECT pg_sleep(2);\nCOMMIT;\n"
    trials, _ = run(text, load={"rate": 50, "clients": 2}, beside="select-only")
    for trial in trials.values():
        assert trial.reason is None
        assert not [note for note in trial.notes if "beside" in note]
        served = trial.job.beside
        assert served.duration_s > trial.measured.duration_s
        # at 50/s nobody comes for half a second in one case of 70 billion, and 40 or fewer in two seconds more rarely
        assert served.latency_us.max > 1.5e6, "one that waited for the lock nearly from its beginning on"
        assert served.transactions > 40, "all that were to start meanwhile"
