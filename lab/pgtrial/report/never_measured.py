"""Names the arms whose trials all failed, with the reasons. For such an arm the study has no result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import plural, shortened

LONGEST_REASON = 160
"""The number of characters that are shown of the reason why a trial failed."""

_NAMED = 3
"""The number of reasons that are shown for an arm, beginning with the most frequent."""

_NUMBERS = re.compile(r"\d+")
"""Matches numbers in reasons, such as process numbers. They differ between trials that failed for the same reason."""


def never_measured(plan: Plan, trials: Sequence[Trial]) -> str | None:
    """Returns a sentence about the arms whose trials all failed, with the reasons and how often each occurred.

    `trials` are the stored trials. Returns None if there is no such arm.
    """
    of_arms = {arm: [trial for trial in trials if trial.arm == arm] for arm in plan.arms}
    failed = {arm: own for arm, own in of_arms.items() if own and all(trial.status == "failed" for trial in own)}
    if not failed:
        return None
    arms = "; ".join(f"{arm}: {reasons_text(own)}" for arm, own in failed.items())
    what = "nothing was measured" if len(failed) == len(of_arms) else f"nothing was measured of {' and '.join(failed)}"
    return f"{what}, since all trials failed: {arms}; mend that, and run the study again"


def reasons_text(trials: Sequence[Trial]) -> str:
    """Returns the reasons of failed trials with their counts, such as `2 trials: REASON`. If trials failed for the same
    reason, the words of the first of them are used."""
    reasons: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for trial in trials:
        if trial.status == "failed":
            reason = " ".join((trial.reason or "no reason is known").split())
            kind = _NUMBERS.sub("0", reason)
            reasons.setdefault(kind, reason)
            counts[kind] += 1
    named = [
        f"{plural(number, 'trial')}: {shortened(reasons[kind], LONGEST_REASON).rstrip('.')}"
        for kind, number in counts.most_common(_NAMED)
    ]
    rest = counts.total() - sum(number for _, number in counts.most_common(_NAMED))
    return ", ".join([*named, *([f"{plural(rest, 'trial')} for other reasons"] if rest else [])])
