"""Rule on the size of the data: where one arm's fits a cache and another's does not, two machines are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pgtrial.evidence.audit.cases import Case
from pgtrial.model.records.study import Finding, LoadPoint

_UNITS = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_CACHES = {"shared_buffers": "shared_buffers", "memory": "the memory that the server may use"}
_DECLARING = {
    "shared_buffers": ("settings.shared_buffers",),
    "memory": ("memory.", "limits.", "server.dsn", "server.host"),
}
"""Keys that, declared, make the cache what is compared."""


def data_larger_than_cache(case: Case) -> Iterator[Finding]:
    """One finding for each arm and cache, about the first load point where it is so."""
    for arm in case.others:
        for cache, name in _CACHES.items():
            told = next(filter(None, (_told(case, arm, point, cache) for point in case.plan.load_points)), None)
            if told is None:
                continue
            chosen = case.declared_below(arm, *_DECLARING[cache])
            yield Finding(
                rule="data_larger_than_cache",
                severity="info" if chosen else "warning",
                arms=[case.plan.baseline, arm],
                message=f"The data exceeds {name} in one arm only: {told}.",
                cure="Choose a scale well below or well above the caches of both arms, or give them equal caches"
                + (", unless that very step is the question." if chosen else "."),
            )


def _told(case: Case, arm: str, point: LoadPoint, cache: str) -> str | None:
    told, fits = [], set()
    for each in (case.plan.baseline, arm):
        data, size = _data(case, each, point), _cache(case, each, cache)
        if data is None or size is None:
            return None
        fits.add(data <= size)
        told.append(f"{data / 2**20:,.0f} MB of data and {size / 2**20:,.0f} MB of cache in {each}")
    return f"{' against '.join(told)} ({point.label})" if len(fits) > 1 else None


def _data(case: Case, arm: str, point: LoadPoint) -> float | None:
    """The largest size of tables and indexes after a trial, bytes."""
    sizes = [
        sum(each.get("bytes_table", 0) + each.get("bytes_indexes", 0) for each in trial.relations.values())
        for trial in case.of(arm, point)
        if trial.relations
    ]
    return max(sizes, default=None)


def _cache(case: Case, arm: str, cache: str) -> float | None:
    """Bytes."""
    if cache == "shared_buffers":
        return in_bytes(case.value(arm, "settings", "shared_buffers"))
    sizes = [case.value(arm, "memory", "total_mb"), case.value(arm, "limits", "memory_mb")]
    known = [size for size in sizes if isinstance(size, int)]
    return min(known) * 2.0**20 if known else None


def in_bytes(setting: str | None) -> float | None:
    """A size as SHOW prints it (`128MB`), in bytes."""
    found = re.fullmatch(r"(\d+)([kMGT]?B)", setting or "")
    return float(found[1]) * _UNITS[found[2]] if found else None
