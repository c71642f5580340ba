"""Rules on the tables before the load: the same rows in the same space, and nothing left over from other trials."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from pgtrial.facts.audit import listed
from pgtrial.facts.trial_audit import TOLERATED, TrialCase, trial_rule
from pgtrial.store.records import Finding, LoadPoint, Trial

_LARGER = 1.05
_LARGER_BYTES = 2**20
"""What a size may be larger without a word: a page here and there in the smallest tables."""

_DEAD = 0.05
"""Share of dead rows before the load; autovacuum by default begins at 0.2."""


@trial_rule
def unequal_tables(case: TrialCase) -> Iterator[Finding]:
    """Bloat, or another way of storing: more pages to read and to keep in the cache."""
    for arm in case.others:
        sizes = [(point, _size(case, case.plan.baseline, point), _size(case, arm, point)) for point in _points(case)]
        odd = [(point, base, own) for point, base, own in sizes if base and own and _differ(base, own)]
        if odd:
            point, base, own = max(odd, key=lambda entry: max(entry[1:]) / min(entry[1:]))
            chosen = case.declared(arm, "server.setup_sql")
            larger = arm if own > base else case.plan.baseline
            yield Finding(
                rule="unequal_tables",
                severity="info" if chosen else "warning",
                arms=[case.plan.baseline, arm],
                message=f"Before the load tables and indexes take {base / 2**20:,.0f} MB in {case.plan.baseline} and "
                f"{own / 2**20:,.0f} MB in {arm} ({point.label}): "
                + (
                    "as the study's SQL makes them."
                    if chosen
                    else f"those of {larger} are bloated, or stored otherwise."
                ),
                cure="Load them anew: `pgtrial cleanup --templates` and a new run where the lab loads; VACUUM FULL or "
                "a fresh load on a given server.",
            )


@trial_rule
def dead_tuples(case: TrialCase) -> Iterator[Finding]:
    """Dead rows that earlier trials left make later ones slower, and by chance one arm's more than another's."""
    found = {}
    for arm in case.plan.arms:
        shares = [share for trial in case.of(arm) if (share := _dead(trial)) is not None]
        over = [share for share in shares if share > _DEAD]
        if len(over) > TOLERATED * len(shares):
            found[arm] = max(over)
    if found:
        worst = max(found, key=lambda arm: found[arm])
        yield Finding(
            rule="dead_tuples",
            severity="warning",
            arms=list(found),
            message=f"Trials of {listed(found)} begin with dead rows that are carried over, "
            f"up to {found[worst]:.0%} of all rows in {worst}.",
            cure='Use [server] reset = "copy", or "vacuum" for a given server.',
        )


def _points(case: TrialCase) -> list[LoadPoint]:
    """One load point a scale: the tables do not depend on the rest of it."""
    return list({_data(point): point for point in reversed(case.plan.load_points)}.values())


def _data(point: LoadPoint) -> tuple[object, ...]:
    if point.sysbench:
        return point.workload, point.tables, point.table_size
    return (point.scale,)


def _size(case: TrialCase, arm: str, point: LoadPoint) -> float | None:
    """Median over the trials of the scale, bytes."""
    sizes = [
        sum(each.get("bytes_table", 0) + each.get("bytes_indexes", 0) for each in trial.relations_before.values())
        for trial in case.of(arm)
        if _data(trial.load_point) == _data(point) and trial.relations_before
    ]
    return median(sizes) if sizes else None


def _differ(base: float, own: float) -> bool:
    return max(base, own) > _LARGER * min(base, own) and abs(base - own) > _LARGER_BYTES


def _dead(trial: Trial) -> float | None:
    live = sum(each.get("live_tuples", 0) for each in trial.relations_before.values())
    dead = sum(each.get("dead_tuples", 0) for each in trial.relations_before.values())
    return dead / (live + dead) if live + dead else None
