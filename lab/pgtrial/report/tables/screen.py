"""The tables of a screening study: its factors, and the pairs of factors that seem to interact."""

from __future__ import annotations

from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.screens import FactorPair
from pgtrial.model.units import change
from pgtrial.report.data import StudyData
from pgtrial.report.screen import is_decided
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import verdict_text
from pgtrial.report.words import estimate_text


def factor_table(result: StudyResult) -> Table[Claim]:
    """Returns the table of all factors, the decided ones first and each group with the largest effect first."""
    return Table(
        "The effect of each factor: its second level against its first one, averaged over the levels of all other "
        "factors. The intervals of all factors hold together.",
        result.primary,
        [
            Column("factor", lambda claim: claim.arm.partition("=")[0]),
            Column(
                "levels", lambda claim: " or ".join(level.partition("=")[2] for level in (claim.baseline, claim.arm))
            ),
            number("difference", lambda claim: estimate_text(claim, "so far"), verdict=lambda claim: claim.verdict),
            number("95% interval", lambda claim: claim.difference, Estimate.text, verdict=lambda claim: claim.verdict),
            number("blocks", lambda claim: claim.blocks),
            Column("verdict", verdict_text, verdict=lambda claim: claim.verdict),
        ],
        is_decided,
    )


def screen_tables(data: StudyData) -> list[Table[Claim] | Table[FactorPair]]:
    """Returns the tables of a screening study; empty for other studies."""
    screen = data.result.screen
    if screen is None:
        return []
    pairs = Table(
        "Pairs of factors that seem to interact. This is a hint from the speeds of whole blocks, and no verdict: "
        "compare the set-ups to be sure.",
        screen.pairs,
        [
            Column("factor", lambda pair: pair.one.labels[1]),
            Column("with", lambda pair: pair.other.labels[1]),
            Column("instead of", lambda pair: pair.other.labels[0]),
            number("difference of the effect", lambda pair: pair.difference, change),
        ],
    )
    return [factor_table(data.result), pairs]
