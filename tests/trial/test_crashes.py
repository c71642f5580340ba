"""kill -9 of the lab, the engine or the server in the middle of a study; it completes, each planned trial once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pgtrial.store.directory import StudyDirectory
from pgtrial.trial.leftovers import discard_unfinished
from pgtrial.trial.progress import Second
from pgtrial.trial.run_study import run_study
from tests.conftest import require_engine
from tests.trial.small import each_once, once, small_study

STUDY = """
[study]
name = "crash"
[load]
workload = "simple-update"
scale = 1
clients = 2
warmup = "500ms"
duration = "2s"
[server]
settings = { fsync = "off" }
[arms.base]
[arms."no jit"]
settings = { jit = "off" }
[verdict]
blocks = 1
canary = false
"""

PATIENCE_S = 120


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def measuring(event):
    return isinstance(event, Second)


def engine_of(study):
    (note,) = study.path.glob("trials/.*/engine.pid")
    return psutil.Process(json.loads(note.read_text())["pid"])


@pytest.fixture
def postmasters(state_root):
    """The servers that have been started since the test began."""
    before = set((state_root / "runs").glob("*/*"))

    def find():
        new = set((state_root / "runs").glob("*/*")) - before
        files = [path / "postmaster.pid" for path in new if (path / "postmaster.pid").exists()]
        return [psutil.Process(int(file.read_text().split()[0])) for file in files]

    return find


def test_an_engine_that_is_killed_makes_a_failed_trial_and_the_study_completes(tmp_path):
    study = small_study(tmp_path / "s", blocks=1, load={"duration": "2s"})
    run_study(study, once(measuring, lambda: engine_of(study).kill()))
    assert each_once(study)
    first, *others = study.trials()
    assert first.status == "failed"
    assert first.reason is not None
    assert "the engine was killed by SIGKILL" in first.reason
    assert all(trial.status == "completed" for trial in others)
    assert study.trial_path(first).joinpath("server.log").exists()


def test_a_server_that_is_killed_makes_a_failed_trial_and_the_study_completes(tmp_path, postmasters):
    study = small_study(tmp_path / "s", blocks=1, load={"duration": "2s"})

    def kill_server():
        for postmaster in postmasters():
            for process in [postmaster, *postmaster.children()]:
                process.kill()

    run_study(study, once(measuring, kill_server))
    assert each_once(study)
    first, *others = study.trials()
    assert first.status == "failed"
    assert first.reason
    assert all(trial.status == "completed" for trial in others)


def test_one_server_process_that_is_killed_makes_a_failed_trial_too(tmp_path, postmasters):
    study = small_study(tmp_path / "s", blocks=1, load={"duration": "2s"})

    def kill_a_client_process():
        (postmaster,) = postmasters()
        serving = [each for each in postmaster.children() if "pgbench" in " ".join(each.cmdline())]
        (serving or postmaster.children())[0].kill()

    run_study(study, once(measuring, kill_a_client_process))
    assert each_once(study)
    first, *others = study.trials()
    assert first.status == "failed"
    assert all(trial.status == "completed" for trial in others)


def test_an_engine_that_hangs_is_killed_after_its_time_and_the_study_completes(tmp_path):
    study = small_study(tmp_path / "s", blocks=1, load={"duration": "2s"})
    hang = once(measuring, lambda: engine_of(study).suspend())
    run_study(study, hang, engine_grace_s=2.0)
    assert each_once(study)
    assert study.trials()[0].status == "failed"
    assert "did not finish in time" in (study.trials()[0].reason or "")


def start_lab(directory):
    (directory / "crash.toml").write_text(STUDY)
    return subprocess.Popen(
        [sys.executable, "-c", "from pgtrial.cli import main; main()", "run", "crash.toml"],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )


def wait_for(condition, lab):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert lab.poll() is None, lab.communicate()
        assert time.monotonic() < deadline, "the lab does not get on"
        time.sleep(0.02)


def in_the_second_trial(directory):
    stored = list(directory.glob("results/*/trials/[0-9]*"))
    return len(stored) == 1 and list(directory.glob("results/*/trials/.0001*/engine.pid"))


def finish(directory):
    done = start_lab(directory)
    out, err = done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0, err
    (results,) = (directory / "results").iterdir()
    return StudyDirectory.open(results), out, err


def test_a_lab_that_is_killed_goes_on_where_it_was_with_no_trial_lost_or_doubled(tmp_path, postmasters):
    lab = start_lab(tmp_path)
    wait_for(lambda: in_the_second_trial(tmp_path), lab)
    (note,) = tmp_path.glob("results/*/trials/.0001*/engine.pid")
    orphan = psutil.Process(json.loads(note.read_text())["pid"])
    (stored,) = tmp_path.glob("results/*/trials/[0-9]*/trial.json")
    before = stored.read_bytes()
    lab.kill()
    lab.communicate()

    study, out, err = finish(tmp_path)
    assert "going on with results/crash-" in err
    assert "1 of 2 trials are stored" in err
    assert each_once(study)
    assert stored.read_bytes() == before
    assert {trial.status for trial in study.trials()} == {"completed"}
    assert not orphan.is_running()
    assert not postmasters()
    assert "report.html" in out
    assert (study.path / "report.html").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_lab_that_is_asked_to_stop_says_how_to_go_on_and_leaves_nothing_running(tmp_path, postmasters, number):
    lab = start_lab(tmp_path)
    wait_for(lambda: in_the_second_trial(tmp_path), lab)
    (note,) = tmp_path.glob("results/*/trials/.0001*/engine.pid")
    engine = psutil.Process(json.loads(note.read_text())["pid"])
    lab.send_signal(number)
    _, err = lab.communicate(timeout=PATIENCE_S)
    assert lab.returncode == 128 + number
    assert f"stopped by {number.name}: 1 of 2 trials are stored; go on with: pgtrial run results/crash-" in err
    assert "Traceback" not in err
    assert not engine.is_running()
    assert not postmasters()
    study, _, _ = finish(tmp_path)
    assert each_once(study)


def test_an_orphaned_engine_is_ended_before_the_study_goes_on(tmp_path):
    study = small_study(tmp_path / "s")
    directory = study.begin_trial(study.plan.trials[0])
    with subprocess.Popen(["sleep", "600"]) as orphan:
        created = psutil.Process(orphan.pid).create_time()
        (directory / "engine.pid").write_text(json.dumps({"pid": orphan.pid, "created": created}))
        assert discard_unfinished(study) == 1
        orphan.wait(10)
    assert not psutil.pid_exists(orphan.pid)
    assert study.unfinished() == []


def test_another_process_with_the_engines_old_number_is_left_alone(tmp_path):
    study = small_study(tmp_path / "s")
    directory = study.begin_trial(study.plan.trials[0])
    me = psutil.Process()
    (directory / "engine.pid").write_text(json.dumps({"pid": me.pid, "created": me.create_time() - 1000}))
    assert discard_unfinished(study) == 1
    assert not Path(directory).exists()
