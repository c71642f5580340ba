"""A rule on the order of trials. It finds signs that somebody may have chosen blocks after seeing their results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pgtrial.model.units import grouped, plural
from pgtrial.verdict.rules.case import Case, Concern, listed, rule


@rule("measured_again", "blocks were measured again after later ones", over_trials=True)
def measured_again(case: Case) -> Iterator[Concern]:
    """Finds blocks with a trial that began after a trial of a later block. Because a study runs its blocks in order,
    such a block must have been measured before and then removed, possibly because somebody did not like its result.

    P8 is the statistical rule of older versions of pgtrial. For studies that were planned with it this rule finds
    nothing, so that their stored results do not change.
    """
    if case.plan.spending is None:
        return
    begun = grouped((trial.block, datetime.fromisoformat(trial.started)) for trial in case.trials)
    again: list[int] = []
    of_later: list[datetime] = []
    for block in sorted(begun, reverse=True):
        if of_later and max(begun[block]) > min(of_later):
            again.append(block)
        of_later = [min([*begun[block], *of_later])]
    if not again:
        return
    blocks = listed([str(block + 1) for block in reversed(again)])
    yield Concern(
        list(case.plan.arms),
        f"{plural(len(again), 'block')} ({blocks}) began after later blocks had been measured: trials were removed and "
        "measured again, or the clock was set back. Whoever removes trials may have chosen them by their results.",
        "Start a new study (pgtrial run --new): with chosen blocks no verdict keeps its error of 5%.",
        "withhold",
    )
