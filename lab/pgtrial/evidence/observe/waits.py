"""What sessions are doing at a moment: wait events and states from pg_stat_activity, and their means by second."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import polars as pl

from pgtrial.evidence.observe.counters import Session
from pgtrial.store.directory import WAITS_SCHEMA

Doing = tuple[str, str | None, str | None, str | None]
"""Backend type, wait event type, wait event, state."""

Doings = dict[Doing, int]
"""How many sessions were found doing what."""

LAB_NAME = "pgtrial lab"
"""The application_name of the lab's own sessions, which are no part of the load."""

_ACTIVITY = f"""SELECT backend_type, wait_event_type, wait_event, state, count(*) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name IS DISTINCT FROM '{LAB_NAME}' GROUP BY 1, 2, 3, 4"""


def read_waits(session: Session) -> tuple[Doings, bool]:
    """The sessions of the server but the lab's own, and whether some are hidden from this role. Raises psycopg.Error.

    Of what a role may not see PostgreSQL tells the process, but neither its type nor its waits.
    """
    rows = session.execute(_ACTIVITY).fetchall()
    seen = {(row[0], row[1], row[2], row[3]): int(row[4]) for row in rows if row[0] is not None}
    return seen, len(seen) < len(rows)


def mean_waits(samples: Sequence[tuple[float, Doings]]) -> pl.DataFrame:
    """Mean number of sessions by second, columns of WAITS_SCHEMA; the samples' times count from the measured part.

    A second without a sample has no rows; in a second with samples, those that did not find a session count as 0.
    """
    taken: Counter[int] = Counter()
    sums: dict[tuple[int, Doing], int] = {}
    for moment, doings in samples:
        second = math.floor(moment)
        taken[second] += 1
        for doing, sessions in doings.items():
            sums[second, doing] = sums.get((second, doing), 0) + sessions
    rows = [(second, *doing, found / taken[second]) for (second, doing), found in sums.items()]
    return pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row").sort(list(WAITS_SCHEMA)[:-1])
