"""Which lengths pgtrial chose and why, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.conduct.run_once_lengths import end_in_words
from pgtrial.conduct.stopping import OVERRUN
from pgtrial.conduct.trial_lengths import planned_lengths
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, percent, plural


def in_words(plan: Plan, spec: StudySpec) -> Iterator[str]:
    """What was chosen and why, a sentence or two; nothing where the study gives the lengths."""
    chosen = plan.lengths
    if chosen is None:
        return
    lengths = planned_lengths(plan)
    if plan.kind.time_is_unknown:
        yield end_in_words(plan, chosen)
        return
    both = f"{format_duration(plan.warmup_s)} of warm-up and {format_duration(plan.duration_s)} measured"
    fits = (
        f"{plural(plan.max_blocks, 'block')} of about {format_duration(round(lengths.block_s))}, "
        f"{percent(lengths.measured_share, 0)} of it measured"
    )
    if chosen.preliminary is None:
        yield f"about {both}: {fits}; a block before them, which does not count, sets both lengths"
        return
    noise = ", the length that finds most in the noise of this machine" if chosen.from_noise else ""
    yield f"{both}: {chosen.preliminary.text}; {fits}{noise}"
    total_s = chosen.preliminary.wall_s + plan.max_blocks * lengths.block_s
    if total_s > OVERRUN * spec.verdict.budget and spec.verdict.blocks is None:
        yield (
            f"the {plural(plan.max_blocks, 'block')} take about {format_duration(round(total_s))} with the one before "
            f"them, longer than the budget of {format_duration(spec.verdict.budget)}, since fewer allow no verdict"
        )
    if plan.warmup_s < chosen.wanted_warmup_s and spec.load.given_s[0] is None:
        yield (
            f"a warm-up of {format_duration(chosen.wanted_warmup_s)} does not fit the budget of "
            f"{format_duration(spec.verdict.budget)}; a longer [verdict] budget holds it"
        )
