"""Rules on what disturbs or distorts any measurement, whether or not the arms differ in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pgtrial.facts.audit import Case, listed, rule
from pgtrial.store.records import Finding


def _where(case: Case, group: str, name: str, *values: Any) -> list[str]:
    return [arm for arm in case.arms if case.value(arm, group, name) in values]


@rule
def transparent_huge_pages(case: Case) -> Iterator[Finding]:
    """`always` lets the kernel merge pages behind the server's back, with stalls.

    Worst without explicit huge pages; with them the shared memory is out of its reach, and only the rest is not.
    """
    arms = _where(case, "memory", "thp", "always")
    explicit = [arm for arm in arms if _huge_pages(case, arm)]
    others = [arm for arm in arms if arm not in explicit]
    cure = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as PostgreSQL's documentation advises."
    if others:
        off = (
            "; huge_pages, which need no such help, are off" if all(_no_huge_pages(case, arm) for arm in others) else ""
        )
        yield Finding(
            rule="thp",
            severity="warning",
            arms=others,
            message=f"Transparent huge pages are always on for {listed(others)}: "
            f"the kernel may stall the server to make them{off}.",
            cure=cure,
        )
    if explicit:
        yield Finding(
            rule="thp",
            severity="info",
            arms=explicit,
            message=f"Transparent huge pages are always on for {listed(explicit)}: shared memory is in explicit huge "
            "pages and not concerned, the memory of the processes is.",
            cure=cure,
        )


def _huge_pages(case: Case, arm: str) -> bool:
    """Whether the shared memory is certain to be in huge pages; before PostgreSQL 17 only `on` makes it certain."""
    status = case.value(arm, "server", "huge_pages_status")
    return bool(status == "on" or case.value(arm, "settings", "huge_pages") == "on")


def _no_huge_pages(case: Case, arm: str) -> bool:
    status = case.value(arm, "server", "huge_pages_status")
    return bool(status == "off" or case.value(arm, "settings", "huge_pages") == "off")


@rule
def debug_build(case: Case) -> Iterator[Finding]:
    """Assertions and unoptimised code are no measure of PostgreSQL."""
    for arm in case.arms:
        marks = _debug_marks(case, arm)
        if marks:
            yield Finding(
                rule="debug_build",
                severity="warning",
                arms=[arm],
                message=f"The server of {arm} is a debugging build ({listed(marks)}), much slower than a release.",
                cure="Use a build without --enable-cassert and with the default optimisation.",
            )


def _debug_marks(case: Case, arm: str) -> list[str]:
    configure = case.value(arm, "server", "build_configure") or ""
    flags = (case.value(arm, "server", "build_flags") or "").split()
    levels = [flag for flag in flags if flag.startswith("-O")]
    return [
        mark
        for mark, found in {
            "assertions on": case.value(arm, "server", "debug_assertions") == "on" or "--enable-cassert" in configure,
            "compiled without optimisation": bool(levels) and levels[-1] == "-O0",
        }.items()
        if found
    ]


@rule
def pending_restart(case: Case) -> Iterator[Finding]:
    """A changed setting that waits for a restart is in the file and not in force."""
    for arm in case.arms:
        names = case.value(arm, "server", "pending_restart")
        if names:
            yield Finding(
                rule="pending_restart",
                severity="warning",
                arms=[arm],
                message=f"The server of {arm} runs with former values of {listed(names)}: "
                "their change waits for a restart.",
                cure="Restart that server before the study, or put the settings back.",
            )


_POWER_PLANS = ("Balanced", "Power saver")
"""Windows' own that follow the load."""


@rule
def frequency_governor(case: Case) -> Iterator[Finding]:
    """A governor that follows the load makes the clock a part of the measurement."""
    arms = _where(case, "cpu", "governor", "powersave", "ondemand", "conservative", "schedutil", *_POWER_PLANS)
    if arms:
        governor = case.value(arms[0], "cpu", "governor")
        yield Finding(
            rule="governor",
            severity="info",
            arms=arms,
            message=f"The CPU frequency follows the load (governor {governor}) for {listed(arms)}, which adds noise.",
            cure=(
                "powercfg /setactive SCHEME_MIN"
                if governor in _POWER_PLANS
                else "cpupower frequency-set -g performance"
            )
            + ", for the time of the study.",
        )


@rule
def fixed_layout(case: Case) -> Iterator[Finding]:
    """Without random addresses one layout of memory serves a whole study, and may favour an arm (Mytkowicz 2009)."""
    arms = _where(case, "os", "address_randomisation", "0")
    if arms:
        yield Finding(
            rule="fixed_layout",
            severity="info",
            arms=arms,
            message=f"The kernel does not lay out memory at random for {listed(arms)}: every trial has the same "
            "layout, whose luck may be taken for a difference of the arms.",
            cure="sysctl kernel.randomize_va_space=2, for the time of the study.",
        )
