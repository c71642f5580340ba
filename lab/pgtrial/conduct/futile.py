"""Finds out after a trial whether further trials of the study would be futile, since they would fail for the same
reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgtrial.model import marks
from pgtrial.model.errors import ArmError
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial


def check_start(trials: Sequence[Trial], arms: set[str]) -> None:
    """Raises ArmError if the servers of all these arms failed to start in their last trials, since then the machine is
    the cause and not an arm."""
    last = trials[-len(arms) :]
    if {trial.arm for trial in last if trial.never_started} == arms:
        raise ArmError(f"the server of no arm starts any more: {last[-1].start_failures[-1]}")


_OF_ONE_ARM = re.compile(r"\d+|'[^']*'")
"""Matches the parts of an error message that can differ between arms: numbers, and quoted texts such as the paths of
programs."""


def check_alike(trials: Sequence[Trial], block: Sequence[PlannedTrial]) -> None:
    """Raises ArmError if all trials of the first block failed for the same reason, since later blocks would fail
    too."""
    reasons = {trial.reason and _OF_ONE_ARM.sub("0", trial.reason) for trial in trials}
    if len(trials) == len(block) and len(reasons) == 1 and (reason := trials[0].reason) is not None:
        raise ArmError(f"every trial of the first block failed, on all arms: {marks.stored(reason)}")


def check_own_metrics(trials: Sequence[Trial], block: Sequence[PlannedTrial], plan: Plan) -> None:
    """Raises ArmError if one of the study's own metrics has no value in any trial of the first block, since it would
    have none in later blocks either."""
    if len(trials) != len(block) or any(trial.reason is not None for trial in trials):
        return
    for name in plan.own_metrics:
        if not any(name in trial.own_metrics for trial in trials):
            notes = [note for note in trials[0].notes if note.startswith(f"{name} ")]
            raise ArmError(f"no trial of the first block has a number for {name}: {marks.stored(notes[0])}")
