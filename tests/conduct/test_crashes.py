"""kill -9 of the lab, the engine or the server in the middle of a study; it completes, each planned trial once."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pgtrial.conduct.progress import Second, TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.trial.leftovers import discard_unfinished, remember
from pgtrial.files.writing import new_beside
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.interruptions import read_interruptions
from tests.conduct.small import each_once, once, small_study, start_lab, title
from tests.conftest import require_engine, require_root

pytestmark = pytest.mark.server


PATIENCE_S = 400


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def measuring(event):
    return isinstance(event, Second)


def engine_of(study):
    (note,) = study.path.glob("trials/.*/engine.pid")
    return psutil.Process(json.loads(note.read_text())["pid"])


def in_turn(*acts):
    """Returns a listener that calls the first act in the measured part of the first trial, the second act in that of
    the second trial, and so on.
    """
    listeners = iter([once(measuring, act) for act in acts])
    on_event = None

    def listen(event):
        nonlocal on_event
        if isinstance(event, TrialBegins):
            on_event = next(listeners, None)
        elif on_event is not None:
            on_event(event)

    return listen


def test_a_killed_engine_server_or_backend_makes_a_failed_trial_and_the_study_completes(tmp_path, postmasters):
    study = small_study(tmp_path / "s", blocks=2, load={"rate": 100, "duration": "8s"})

    def kill_engine():
        engine_of(study).kill()

    def kill_server():
        (postmaster,) = postmasters()
        for process in [postmaster, *postmaster.children()]:
            with suppress(psutil.NoSuchProcess):  # without their postmaster some end by themselves
                process.kill()

    def kill_a_client_process():
        (postmaster,) = postmasters()
        serving = [each for each in postmaster.children() if "[local]" in title(each)]
        # the lab's own sessions were there before those of the load
        max(serving, key=lambda each: each.pid).kill()

    on_event = in_turn(kill_engine, kill_server, kill_a_client_process)
    run_study(study, on_event)
    assert each_once(study)
    without_engine, without_server, without_backend, last = study.trials()
    assert [trial.status for trial in study.trials()] == ["failed"] * 3 + ["completed"]
    assert "the engine was killed by SIGKILL" in without_engine.reason
    assert study.trial_path(without_engine).joinpath("server.log").exists()
    assert without_server.reason
    assert without_backend.reason
    assert last.reason is None


def test_an_engine_that_hangs_is_killed_after_its_time_and_the_study_completes(tmp_path):
    study = small_study(tmp_path / "s", blocks=1, load={"rate": 100, "duration": "6s"})
    hang = once(measuring, lambda: engine_of(study).suspend())
    run_study(study, hang, engine_grace_s=5.0)
    assert each_once(study)
    assert study.trials()[0].status == "failed"
    assert "did not finish in time" in (study.trials()[0].reason or "")


def engine_of_the_second_trial(lab, directory):
    """Waits until the first trial is stored and the second one runs; returns the second trial's engine."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert lab.poll() is None, lab.communicate()
        assert time.monotonic() < deadline, "the lab does not get on"
        stored = list(directory.glob("results/*/trials/[0-9]*"))
        # a stopped lab leaves the note of its engine, which is gone
        for note in directory.glob("results/*/trials/.0001*/engine.pid"):
            with suppress(psutil.NoSuchProcess, FileNotFoundError, json.JSONDecodeError):
                engine = psutil.Process(json.loads(note.read_text())["pid"])
                if len(stored) == 1:
                    return engine
        time.sleep(0.02)


def stop_in_the_second_trial(directory, number):
    """Starts a lab and sends it the signal in its second trial; returns its exit status, its messages, and that trial's
    engine.
    """
    lab = start_lab(directory)
    engine = engine_of_the_second_trial(lab, directory)
    if number == signal.SIGTERM:  # the program that reads the output has ended, as with Ctrl-C in `pgtrial run | tee`
        lab.send_signal(signal.SIGSTOP)
        lab.stdout.close()
    lab.send_signal(number)
    lab.send_signal(signal.SIGCONT)
    out, err = lab.communicate(timeout=PATIENCE_S)
    if number == signal.SIGINT:
        assert "interrupted: the load ends and the servers stop" in out
    return lab.returncode, err, engine


def test_a_lab_that_is_asked_to_stop_or_killed_goes_on_where_it_was_with_no_trial_lost_or_doubled(
    tmp_path, postmasters
):
    for number in (signal.SIGINT, signal.SIGTERM):
        status, err, engine = stop_in_the_second_trial(tmp_path, number)
        assert status == 128 + number, err
        assert f"stopped by {number.name}: 1 of 2 trials are stored; go on with: pgtrial run results/crash-" in err
        assert "Traceback" not in err
        assert not engine.is_running()
        assert not postmasters()
    (stored,) = tmp_path.glob("results/*/trials/[0-9]*/trial.json")
    before = stored.read_bytes()
    _, _, orphan = stop_in_the_second_trial(tmp_path, signal.SIGKILL)

    done = start_lab(tmp_path)
    out, err = done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0, err
    assert "going on with results/crash-" in err
    assert "1 of 2 trials are stored" in err
    (results,) = (tmp_path / "results").iterdir()
    study = StudyDirectory.open(results)
    assert each_once(study)
    assert stored.read_bytes() == before
    assert {trial.status for trial in study.trials()} == {"completed"}
    second = study.plan.trials[1]
    interrupted = read_interruptions(results)
    assert [each.how for each in interrupted] == ["SIGINT", "SIGTERM", "killed"]
    assert [[(trial.index, trial.arm) for trial in each.trials] for each in interrupted] == [[(1, second.arm)]] * 3
    assert [each.trials[0].under_way_s is not None for each in interrupted] == [True, True, False]
    (note,) = [each for each in read_data(study).result.notes if "interruption" in each]
    assert note.startswith("3 interruptions of the study ended trials under way, which were run again: ")
    assert f"{second.arm} 3" in note
    assert "Interrupted trials" in (results / "report.html").read_text()
    assert not orphan.is_running()
    assert not postmasters()
    assert "report.html" in out
    assert (study.path / "report.html").exists()


@pytest.mark.parametrize(("clock_set_by_s", "beside"), [(0, False), (3600, False), (0, True)])
def test_an_orphaned_engine_is_ended_before_the_study_goes_on(tmp_path, monkeypatch, clock_set_by_s, beside):
    study = small_study(tmp_path / "s")
    directory = study.begin_trial(study.plan.trials[0])
    with subprocess.Popen(["sleep", "600"]) as orphan:
        remember(directory, orphan.pid, beside=beside)
        # Linux tells when a process began by when the machine was booted, and that by the clock as it is now
        booted, created = psutil.boot_time(), psutil.Process.create_time
        monkeypatch.setattr(psutil, "boot_time", lambda: booted + clock_set_by_s)
        monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) + clock_set_by_s)
        assert discard_unfinished(study) == 1
        orphan.wait(PATIENCE_S)
    assert not psutil.pid_exists(orphan.pid)
    assert study.unfinished() == []


@pytest.mark.parametrize("account", ["root", "nobody"])
def test_root_ends_no_process_for_another_account_that_could_not_end_it(tmp_path, account):
    require_root()
    study = small_study(tmp_path / "s")
    directory = study.begin_trial(study.plan.trials[0])
    with subprocess.Popen(["sleep", "600"], user=account) as process:
        remember(directory, process.pid)
        shutil.chown(directory / "engine.pid", "nobody")
        assert discard_unfinished(study) == 1
        assert (process.poll() is None) == (account == "root")
        process.kill()


def test_another_process_with_the_engines_old_number_is_left_alone(tmp_path):
    study = small_study(tmp_path / "s")
    directory = study.begin_trial(study.plan.trials[0])
    remember(directory, os.getpid())
    note = json.loads((directory / "engine.pid").read_text())
    note["born"] = [moment - 1000 for moment in note["born"]]
    (directory / "engine.pid").write_text(json.dumps(note))
    assert discard_unfinished(study) == 1
    assert not Path(directory).exists()


def test_temporary_files_of_killed_processes_are_removed_before_the_study_goes_on(tmp_path):
    study = small_study(tmp_path / "s")
    facts = study.path / "facts"
    facts.mkdir(exist_ok=True)
    left = [study.path / ".plan.json.0123abcd.tmp", facts / ".a.json.0123abcd.tmp"]
    for path in left:
        path.write_text("{")
    with new_beside(study.path / "report.html") as written:
        assert discard_unfinished(study) == 0
        assert written.path.exists()
    assert not any(path.exists() for path in left)
