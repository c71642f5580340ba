"""Blocks that were measured again after later ones: whoever removed them may have seen what they said."""

from __future__ import annotations

from datetime import datetime, timedelta

from pgtrial.model.records.plan import Spending
from pgtrial.statistics import p9
from tests.verdict.studies import make_plan, noisy, run, verdict_of


def _result(*, again, by_p9=True):
    """Returns the result of a study of equal arms. The blocks `again` were removed and measured once more after all
    others.
    """
    plan = make_plan(blocks=10)
    if by_p9:
        plan = plan.model_copy(update={"spending": Spending(end=10, kept=p9.KEPT), "looks": p9.looks(10)})
    late = timedelta(hours=1)
    trials = [
        trial.model_copy(
            update={
                "started": (datetime.fromisoformat(trial.started) + late).isoformat(),
                "ended": (datetime.fromisoformat(trial.ended) + late).isoformat(),
            }
        )
        if trial.block in again
        else trial
        for trial in run(plan, noisy({"off": 1.3}))
    ]
    return verdict_of(plan, trials)


def test_blocks_that_somebody_removed_and_measured_again_forbid_a_verdict():
    result = _result(again=(1, 4))
    assert result.primary[0].verdict == "withheld"
    (reason,) = result.withheld
    assert reason.startswith("2 blocks (2 and 5) began after later blocks had been measured")


def test_blocks_in_their_order_and_the_last_ones_again_are_as_they_should_be():
    assert _result(again=()).primary[0].verdict == "better"
    assert _result(again=(8, 9)).primary[0].verdict == "better"
    assert _result(again=(1,), by_p9=False).primary[0].verdict == "better", "of a study of before"
