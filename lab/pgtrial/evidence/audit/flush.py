"""Rules on the durability probe: a flush that is too fast to be true, and volumes that flush at very unequal rates."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.evidence.audit.cases import Case, listed
from pgtrial.evidence.audit.durability import VOLATILE_FILESYSTEMS
from pgtrial.model.records.study import Finding
from pgtrial.model.study.places import listed_places

FASTEST_PER_S = 20_000
"""No device whose cache may be lost flushes faster on one thread: the fastest flash needs some 50 us for a program."""

FASTEST_US = 30.0

UNEQUAL = 10.0
"""A factor: on shared storage two measurements within a minute may differ by as much as five."""


def suspicious_flush(case: Case) -> Iterator[Finding]:
    """A flush that ends sooner than the device can have stored anything: somebody's cache answers in its place."""
    arms = [arm for arm in case.arms if _too_fast(case, arm)]
    if arms:
        rate = _rate(case, arms[0])
        yield Finding(
            rule="suspicious_durability",
            severity="warning",
            arms=arms,
            message=f"The volume of {listed(arms)} flushes suspiciously fast, {rate:,.0f} times a second "
            f"({_time(case, arms[0]):,.0f} us): without protection against loss of power no device does.",
            cure="Look for a volatile cache that answers for the device: the host's cache mode of a virtual disk, a "
            "RAID controller, hdparm -W, mount options, zfs sync; a device with a protected cache is what it seems.",
        )


def unequal_flush(case: Case) -> Iterator[Finding]:
    """Flush rates that differ by more than noise; withheld if the faster one is also too fast to be durable."""
    baseline = case.plan.baseline
    for arm in case.arms:
        ours, base = _rate(case, arm), _rate(case, baseline) if baseline in case.facts else None
        if not ours or not base or max(ours, base) < UNEQUAL * min(ours, base):
            continue
        faster = arm if ours > base else baseline
        if _declared(case, arm) or _one_volume(case, arm) or listed_places(case.spec, baseline, arm):
            continue  # what is compared, noise, or swapped by the coin; that it may be too fast the other rule tells
        grave = _too_fast(case, faster)
        yield Finding(
            rule="unequal_flush",
            severity="withhold" if grave else "warning",
            arms=[baseline, arm],
            message=f"The volumes flush at very unequal rates, {base:,.0f} times a second in {baseline} and "
            f"{ours:,.0f} in {arm}, and the study declares no difference of storage"
            + (f"; that of {faster} is faster than a durable device can be." if grave else "."),
            cure="Put both data directories on volumes of one kind, or declare the difference in the study.",
        )


def _declared(case: Case, arm: str) -> bool:
    return any(
        key.startswith("storage") or key in ("server.dsn", "server.host") for key in case.plan.declared.get(arm, [])
    )


def _one_volume(case: Case, arm: str) -> bool:
    """Whether both arms flush the same volume of one machine: whatever rates were measured, it is equal to itself."""
    places = [
        [
            case.value(each, "storage", f"{_place(case, each)}{name}")
            for name in ("source", "mount_point", "mount_options")
        ]
        for each in (case.plan.baseline, arm)
    ]
    here = all(case.value(each, "client", "connection") == "this machine" for each in (case.plan.baseline, arm))
    return here and None not in places[0] and places[0] == places[1]


def _too_fast(case: Case, arm: str) -> bool:
    rate, time_us = _rate(case, arm), _time(case, arm)
    if rate is None or time_us is None or _in_memory(case, arm) or _protected(case, arm):
        return False
    return rate > FASTEST_PER_S or time_us < FASTEST_US


def _in_memory(case: Case, arm: str) -> bool:
    """Told by the rules on durability, which know it from the kind of the file system."""
    return case.value(arm, "storage", f"{_place(case, arm)}filesystem") in VOLATILE_FILESYSTEMS


def _protected(case: Case, arm: str) -> bool:
    """Whether the disks of a physical machine say that they have no volatile cache; a virtual disk may say anything."""
    caches = case.value(arm, "storage", f"{_place(case, arm)}disk_write_caches")
    return bool(caches == ["write through"] and case.value(arm, "os", "virtualisation") == "none")


def _rate(case: Case, arm: str) -> float | None:
    found: float | None = case.value(arm, "probes", f"{_place(case, arm)}flushes_per_s")
    return found


def _time(case: Case, arm: str) -> float | None:
    found: float | None = case.value(arm, "probes", f"{_place(case, arm)}flush_us")
    return found


def _place(case: Case, arm: str) -> str:
    """What a commit waits for: the WAL's volume where it has one of its own."""
    return "wal_" if case.value(arm, "probes", "wal_flushes_per_s") is not None else ""
