"""Rules on durability: a server that may lose what it has acknowledged is no match for one that may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pgtrial.evidence.audit.cases import Case, listed
from pgtrial.model.records.study import Finding

_UNSAFE_MOUNTS = ("nobarrier", "barrier=0")
"""Without barriers a flush may end in the device's volatile cache. PostgreSQL does not depend on ext4's data= mode."""

VOLATILE_FILESYSTEMS = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class _Aspect:
    """One thing that durability hangs on: the key that declares it, its value in an arm, and how that weakens it.

    `weakness` is empty for what is as safe as PostgreSQL's default, None if the value is unknown.
    """

    key: str
    what: str
    value: str | None
    weakness: str | None

    @property
    def safe(self) -> bool:
        return not self.weakness


def _aspects(case: Case, arm: str) -> list[_Aspect]:
    found = [_switch(case, arm, "fsync"), _switch(case, arm, "full_page_writes"), _synchronous_commit(case, arm)]
    apart = any(case.value(other, "storage", "wal_filesystem") for other in case.arms)
    for place in ("", "wal_") if apart else ("",):
        where = "of the WAL" if place else "of the data directory"
        found += [_mount(case, arm, place, where), _filesystem(case, arm, place, where)]
        found.append(_zfs_sync(case, arm, place, where))
    return found


def _switch(case: Case, arm: str, name: str) -> _Aspect:
    value = case.value(arm, "settings", name)
    return _Aspect(f"settings.{name}", name, value, "" if value == "on" else value)


def _synchronous_commit(case: Case, arm: str) -> _Aspect:
    """Without standbys every value but off waits for the local flush; with them the waits differ."""
    value = case.value(arm, "settings", "synchronous_commit")
    standbys = case.value(arm, "settings", "synchronous_standby_names")
    waits = value is not None and value != "off" and (not standbys or value == "on")
    return _Aspect("settings.synchronous_commit", "synchronous_commit", value, "" if waits else value)


def _mount(case: Case, arm: str, place: str, where: str) -> _Aspect:
    options = _stored(case, arm, place, "mount_options")
    weak = None if options is None else ",".join(option for option in options.split(",") if option in _UNSAFE_MOUNTS)
    return _Aspect(f"storage.{place}mount_options", f"the mount {where}", options, weak)


def _filesystem(case: Case, arm: str, place: str, where: str) -> _Aspect:
    kind = _stored(case, arm, place, "filesystem")
    weak = kind if kind is None or kind in VOLATILE_FILESYSTEMS else ""
    return _Aspect(f"storage.{place}filesystem", f"the file system {where}", kind, weak)


def _zfs_sync(case: Case, arm: str, place: str, where: str) -> _Aspect:
    """ZFS with sync=disabled ends a flush at once (zfsprops(7)); other file systems have no such property."""
    kind = _stored(case, arm, place, "filesystem")
    told = (_stored(case, arm, place, "filesystem_parameters") or {}).get("sync") if kind == "zfs" else "standard"
    weak = None if kind is None or told is None else told if told == "disabled" else ""
    return _Aspect(f"storage.{place}filesystem_parameters", f"sync of ZFS {where}", told, weak)


def _stored(case: Case, arm: str, place: str, name: str) -> Any:
    """A fact of the WAL's storage is that of the data directory where WAL has no place of its own."""
    own = case.value(arm, "storage", f"{place}{name}")
    return own if own is not None else case.value(arm, "storage", name)


def unequal_durability(case: Case) -> Iterator[Finding]:
    """An arm that is more or less durable than the baseline: withheld, or told if the study declares it."""
    baseline = case.plan.baseline
    if baseline not in case.facts:
        return
    reference = {aspect.key: aspect for aspect in _aspects(case, baseline)}
    for arm in case.arms:
        for own in _aspects(case, arm):
            base = reference[own.key]
            if own.weakness is None or base.weakness is None or own.weakness == base.weakness:
                continue
            difference = f"{own.what} is {base.value} in arm {baseline} and {own.value} in arm {arm}"
            weaker = arm if base.safe else baseline
            if case.declared(arm, own.key):
                yield Finding(
                    rule="durability",
                    severity="warning",
                    arms=[baseline, arm],
                    message=f"Durability differs by design of the study: {difference}; "
                    f"after a crash arm {weaker} may have lost what it had acknowledged.",
                    cure="Weigh the difference in speed against that loss.",
                )
            else:
                yield Finding(
                    rule="durability",
                    severity="withhold",
                    arms=[baseline, arm],
                    message=f"The arms are not equally durable and the study does not say so: {difference}.",
                    cure=f"Make {own.what} equal in both arms, or declare it in the study as what is compared.",
                )


def not_durable(case: Case) -> Iterator[Finding]:
    """All arms may lose acknowledged transactions: fair, but not a server that people run."""
    for key in dict.fromkeys(aspect.key for arm in case.arms for aspect in _aspects(case, arm)):
        states = {arm: next(a for a in _aspects(case, arm) if a.key == key) for arm in case.arms}
        if states and not any(aspect.safe for aspect in states.values()):
            aspect = next(iter(states.values()))
            yield Finding(
                rule="not_durable",
                severity="warning",
                arms=list(states),
                message=f"No arm keeps its data safe: {aspect.what} is {aspect.value} in {listed(states)}.",
                cure=f"Set {aspect.what} as a server that must not lose data has it, unless none of yours must.",
            )
