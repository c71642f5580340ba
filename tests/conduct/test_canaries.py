"""Canaries of a study that runs: one before each block, which no verdict uses."""

import pytest

from pgtrial.conduct.progress import TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.report.data import read_data
from tests.conduct.small import each_once, small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server


class Killed(BaseException):
    """Stands for the end of the lab."""


def test_one_canary_is_taken_before_each_block_and_none_for_a_block_that_goes_on(tmp_path, state_root):
    require_engine()
    study = small_study(tmp_path / "s", blocks=2, verdict={"canary": True})

    def until_the_second_trial(event):
        if isinstance(event, TrialBegins) and event.number == 2:
            raise Killed

    with pytest.raises(Killed):
        run_study(study, until_the_second_trial)
    (first,) = study.canaries()
    run_study(study, lambda event: None)
    canaries = study.canaries()
    assert each_once(study)
    assert [(canary.number, canary.next_block) for canary in canaries] == [(0, 0), (1, 1)]
    assert canaries[0] == first
    assert all(canary.reading.cpu_per_s and canary.reading.select1_per_s for canary in canaries)
    result = read_data(study).result
    # a machine that is a hundred times slower between two blocks changes no verdict
    study.add_canary(1, canaries[1].reading.model_copy(update={"cpu_per_s": canaries[1].reading.cpu_per_s / 100}))
    assert read_data(study).result == result


def test_a_study_without_canaries_takes_none(tmp_path, state_root):
    require_engine()
    study = small_study(tmp_path / "s", blocks=1)
    run_study(study, lambda event: None)
    assert study.canaries() == []
