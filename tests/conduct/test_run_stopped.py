"""A study that is asked to stop ends after its block, is watched while it runs, and goes on when it is run again."""

from __future__ import annotations

import pytest

from pgtrial.conduct.progress import ProgressEvent, Second, StudyEnds, TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.report.serve.live import Live, Look
from pgtrial.store.running import ask_to_stop, is_running, stop_is_asked
from tests.conduct.small import once, small_study

pytestmark = pytest.mark.server


def test_a_study_stops_after_the_block_under_way_and_goes_on_later(tmp_path):
    study = small_study(tmp_path / "s", blocks=2, load={"rate": 100, "duration": "3s"})
    live, heard = Live(study.path), []
    looks: list[tuple[Second, Look]] = []
    ask = once(lambda event: isinstance(event, TrialBegins), lambda: ask_to_stop(study.path))

    def on_event(event: ProgressEvent) -> None:
        heard.append(event)
        ask(event)
        if isinstance(event, Second):
            looks.append((event, live.look()))

    run_study(study, on_event)
    assert [trial.block for trial in study.trials()] == [0, 0]
    assert heard[-1] == StudyEnds("stopped on request after 1 block; run it again to go on", blocks=1)
    assert not is_running(study.path)
    assert not stop_is_asked(study.path)
    _check(looks)

    run_study(study, heard.append)
    assert [trial.block for trial in study.trials()] == [0, 0, 1, 1]
    assert heard[-1] == StudyEnds("all 2 planned blocks are complete", blocks=2)


def _check(looks: list[tuple[Second, Look]]) -> None:
    """Checks that each snapshot of the running study showed the trial in progress, the seconds it had so far, and the
    next trials. Each was taken when the lab heard of a second.
    """
    assert all(look.running and look.stopping and look.trouble is None for _, look in looks)
    assert {look.stored for _, look in looks} == {0, 1}
    assert {look.under_way[0].planned.index for _, look in looks} == {0, 1}
    assert {len(look.queue) for _, look in looks} == {3, 2}
    measured = [(event, look.under_way[0]) for event, look in looks if event.phase == "measure"]
    assert len(measured) == 2 * 3
    for event, trial in measured:
        # a second is on disk before the lab hears of it; later ones are, too, where the lab is late
        assert (trial.phase, event.second <= trial.second <= 2) == ("measure", True)
        assert trial.tps[event.second - trial.second - 1] == pytest.approx(event.tps)
    assert any(event.tps > 0 for event, _ in measured)
