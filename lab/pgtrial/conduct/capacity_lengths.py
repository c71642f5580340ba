"""How long a trial that looks for a capacity takes, and each of its probes."""

from __future__ import annotations

from pgtrial.conduct.block_estimates import SPARE_BLOCKS, SPENT_SHARE, fewest_for_a_verdict
from pgtrial.conduct.trial_lengths import TrialLengths
from pgtrial.model.study.capacity import CapacitySection
from pgtrial.model.study.spec import StudySpec
from pgtrial.statistics import capacity


def lengths_of_searches(spec: StudySpec, promise: CapacitySection, trials: int, overhead_s: float) -> TrialLengths:
    """The lengths of a study of capacity: probes as long as the fewest blocks for a verdict, and spare ones, allow."""
    blocks = spec.verdict.blocks or fewest_for_a_verdict(spec) + SPARE_BLOCKS
    held_s = (SPENT_SHARE * spec.verdict.budget / blocks - overhead_s) / trials
    warmup_s, probe_s = promise.lengths(*spec.load.given_s, held_s, capacity.EXPECTED)
    load_s = promise.search_s(warmup_s, probe_s, capacity.EXPECTED)
    return TrialLengths(load_s, warmup_s, probe_s, trials, overhead_s)
