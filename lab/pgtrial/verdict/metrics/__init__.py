"""The families of claims besides the primary claims of a study. Each family has its own file, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pgtrial.model.records import Record
from pgtrial.model.records.claims import Claim
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.cliffs import cliffs
from pgtrial.verdict.metrics.costs import costs
from pgtrial.verdict.metrics.criteria import criteria
from pgtrial.verdict.metrics.curve import curve
from pgtrial.verdict.metrics.declared_claims import metric_claims
from pgtrial.verdict.metrics.failures import failure_claims
from pgtrial.verdict.metrics.queries import query_claims
from pgtrial.verdict.metrics.scaling import scaling
from pgtrial.verdict.metrics.statements import statement_claims

Family = Callable[[Grid, Sequence[Claim]], Sequence[Record]]
"""Makes the claims of a family from the trials and the primary claims. A claim on an arm is withheld if the primary one
is."""

FAMILIES: Mapping[str, Family] = {
    "costs": costs,
    "criteria": criteria,
    "curve": curve,
    "failure_claims": failure_claims,
    "metrics": metric_claims,
    "statements": statement_claims,
    "queries": query_claims,
    "scaling": scaling,
    "cliffs": cliffs,
}
"""The families by their keys in the result."""
