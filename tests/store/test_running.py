"""Tests that other processes see that a lab runs a study, and that it is asked to stop, without disturbing the lab."""

import fcntl
import stat
import threading

import pytest

from pgtrial.model.errors import StoreError
from pgtrial.store.running import ask_to_stop, forget_stop, is_running, locked, stop_is_asked
from tests.conftest import require_root
from tests.servers.intruder import as_account


def test_a_study_runs_while_a_lab_holds_it(tmp_path):
    assert not is_running(tmp_path)
    with locked(tmp_path):
        assert is_running(tmp_path)
    assert not is_running(tmp_path)
    assert not is_running(tmp_path / "nowhere")


def test_looking_whether_it_runs_keeps_no_lab_out(tmp_path):
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            is_running(tmp_path)

    looking = [threading.Thread(target=look) for _ in range(3)]
    for each in looking:
        each.start()
    try:
        for _ in range(50):
            with locked(tmp_path):
                assert is_running(tmp_path)
    finally:
        ended.set()
        for each in looking:
            each.join()


def test_a_running_study_alone_can_be_asked_to_stop(tmp_path):
    with pytest.raises(StoreError, match=r"no pgtrial on this machine runs .*; pgtrial run .* continues the study"):
        ask_to_stop(tmp_path)
    assert not stop_is_asked(tmp_path)
    with locked(tmp_path):
        ask_to_stop(tmp_path)
        assert stop_is_asked(tmp_path)
        forget_stop(tmp_path)
        assert not stop_is_asked(tmp_path)
        forget_stop(tmp_path)


def test_another_account_sees_whether_a_study_runs_and_cannot_hold_it_up(disk_path):
    require_root()
    study = disk_path
    (study / ".lock").touch()
    (study / ".lock").chmod(0o644)  # as it was once made

    def sees(running):
        def look():
            assert is_running(study) is running
            with pytest.raises(PermissionError), (study / ".lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_SH)

        as_account("nobody", look)

    with locked(study):
        sees(running=True)
    sees(running=False)
    assert stat.S_IMODE((study / ".lock").stat().st_mode) == 0o600
