"""Jobs on another host whose number was given again after a restart, or before."""

from __future__ import annotations

import threading

import psutil
import pytest

from pgtrial.machines.ssh.machine import RemoteMachine
from tests.machines.ssh.hosts import wait_until
from tests.machines.strangers import REUSED, is_untouched, record_of_a_job

pytestmark = pytest.mark.machine


@pytest.mark.parametrize("reused", REUSED)
def test_a_job_whose_number_was_given_again_is_left_alone(tmp_path, hosts, stranger, reused):
    machine = RemoteMachine(hosts[0].login)
    jobs = tmp_path / "jobs"
    machine.begin_jobs(jobs)
    (jobs / "7").mkdir()
    (jobs / "7" / "pid").write_text(record_of_a_job(stranger, reused))
    machine.end_jobs(jobs)
    machine.close()
    assert is_untouched(stranger)
    assert not jobs.exists()


def test_a_job_that_still_runs_is_ended_with_its_children(tmp_path, hosts):
    machine = RemoteMachine(hosts[0].login)
    jobs, begun = tmp_path / "jobs", tmp_path / "begun"
    machine.begin_jobs(jobs)
    script = f"sleep 299 & echo $! > {begun}.new; mv {begun}.new {begun}; wait"
    other = RemoteMachine(hosts[0].login)
    threading.Thread(target=lambda: machine.run(["sh", "-c", script]), daemon=True).start()
    wait_until(begun.exists)
    child = psutil.Process(int(begun.read_text()))
    other.end_jobs(jobs)
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    other.close()
    machine.close()
    assert not jobs.exists()
