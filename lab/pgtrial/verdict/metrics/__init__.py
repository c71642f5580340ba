"""All families of claims except the primary claims of a study. A family is a group of claims that share an error. Each
family has its own module, and an entry in FAMILIES."""

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
"""A function that makes the claims of a family from the trials and the primary claims. If the primary claim on an arm
is withheld, the claims of the family on this arm are withheld too."""

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
"""The families by their keys in the result of a study."""
