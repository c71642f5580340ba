"""All families of claims except the primary claims, which decide the verdict of a study. A family is a group of
comparisons, for example of all statements of a replay, that share the allowed probability of a wrong verdict. Each
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
"""A function that makes the claims of a family (a group of comparisons that share the allowed probability of a wrong
verdict) from the trials and the primary claims. If the verdict on an arm is withheld because the comparison is not
fair, the claims of the family on this arm are withheld too, except the claims on failures."""

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
"""The functions that make the families of claims, which are groups of comparisons such as those of all costs. The key
of each is the field of the study's result in which its claims are stored."""
