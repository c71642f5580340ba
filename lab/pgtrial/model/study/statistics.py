"""The key `statistics` of `[load]`, which says how the planner's statistics of a copy of the data are made. Checks
whether the arms can all have the same statistics."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.model import marks
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Made
from pgtrial.model.study.setup import KEYS

TAKES_STATISTICS = 18
"""The first version of PostgreSQL that can import planner statistics from another server."""


def objection_to_statistics(design: Design) -> str | None:
    """Returns the reason why the arms cannot all have the same planner statistics, as a sentence; None if they can, or
    if the study does not ask for it."""
    if design.load.statistics != "same":
        return None
    copying = design.copying
    without = next((arm for arm in design.servers if arm not in copying), None)
    if without is not None:
        return (
            f"{marks.key('load', 'statistics', 'same')} is for fresh copies on servers that pgtrial makes, and "
            f"arms.{without} has none; leave the key out"
        )
    old = [server.postgres for server in copying.values() if server.postgres.isdecimal()]
    old = [version for version in old if int(version) < TAKES_STATISTICS]
    return too_old(old[0]) if old and _load_apart(list(copying.values())) else None


def too_old(version: str) -> str:
    """Returns the error message for a server whose version of PostgreSQL cannot import planner statistics from another
    server. The message says what to do."""
    return (
        f"{marks.key('load', 'statistics', 'same')}: PostgreSQL {version} does not take the statistics of another "
        f"server, as {TAKES_STATISTICS} and later do, and the arms load their data apart; leave the key out: "
        "ANALYZE then takes a new sample for each trial, so that differences between samples are noise between blocks"
    )


def _load_apart(servers: Sequence[Made]) -> bool:
    """True if the arms cannot all copy the same loaded data (one template), as far as the study file tells."""
    names = [name for name, key in KEYS.items() if {"loaded data", "server build", "host"} & {*key.apart}]
    values = [[getattr(server, name, None) for name in names] for server in servers]
    return any(value != values[0] for value in values)
