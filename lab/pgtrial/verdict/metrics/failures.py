"""Makes the comparisons of the shares of failed transactions, which complete the comparisons of speeds, in the form in
which they are stored."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.results import FailureClaim
from pgtrial.verdict.failures import shares
from pgtrial.verdict.family import primary_sharing
from pgtrial.verdict.grid import Grid


def failure_claims(grid: Grid, primary: Sequence[Claim]) -> list[FailureClaim]:
    """Returns the comparison of the shares of failed transactions for each arm. An arm is left out if neither in it nor
    in the baseline a transaction failed."""
    claims = []
    for claim in primary:
        found = shares(grid, claim.arm, primary_sharing(grid.plan))
        if found is not None:
            gain = found.series.difference
            difference = None
            if gain is not None:
                low, high = (None if bound is None else -bound for bound in (gain.high, gain.low))
                difference = Estimate(low=low, value=-gain.value, high=high)
            claims.append(
                FailureClaim(
                    arm=claim.arm,
                    baseline=claim.baseline,
                    shares={claim.arm: found.arm, claim.baseline: found.baseline},
                    verdict=found.series.verdict(withheld=False),
                    difference=difference,
                    claims=found.series.asked.family,
                    blocks=len(found.series.used),
                )
            )
    return claims
