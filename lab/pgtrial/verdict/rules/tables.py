"""Rules on tables: their size in comparison with other arms and with caches, dead rows, and maintenance during the
trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.units import setting_bytes
from pgtrial.verdict.rules.case import Case, Concern, is_frequent, listed, rule, unlike

_LARGER = 1.05
_LARGER_BYTES = 2**20
"""A difference of two sizes counts only if their ratio exceeds _LARGER and the difference itself exceeds this number of
bytes. Smaller differences are a few pages in small tables."""

_DEAD = 0.05
"""A trial may begin with up to this share of dead rows in its tables. Autovacuum, by default, vacuums a table when its
dead rows exceed 20%."""

_CACHES = {
    "shared_buffers": ("shared_buffers", ("settings.shared_buffers",)),
    "memory": ("the memory that the server may use", ("memory.", "limits.", "server.dsn", "server.host")),
}
"""For each cache, its name in messages, and the keys of the study file that change the size of the cache. If the study
declares a difference in one of these keys, it compares the cache."""


@rule("tables_of_others", "tables that pgtrial has not made")
def tables_of_others(case: Case) -> Iterator[Concern]:
    """Finds tables that pgtrial has not made. Nothing resets them, so that each trial starts from the state in which
    the previous trial left them."""
    tables = {arm: names for arm, names in case.known("server", "tables_of_others").items() if names}
    if tables:
        names = sorted({name for names in tables.values() for name in names})
        yield Concern(
            list(tables),
            f"The load of {listed(tables)} runs on {listed(names)} that pgtrial has not made: they are used as they "
            "are, never emptied or vacuumed.",
            "Name another database in the dsn, where pgtrial makes tables of its own, if all trials must start from "
            "the same state.",
            "info",
        )


@rule("unequal_tables", "bloat differs", over_trials=True)
def unequal_tables(case: Case) -> Iterator[Concern]:
    """Finds tables of unequal size, because of bloat or because they are stored in another way. The larger tables have
    more pages to read and to cache."""
    for arm in case.others:
        sizes = [(point, _size(case, case.baseline, point), _size(case, arm, point)) for point in _points(case)]
        odd = [
            (point, base, other)
            for point, base, other in sizes
            if base and other and unlike(base, other, _LARGER, _LARGER_BYTES)
        ]
        if odd:
            point, base, other = max(odd, key=lambda entry: max(entry[1:]) / min(entry[1:]))
            chosen = case.declared_below(arm, "server.setup_sql", "load.data")
            larger = arm if other > base else case.baseline
            yield Concern(
                [case.baseline, arm],
                f"Before the load tables and indexes take {base / 2**20:,.0f} MB in {case.baseline} and "
                f"{other / 2**20:,.0f} MB in {arm} ({point.label}): "
                + (
                    "as the study's SQL and data make them."
                    if chosen
                    else f"those of {larger} are bloated, or stored otherwise."
                ),
                "Load them again: `pgtrial cleanup --templates` and a new run where the lab loads; VACUUM FULL or "
                "a fresh load on a given server.",
                "info" if chosen else "warning",
            )


def _points(case: Case) -> list[LoadPoint]:
    """Returns one load point for each size of the data. The tables depend on nothing else in a load point."""
    return list({_data(point): point for point in reversed(case.plan.load_points)}.values())


def _data(point: LoadPoint) -> tuple[object, ...]:
    if point.sysbench:
        return point.workload, point.tables, point.table_size
    return point.scale, point.workload == ORDER_ENTRY, point.pack and point.pack.name


def _size(case: Case, arm: str, point: LoadPoint) -> float | None:
    """Returns the size of an arm's tables and indexes in bytes. It is the median over the arm's trials with the data of
    this load point."""
    trials = [trial for trial in case.completed(arm) if _data(trial.load_point) == _data(point)]
    sizes = _sizes(trial.relations_before for trial in trials)
    return median(sizes) if sizes else None


def _sizes(relations: Iterable[Mapping[str, Mapping[str, float]]]) -> list[float]:
    """Returns the total size of tables and indexes in bytes, for each trial that recorded it."""
    names = ("bytes_table", "bytes_indexes")
    return [sum(counts.get(name, 0) for counts in one.values() for name in names) for one in relations if one]


@rule("data_larger_than_cache", "the data fit the cache of some arms only", over_trials=True)
def data_larger_than_cache(case: Case) -> Iterator[Concern]:
    """Finds load points at which the data fits into the cache of one arm only. It yields one concern (problem) for each
    arm and cache, about the first such load point."""
    for arm in case.others:
        for cache, (name, declaring) in _CACHES.items():
            sizes = next(filter(None, (_against(case, arm, point, cache) for point in case.plan.load_points)), None)
            if sizes is None:
                continue
            chosen = case.declared_below(arm, *declaring)
            yield Concern(
                [case.baseline, arm],
                f"The data exceeds {name} in one arm only: {sizes}.",
                "Choose a scale well below or well above the caches of both arms, or give them equal caches"
                + (", unless that very step is the question." if chosen else "."),
                "info" if chosen else "warning",
            )


def _against(case: Case, arm: str, point: LoadPoint, cache: str) -> str | None:
    """Returns the sizes of the data and of the cache in both arms in words, if the data fits into the cache of one arm
    only; otherwise None.

    If the data just fits in one arm and just does not fit in the other, both caches are equally full, and this does not
    count as a difference.
    """
    words: list[str] = []
    filled: list[float] = []
    for name in (case.baseline, arm):
        data = max(_sizes(trial.relations for trial in case.completed(name, point)), default=None)
        size = _cache(case, name, cache)
        if data is None or size is None:
            return None
        filled.append(data / size)
        words.append(f"{data / 2**20:,.0f} MB of data and {size / 2**20:,.0f} MB of cache in {name}")
    only_one = min(filled) <= 1 < max(filled) and unlike(min(filled), max(filled), _LARGER)
    return f"{' against '.join(words)} ({point.label})" if only_one else None


def _cache(case: Case, arm: str, cache: str) -> float | None:
    """Returns the size of a cache of an arm in bytes; None if it is not known."""
    if cache == "shared_buffers":
        return setting_bytes(case.value(arm, "settings", "shared_buffers"))
    sizes = [case.value(arm, "memory", "total_mb"), case.value(arm, "limits", "memory_mb")]
    known = [size for size in sizes if isinstance(size, int)]
    return min(known) * 2.0**20 if known else None


@rule("dead_tuples", "trials began with dead rows", over_trials=True)
def dead_tuples(case: Case) -> Iterator[Concern]:
    """Finds trials that began with dead rows. Dead rows make a trial slower, and by chance one arm may have more of
    such trials than another."""
    worst_shares = {}
    for arm in case.plan.arms:
        shares = [share for trial in case.completed(arm) if (share := _dead(trial)) is not None]
        over = [share for share in shares if share > _DEAD]
        if is_frequent(len(over), len(shares)):
            worst_shares[arm] = max(over)
    if worst_shares:
        worst = max(worst_shares, key=lambda arm: worst_shares[arm])
        yield Concern(
            list(worst_shares),
            f"Trials of {listed(worst_shares)} begin with dead rows that are carried over, "
            f"up to {worst_shares[worst]:.0%} of all rows in {worst}.",
            'Use [server] reset = "copy", or "vacuum" for a given server.',
        )


def _dead(trial: Trial) -> float | None:
    live, dead = (
        sum(counts.get(name, 0) for counts in trial.relations_before.values())
        for name in ("live_tuples", "dead_tuples")
    )
    return dead / (live + dead) if live + dead else None


_Counter = tuple[str, tuple[str, ...]]
"""A statistics view, and the names of the counters in it that are added up."""


@rule("unequal_checkpoints", "numbers of checkpoints differ", over_trials=True)
def unequal_checkpoints(case: Case) -> Iterator[Concern]:
    """Finds unequal numbers of checkpoints. Each checkpoint costs writes, and full-page images in the WAL after it."""
    yield from _unequal(
        case,
        ("checkpointer", ("num_timed", "num_requested")),
        "Checkpoints",
        ("settings.checkpoint", "settings.max_wal_size", "settings.min_wal_size"),
        "Raise max_wal_size and checkpoint_timeout in [server] until no checkpoint falls into the "
        "measured part, or measure for several of their periods.",
    )


@rule("unequal_autovacuum", "numbers of autovacuum runs differ", over_trials=True)
def unequal_autovacuum(case: Case) -> Iterator[Concern]:
    """Finds unequal numbers of autovacuum runs. They are a difference between the trials that is not caused by the
    arms."""
    yield from _unequal(
        case,
        ("maintenance", ("autovacuums", "autoanalyzes")),
        "Autovacuum runs",
        ("settings.autovacuum",),
        'Set autovacuum = "off" in [server] for short trials, or measure for several of its rounds.',
    )


def _unequal(case: Case, counter: _Counter, what: str, declaring: tuple[str, ...], cure: str) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm in which the counters differ from the baseline's in many pairs of
    trials. The concern is about the load point with the largest share of such pairs."""
    for arm in case.others:
        points = []
        for point in case.plan.load_points:
            known = _known_pairs(case, arm, point, counter)
            odd = [(base, other) for base, other in known if base != other]
            if is_frequent(len(odd), len(known)):
                points.append((point, len(known), odd))
        if not points:
            continue
        point, pairs, odd = max(points, key=lambda entry: len(entry[2]) / entry[1])
        base, other = (sum(counts) for counts in zip(*odd, strict=True))
        more = f", and at {len(points) - 1} more" if len(points) > 1 else ""
        yield Concern(
            [case.baseline, arm],
            f"{what} inside the measured part are unequal: in {len(odd)} of {pairs} blocks at {point.label}{more}; "
            f"there {base:g} in {case.baseline} and {other:g} in {arm}.",
            cure,
            "info" if case.declared_below(arm, *declaring) else "warning",
        )


def _known_pairs(case: Case, arm: str, point: LoadPoint, counter: _Counter) -> list[tuple[float, float]]:
    """Returns both counts of each pair of trials, for the pairs in which both trials have a count."""
    counts = [(_count(base, counter), _count(other, counter)) for base, other in case.pairs(arm, point)]
    return [(base, other) for base, other in counts if base is not None and other is not None]


def _count(trial: Trial, counter: _Counter) -> float | None:
    view, names = counter
    counts = trial.server_deltas.get(view, {})
    return sum(counts[name] for name in names) if counts.keys() >= {*names} else None
