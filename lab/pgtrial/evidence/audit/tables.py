"""Rules on the tables: the same rows in the same space before it, equal maintenance during it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from pgtrial.evidence.audit.cases import TOLERATED, Case, Pair, listed
from pgtrial.model.records.study import Finding, LoadPoint, Trial

_LARGER = 1.05
_LARGER_BYTES = 2**20
"""What a size may be larger without a word: a page here and there in the smallest tables."""

_DEAD = 0.05
"""Share of dead rows before the load; autovacuum by default begins at 0.2."""


def unequal_tables(case: Case) -> Iterator[Finding]:
    """Bloat, or another way of storing: more pages to read and to keep in the cache."""
    for arm in case.others:
        sizes = [(point, _size(case, case.plan.baseline, point), _size(case, arm, point)) for point in _points(case)]
        odd = [(point, base, own) for point, base, own in sizes if base and own and _differ(base, own)]
        if odd:
            point, base, own = max(odd, key=lambda entry: max(entry[1:]) / min(entry[1:]))
            chosen = case.declared_below(arm, "server.setup_sql")
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


def dead_tuples(case: Case) -> Iterator[Finding]:
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


def _points(case: Case) -> list[LoadPoint]:
    """One load point a scale: the tables do not depend on the rest of it."""
    return list({_data(point): point for point in reversed(case.plan.load_points)}.values())


def _data(point: LoadPoint) -> tuple[object, ...]:
    if point.sysbench:
        return point.workload, point.tables, point.table_size
    return (point.scale,)


def _size(case: Case, arm: str, point: LoadPoint) -> float | None:
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


_CHECKPOINTS = ("checkpointer", ("num_timed", "num_requested"))
_AUTOVACUUMS = ("maintenance", ("autovacuums", "autoanalyzes"))
_Counter = tuple[str, tuple[str, ...]]


def unequal_checkpoints(case: Case) -> Iterator[Finding]:
    """A checkpoint costs writes, and full pages in the WAL after it."""
    for arm in case.others:
        told = _unequal(case, arm, _CHECKPOINTS)
        if told is not None:
            chosen = case.declared_below(arm, "settings.checkpoint", "settings.max_wal_size", "settings.min_wal_size")
            yield Finding(
                rule="unequal_checkpoints",
                severity="info" if chosen else "warning",
                arms=[case.plan.baseline, arm],
                message=f"Checkpoints inside the measured part are unequal: {told}.",
                cure="Raise max_wal_size and checkpoint_timeout in [server] until no checkpoint falls into the "
                "measured part, or measure for several of their periods.",
            )


def unequal_autovacuum(case: Case) -> Iterator[Finding]:
    """Autovacuum that starts in one trial and not in the next is a difference that nobody made."""
    for arm in case.others:
        told = _unequal(case, arm, _AUTOVACUUMS)
        if told is not None:
            yield Finding(
                rule="unequal_autovacuum",
                severity="info" if case.declared_below(arm, "settings.autovacuum") else "warning",
                arms=[case.plan.baseline, arm],
                message=f"Autovacuum runs inside the measured part are unequal: {told}.",
                cure='Set autovacuum = "off" in [server] for short trials, or measure for several of its rounds.',
            )


def _unequal(case: Case, arm: str, counter: _Counter) -> str | None:
    """The load point with the most unequal pairs, in words; None where too few are to speak of."""
    found = [(len(odd), len(pairs), point, odd) for point, pairs, odd in _odd_pairs(case, arm, counter)]
    telling = [entry for entry in found if entry[0] > TOLERATED * entry[1]]
    if not telling:
        return None
    count, pairs, point, odd = max(telling, key=lambda entry: entry[0] / entry[1])
    base = sum(_count(pair.base, counter) or 0 for pair in odd)
    own = sum(_count(pair.own, counter) or 0 for pair in odd)
    more = f", and at {len(telling) - 1} more" if len(telling) > 1 else ""
    return (
        f"in {count} of {pairs} blocks at {point.label}{more}; there {base:g} in {case.plan.baseline} "
        f"and {own:g} in {arm}"
    )


def _odd_pairs(case: Case, arm: str, counter: _Counter) -> Iterator[tuple[LoadPoint, list[Pair], list[Pair]]]:
    """Each load point with its pairs of which both counts are known, and those of them that are unequal."""
    for point in case.plan.load_points:
        known = [
            pair
            for pair in case.pairs(arm, point)
            if _count(pair.base, counter) is not None and _count(pair.own, counter) is not None
        ]
        yield point, known, [pair for pair in known if _count(pair.base, counter) != _count(pair.own, counter)]


def _count(trial: Trial, counter: _Counter) -> float | None:
    view, names = counter
    counts = [trial.server_deltas.get(view, {}).get(name) for name in names]
    return None if None in counts else sum(count for count in counts if count is not None)
