"""Rules on durability. They find settings, tables and volumes that may lose acknowledged transactions, and flushes that
are faster than a device can store data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pgtrial.verdict.rules.case import Case, Concern, as_shown, listed, rule

_UNSAFE_MOUNTS = ("nobarrier", "barrier=0")
"""Mount options that switch off barriers. A flush may then end in the volatile cache of the device. The option data= of
ext4 does not matter to PostgreSQL."""

_VOLATILE_FILESYSTEMS = ("tmpfs", "ramfs")

_FASTEST_PER_S = 20_000
"""More flushes per second than this, by a single thread, cannot come from a device without a protected cache, since the
fastest flash takes some 50 us to program a page."""

_FASTEST_US = 30.0

_UNEQUAL = 10.0
"""Flush rates count as unequal if their ratio is at least this factor. On shared storage, two measurements within a
minute may differ by a factor of five."""


_UNLOGGED = "server.unlogged_tables"
"""The name of the fact (property of an arm) that lists the unlogged tables."""


@dataclass(frozen=True)
class _Aspect:
    """A property on which the durability of an arm depends, with its value in the arm and with the key of the study
    file that declares it.

    `weakness` describes how the value weakens durability. It is empty if the value is as safe as PostgreSQL's default,
    and None if the value is unknown.
    """

    key: str
    what: str
    value: str | None
    weakness: str | None


def _aspects(case: Case, arm: str) -> dict[str, _Aspect]:
    """Returns all properties on which the durability of an arm depends, by the key that declares them."""
    aspects = [*_settings(case, arm), *_database(case, arm)]
    apart = any(case.value(other, "storage", "wal_filesystem") for other in case.arms)
    for prefix in ("", "wal_") if apart else ("",):
        aspects += _volume(case, arm, prefix, "of the WAL" if prefix else "of the data directory")
    return {aspect.key: aspect for aspect in aspects}


def _settings(case: Case, arm: str) -> Iterator[_Aspect]:
    """Yields the settings on which durability depends.

    Without standbys, synchronous_commit waits for the local flush unless it is `off`. With standbys, its values differ
    in what they wait for.
    """
    standbys = case.value(arm, "settings", "synchronous_standby_names")
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        value = case.value(arm, "settings", name)
        waits_locally = name == "synchronous_commit" and not standbys and value not in (None, "off")
        yield _Aspect(f"settings.{name}", name, value, "" if value == "on" or waits_locally else value)


def _database(case: Case, arm: str) -> Iterator[_Aspect]:
    """Yields the list of unlogged tables as a property; such tables are empty after a crash."""
    names = case.value(arm, "server", "unlogged_tables")
    if names is None:
        yield _Aspect(_UNLOGGED, "the list of unlogged tables", None, None)
    else:
        yield _Aspect(_UNLOGGED, "the list of unlogged tables", as_shown(", ".join(names) or "empty"), ", ".join(names))


def _volume(case: Case, arm: str, prefix: str, where: str) -> Iterator[_Aspect]:
    """Yields the mount options, the kind of the file system, and the property `sync` of ZFS for a volume.

    With sync=disabled, ZFS reports a flush as done without writing anything (zfsprops(7)).
    """
    options, kind, parameters = (
        _stored(case, arm, prefix, name) for name in ("mount_options", "filesystem", "filesystem_parameters")
    )
    unsafe = None if options is None else ",".join(option for option in options.split(",") if option in _UNSAFE_MOUNTS)
    yield _Aspect(f"storage.{prefix}mount_options", f"the mount {where}", options, unsafe)
    volatile = kind if kind is None or kind in _VOLATILE_FILESYSTEMS else ""
    yield _Aspect(f"storage.{prefix}filesystem", f"the file system {where}", kind, volatile)
    sync = (parameters or {}).get("sync") if kind == "zfs" else "standard"
    weak = None if kind is None or sync is None else sync if sync == "disabled" else ""
    yield _Aspect(f"storage.{prefix}filesystem_parameters", f"sync of ZFS {where}", sync, weak)


def _stored(case: Case, arm: str, prefix: str, name: str) -> Any:
    """Returns a property (fact) of the storage of the WAL, or of the data directory if the WAL is stored there too."""
    value = case.value(arm, "storage", f"{prefix}{name}")
    return value if value is not None else case.value(arm, "storage", name)


@rule("durability", "durability differs")
def unequal_durability(case: Case) -> Iterator[Concern]:
    """Finds arms that are more or less durable than the baseline. If the study does not declare the difference, the
    verdict is withheld (not given)."""
    reference = _aspects(case, case.baseline)
    for arm in case.others:
        for key, aspect in _aspects(case, arm).items():
            base = reference[key]
            if aspect.weakness is None or base.weakness is None or aspect.weakness == base.weakness:
                continue
            difference = f"{aspect.what} is {base.value} in arm {case.baseline} and {aspect.value} in arm {arm}"
            weaker = case.baseline if base.weakness else arm
            if case.declared(arm, key):
                yield Concern(
                    [case.baseline, arm],
                    f"Durability differs by design of the study: {difference}; "
                    f"after a crash arm {weaker} may have lost what it had acknowledged.",
                    "Weigh the difference in speed against that loss.",
                )
            else:
                yield Concern(
                    [case.baseline, arm],
                    f"The arms are not equally durable and the study does not say so: {difference}.",
                    f"Make {aspect.what} equal in both arms, or declare it in the study as what is "
                    f"compared{_how(key)}.",
                    "withhold",
                )


def _how(key: str) -> str:
    """Returns the end of a sentence that says how to declare a difference of durability in the study file. The text
    names `less_durable`, the key for unlogged tables and `synchronous_commit`; it is empty for other differences, whose
    keys need no explanation."""
    by_key = key in (_UNLOGGED, "settings.synchronous_commit")
    return ": less_durable = true in the table of the arm" if by_key else ""


@rule("not_durable", "the arms are not durable")
def not_durable(case: Case) -> Iterator[Concern]:
    """Finds studies in which all arms may lose acknowledged transactions. The comparison is fair, but such a server is
    not suitable for production."""
    by_arm = [_aspects(case, arm) for arm in case.arms]
    for key, aspect in by_arm[0].items() if by_arm else ():
        if all(aspects[key].weakness for aspects in by_arm):
            yield Concern(
                case.arms,
                f"No arm keeps its data safe: {aspect.what} is {aspect.value} in {listed(case.arms)}.",
                f"Set {aspect.what} to a value with which no data are lost, unless your servers may lose data.",
            )


@rule("suspicious_durability", "flushes may not reach the disk")
def suspicious_flush(case: Case) -> Iterator[Concern]:
    """Finds flushes that are faster than a device can store data, so that a volatile cache must have answered."""
    arms = [arm for arm in case.arms if _is_too_fast(case, arm)]
    if arms:
        rate, time_us = (_commit_fact(case, arms[0], "probes", name) for name in ("flushes_per_s", "flush_us"))
        yield Concern(
            arms,
            f"The volume of {listed(arms)} flushes suspiciously fast, {rate:,.0f} times a second "
            f"({time_us:,.0f} us): no device without protection against loss of power is that fast.",
            "Look for a volatile cache that answers for the device: the host's cache mode of a virtual disk, a "
            "RAID controller, hdparm -W, mount options, zfs sync; a device with a protected cache is what it seems.",
        )


@rule("unequal_flush", "volumes flush at different rates")
def unequal_flush(case: Case) -> Iterator[Concern]:
    """Finds flush rates that differ by more than noise. If the faster rate is too fast for a durable device, the
    verdict is withheld (not given)."""
    for arm in case.others:
        base, other = (_commit_fact(case, name, "probes", "flushes_per_s") for name in (case.baseline, arm))
        if not other or not base or max(other, base) < _UNEQUAL * min(other, base):
            continue
        declared = case.declared_below(arm, "storage", "server.dsn", "server.host")
        if declared or _on_one_volume(case, arm) or case.design.listed_storage(case.baseline, arm):
            continue  # declared, noise, or exchanged at random; suspicious_flush reports rates that are too fast
        faster = arm if other > base else case.baseline
        grave = _is_too_fast(case, faster)
        yield Concern(
            [case.baseline, arm],
            f"The volumes flush at very unequal rates, {base:,.0f} times a second in {case.baseline} and "
            f"{other:,.0f} in {arm}, and the study declares no difference of storage"
            + (f"; that of {faster} is faster than a durable device can be." if grave else "."),
            "Put both data directories on volumes of one kind, or declare the difference in the study.",
            "withhold" if grave else "warning",
        )


def _on_one_volume(case: Case, arm: str) -> bool:
    """True if both arms store their data on the same volume of the machine on which pgtrial runs. If their flush rates
    differ, this is only noise."""
    base, other = (
        [_commit_fact(case, of, "storage", name) for name in ("source", "mount_point", "mount_options")]
        for of in (case.baseline, arm)
    )
    here = case.on_labs_machine(case.baseline) and case.on_labs_machine(arm)
    return here and None not in base and base == other


def _is_too_fast(case: Case, arm: str) -> bool:
    rate, time_us = (_commit_fact(case, arm, "probes", name) for name in ("flushes_per_s", "flush_us"))
    # file systems in memory are reported by the rules on durability
    volatile = _commit_fact(case, arm, "storage", "filesystem") in _VOLATILE_FILESYSTEMS
    if rate is None or time_us is None or volatile or _is_protected(case, arm):
        return False
    return bool(rate > _FASTEST_PER_S or time_us < _FASTEST_US)


def _is_protected(case: Case, arm: str) -> bool:
    """True if the arm's machine is not virtual and its disks report that they have no volatile cache. The report of a
    virtual disk may be wrong."""
    caches = _commit_fact(case, arm, "storage", "disk_write_caches")
    return bool(caches == ["write through"] and case.value(arm, "os", "virtualisation") == "none")


def _commit_fact(case: Case, arm: str, group: str, name: str) -> Any:
    """Returns a property (fact) of the volume to which a commit is flushed. This is the volume of the WAL if the WAL
    has a volume of its own, and otherwise the volume of the data directory."""
    prefix = "wal_" if case.value(arm, "probes", "wal_flushes_per_s") is not None else ""
    return case.value(arm, group, f"{prefix}{name}")
