"""Rules on the server's own work inside the measured part: one arm's must not have what the other's is spared."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.facts.trial_audit import TOLERATED, Pair, TrialCase, trial_rule
from pgtrial.store.records import Finding, LoadPoint, Trial

_CHECKPOINTS = ("checkpointer", ("num_timed", "num_requested"))
_AUTOVACUUMS = ("maintenance", ("autovacuums", "autoanalyzes"))
_Counter = tuple[str, tuple[str, ...]]


@trial_rule
def unequal_checkpoints(case: TrialCase) -> Iterator[Finding]:
    """A checkpoint costs writes, and full pages in the WAL after it."""
    for arm in case.others:
        told = _unequal(case, arm, _CHECKPOINTS)
        if told is not None:
            chosen = case.declared(arm, "settings.checkpoint", "settings.max_wal_size", "settings.min_wal_size")
            yield Finding(
                rule="unequal_checkpoints",
                severity="info" if chosen else "warning",
                arms=[case.plan.baseline, arm],
                message=f"Checkpoints inside the measured part are unequal: {told}.",
                cure="Raise max_wal_size and checkpoint_timeout in [server] until no checkpoint falls into the "
                "measured part, or measure for several of their periods.",
            )


@trial_rule
def unequal_autovacuum(case: TrialCase) -> Iterator[Finding]:
    """Autovacuum that starts in one trial and not in the next is a difference that nobody made."""
    for arm in case.others:
        told = _unequal(case, arm, _AUTOVACUUMS)
        if told is not None:
            yield Finding(
                rule="unequal_autovacuum",
                severity="info" if case.declared(arm, "settings.autovacuum") else "warning",
                arms=[case.plan.baseline, arm],
                message=f"Autovacuum runs inside the measured part are unequal: {told}.",
                cure='Set autovacuum = "off" in [server] for short trials, or measure for several of its rounds.',
            )


def _unequal(case: TrialCase, arm: str, counter: _Counter) -> str | None:
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


def _odd_pairs(case: TrialCase, arm: str, counter: _Counter) -> Iterator[tuple[LoadPoint, list[Pair], list[Pair]]]:
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
