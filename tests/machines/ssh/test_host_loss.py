"""A host that is lost under a trial: that trial has failed, once, and the next one has all that its arm asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pgtrial.conduct.progress import Preparing, ProgressEvent, TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.errors import ArmError
from pgtrial.servers.arms import make_arms
from pgtrial.servers.leftovers import clean, leftovers
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import each_once, measuring, once, run_one, small_study
from tests.conftest import require_engine
from tests.machines.ssh.hosts import TTL, Host

pytestmark = [pytest.mark.server, pytest.mark.machine]


@pytest.fixture
def host(hosts: list[Host]) -> Host:
    require_engine()
    return hosts[0]


@pytest.fixture
def usual_ttl(host: Host) -> str:
    return host.ttl()


@pytest.fixture
def crash(host: Host, usual_ttl: str) -> Callable[[], None]:
    """Returns a function that crashes the host and resets the kernel value that pgtrial had changed, as a
    reboot would.
    """

    def end() -> None:
        host.crash()
        host.on_it("sh", "-c", f"echo {usual_ttl} > {TTL}")

    return end


@pytest.fixture
def study(tmp_path: Path, host: Host, postgres: str) -> StudyDirectory:
    """Returns a study of two arms on one host, with a file system and a kernel value of their own."""
    set_up = {
        "ssh": host.login,
        "data": str(host.data),
        "postgres": postgres,
        "storage": {"fs": "tmpfs", "size": "300MB"},
        "sysctl": {"net.ipv4.ip_default_ttl": "77"},
    }
    arms = {"a": set_up, "b": {**set_up, "settings": {"jit": "off"}}}
    return small_study(tmp_path / "s", blocks=1, arms=arms, load={"on_server_loss": "wait 1s", "observe": False})


def test_a_host_lost_in_mid_trial_fails_that_trial_and_comes_back_with_all_changes_made_anew(
    host, study, crash, usual_ttl, tmp_path
):
    first, second = study.plan.trials
    seen: list[tuple[str, int]] = []

    def look() -> None:
        seen.append((host.ttl(), len(host.mounts())))

    with Workspace() as workspace:
        arms = make_arms(study.design, workspace)
        arms["a"].prepare(PgbenchTables(1), lambda line: None)

        lost = run_one(study, first, arms[first.arm], once(measuring, crash))
        assert lost.status == "failed"
        assert lost.reason is not None
        assert f"the server's host was lost in mid-trial: {host.login} cannot be reached by ssh: " in lost.reason
        assert lost.measured is not None
        assert lost.measured.transactions > 0

        with pytest.raises(ArmError, match=rf"arms\.{second.arm}: {host.login} cannot be reached by ssh"):
            run_one(study, second, arms[second.arm], lambda event: None)
        assert [trial.index for trial in study.trials()] == [0]

        host.boot()
        again = run_one(study, second, arms[second.arm], once(measuring, look))
        assert (again.status, again.reason) == ("completed", None)
        anew = f"{host.login} was restarted before this trial"
        assert any(anew in note for note in again.notes)

        crash()
        host.boot()
        with arms["a"].serve(NO_TABLES, tmp_path / "log", {}):
            look()
        assert anew in arms["a"].notes[0]
        with arms["a"].serve(NO_TABLES, tmp_path / "log", {}):
            look()
        assert arms["a"].notes == []
        assert seen == [("77", 1)] * 3

    assert host.ttl() == usual_ttl
    assert host.left_in_the_end() == []


def test_a_study_goes_on_after_each_trial_that_lost_its_host_and_tells_what_is_left_on_one_that_is_gone(
    host, study, crash
):
    lose = {0: crash, 1: crash}
    heard: list[ProgressEvent] = []
    seen: list[str] = []

    def on_event(event: ProgressEvent) -> None:
        heard.append(event)
        trial = sum(isinstance(earlier, TrialBegins) for earlier in heard) - 1
        if measuring(event) and trial in lose:
            seen.append(host.ttl())
            lose.pop(trial)()
            if trial == 0:
                host.boot()

    run_study(study, on_event)
    assert each_once(study)
    assert seen == ["77", "77"]
    restarted, gone = study.trials()
    assert (restarted.status, gone.status) == ("failed", "failed")
    assert f"the server's host was lost in mid-trial: {host.login} was restarted" in str(restarted.reason)
    assert "cannot be reached by ssh" in str(gone.reason)
    last = heard[-1]
    assert isinstance(last, Preparing)
    assert (
        f" on {host.login} could not be removed, and what the study has changed there could not be undone" in last.text
    )
    host.boot()
    assert any(f" on {host.login}, left by" in notice for notice in clean())
    assert host.left_in_the_end() == []


def test_an_interrupt_while_the_host_is_gone_ends_the_lab_and_tells_what_is_left_there(
    host, study, crash, fresh_state, tmp_path
):
    def run() -> None:
        with Workspace(fresh_state) as workspace:
            arm = make_arms(study.design, workspace)["a"]
            with arm.serve(NO_TABLES, tmp_path / "log", {}):
                crash()
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        run()
    (note,) = interrupted.value.__notes__
    assert f" on {host.login} could not be removed, and what the study has changed there could not be undone" in note
    assert "pgtrial cleanup" in note
    host.boot()
    assert any(f" on {host.login}, left by" in notice for notice in clean(fresh_state))
    assert leftovers(fresh_state) == []
    assert host.left_in_the_end() == []
