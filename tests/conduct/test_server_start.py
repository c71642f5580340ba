"""A server that does not start in mid-study: its port is taken, by a socket of the test."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgtrial.conduct.progress import Preparing, ProgressEvent, TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import ArmError
from pgtrial.report.data import read_data
from pgtrial.servers.access import reserved_port
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import FAST, each_once, small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _engine() -> None:
    require_engine()


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as number:
        yield number


def by_tcp(port: int) -> dict[str, object]:
    return {"connect": "tcp", "settings": {"port": str(port)}}


class Intruder:
    """Listens on a port while the trials of one block begin, or until the first attempt there has failed."""

    def __init__(self, port: int, block: int, *, once: bool = False) -> None:
        self._port, self._block, self._once = port, block, once
        self._socket: socket.socket | None = None

    def on_event(self, event: ProgressEvent) -> None:
        """A listener of the study."""
        match event:
            case TrialBegins() if event.trial.block != self._block:
                self.leave()
            case TrialBegins() if self._socket is None:
                self._socket = socket.create_server(("127.0.0.1", self._port))
            case Preparing() if self._once and "starting it once more" in event.text:
                self.leave()

    def leave(self) -> None:
        """Closes the socket that occupied the port, so that the port is free."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


IN_TURNS = {"interleave": "auto", "share_server": False}


@pytest.mark.parametrize("load", [{}, IN_TURNS])
def test_the_second_attempt_is_recorded_and_shown_and_its_trial_counts(
    tmp_path: Path, port: int, load: dict[str, object]
) -> None:
    study = small_study(tmp_path / "s", load=load, arms={"here": {}, "there": by_tcp(port)})
    run_study(study, Intruder(port, 1, once=True).on_event)
    assert each_once(study)
    assert {trial.status for trial in study.trials()} == {"completed"}
    (again,) = [trial for trial in study.trials() if trial.start_failures]
    assert (again.arm, again.block) == ("there", 1)
    assert "could not" in again.start_failures[0]
    (note,) = [note for note in read_data(study).result.notes if "first attempt" in note]
    assert note.startswith("The server of there did not start at the first attempt in 1 trial; the second attempt ")
    assert "failed as well in 0 of them" in note


@pytest.mark.parametrize("load", [{}, IN_TURNS])
def test_a_server_that_does_not_start_twice_fails_its_own_trial_alone(
    tmp_path: Path, port: int, load: dict[str, object]
) -> None:
    study = small_study(tmp_path / "s", blocks=3, load=load, arms={"here": {}, "there": by_tcp(port)})
    run_study(study, Intruder(port, 1).on_event)
    assert each_once(study)
    (failed,) = [trial for trial in study.trials() if trial.status == "failed"]
    assert (failed.arm, failed.block) == ("there", 1)
    assert len(failed.start_failures) == 2
    assert "did not start at 2 attempts" in str(failed.reason)
    assert {"restore", "start"} <= failed.phases_s.keys()
    result = read_data(study).result
    assert result.blocks_complete == 3
    assert [each.index for each in result.failed_trials] == [failed.index]


def test_sessions_of_a_server_that_does_not_start_fail_together_and_say_nothing_of_either(
    tmp_path: Path, port: int
) -> None:
    server = {"connect": "tcp", "settings": {**FAST, "port": str(port)}}
    study = small_study(tmp_path / "s", blocks=3, load={"interleave": "auto"}, server=server)
    assert study.plan.shares_server
    intruder = Intruder(port, 1)
    with pytest.raises(ArmError, match="the server of no arm starts any more"):
        run_study(study, intruder.on_event)
    intruder.leave()
    assert [trial.status for trial in study.trials()] == ["completed"] * 2 + ["failed"] * 2
    run_study(study, lambda event: None)
    assert each_once(study)
    assert [each.void for each in read_data(study).result.failed_trials] == [True, True]


def test_where_no_server_starts_the_study_stops_and_goes_on(tmp_path: Path, port: int) -> None:
    study = small_study(tmp_path / "s", arms={"one": by_tcp(port), "two": by_tcp(port)})
    intruder = Intruder(port, 0)
    with pytest.raises(ArmError, match="the server of no arm starts any more"):
        run_study(study, intruder.on_event)
    intruder.leave()
    assert len(StudyDirectory.open(study.path).trials()) == 2
    run_study(study, lambda event: None)
    assert each_once(study)
    assert [trial.status for trial in study.trials()] == ["failed"] * 2 + ["completed"] * 2
