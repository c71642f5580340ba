"""Rules on conditions that disturb or distort any measurement. A condition is reported even when all arms have it in
common and the comparison of the arms is therefore fair."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pgtrial.model.known_settings import KNOWN
from pgtrial.verdict.rules.case import Case, Concern, listed, rule


@rule("thp", "transparent huge pages are always on")
def transparent_huge_pages(case: Case) -> Iterator[Concern]:
    """Finds transparent huge pages that are set to `always`. The kernel then merges pages of the server's memory, which
    causes stalls.

    Without explicit huge pages this concerns all memory of the server. With explicit huge pages it concerns only the
    memory outside the shared memory.
    """
    arms = case.where("memory", "thp", "always")
    # before PostgreSQL 17 it is certain only with the setting `on` that huge pages are used
    explicit = [arm for arm in arms if _huge_pages_are(case, arm, "on")]
    others = [arm for arm in arms if arm not in explicit]
    cure = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as PostgreSQL's documentation advises."
    if others:
        all_off = all(_huge_pages_are(case, arm, "off") for arm in others)
        off = "; huge_pages, which need no such help, are off" if all_off else ""
        yield Concern(
            others,
            f"Transparent huge pages are always on for {listed(others)}: "
            f"the kernel may stall the server to make them{off}.",
            cure,
        )
    if explicit:
        yield Concern(
            explicit,
            f"Transparent huge pages are always on for {listed(explicit)}: shared memory is in explicit huge "
            "pages and not concerned, the memory of the processes is.",
            cure,
            "info",
        )


def _huge_pages_are(case: Case, arm: str, state: str) -> bool:
    return state in (case.value(arm, "server", "huge_pages_status"), case.value(arm, "settings", "huge_pages"))


@rule("debug_build", "a debug build")
def debug_build(case: Case) -> Iterator[Concern]:
    """Finds servers that were built with assertions or without optimisation. Their speed says little about
    PostgreSQL."""
    for arm in case.arms:
        marks = [*_debug_marks(case, arm)]
        if marks:
            yield Concern(
                [arm],
                f"The server of {arm} is a debugging build ({listed(marks)}), much slower than a release.",
                "Use a build without --enable-cassert and with the default optimisation.",
            )


def _debug_marks(case: Case, arm: str) -> Iterator[str]:
    configure = case.value(arm, "server", "build_configure") or ""
    if case.value(arm, "server", "debug_assertions") == "on" or "--enable-cassert" in configure:
        yield "assertions on"
    if _optimisation(case, arm) == "-O0":
        yield "compiled without optimisation"


def _optimisation(case: Case, arm: str) -> str | None:
    """Returns the compiler's optimisation option that is in force, such as -O2; None if the build names none."""
    flags = (case.value(arm, "server", "build_flags") or "").split()
    return next((flag for flag in reversed(flags) if flag.startswith("-O")), None)


@rule("small_build", "a build for small size")
def small_build(case: Case) -> Iterator[Concern]:
    """Finds servers that were compiled for small size (-Os), as some packagers do. This makes them slower."""
    arms = [arm for arm in case.arms if _optimisation(case, arm) == "-Os"]
    if arms:
        unequal = len(arms) < len(case.arms)
        yield Concern(
            arms,
            f"The server of {listed(arms)} is compiled for small size (-Os), which is slower than a usual build (-O2)"
            + ("; the other arms do not have that handicap." if unequal else "."),
            "Take all servers from one packager who compiles with -O2, such as your system's packages.",
            "warning" if unequal else "info",
        )


@rule("pending_restart", "a changed setting is not in force")
def pending_restart(case: Case) -> Iterator[Concern]:
    """Finds settings that were changed in the configuration file, but are not in force until the server is
    restarted."""
    for arm, names in case.known("server", "pending_restart").items():
        if names:
            yield Concern(
                [arm],
                f"The server of {arm} runs with former values of {listed(names)}: their change waits for a restart.",
                "Restart that server before the study, or put the settings back.",
            )


_POWER_PLANS = ("Balanced", "Power saver")
"""The power plans of Windows with which the CPU frequency follows the load."""


@rule("governor", "the CPU frequency follows the load")
def frequency_governor(case: Case) -> Iterator[Concern]:
    """Finds CPU frequency governors that follow the load, so that the CPU frequency changes during the measurement."""
    arms = case.where("cpu", "governor", "powersave", "ondemand", "conservative", "schedutil", *_POWER_PLANS)
    if arms:
        governor = case.value(arms[0], "cpu", "governor")
        command = (
            "powercfg /setactive SCHEME_MIN" if governor in _POWER_PLANS else "cpupower frequency-set -g performance"
        )
        yield Concern(
            arms,
            f"The CPU frequency follows the load (governor {governor}) for {listed(arms)}, which adds noise.",
            f"{command}, for the time of the study.",
            "info",
        )


@rule("fixed_layout", "memory is not laid out at random")
def fixed_layout(case: Case) -> Iterator[Concern]:
    """Finds kernels without address space randomisation. All trials of the study then have the same memory layout,
    which may favour an arm by chance (Mytkowicz 2009)."""
    arms = case.where("os", "address_randomisation", "0")
    if arms:
        yield Concern(
            arms,
            f"The kernel does not lay out memory at random for {listed(arms)}: every trial has the same "
            "layout, whose luck may be taken for a difference of the arms.",
            "sysctl kernel.randomize_va_space=2, for the time of the study.",
            "info",
        )


@rule("not_permitted", "the server did not permit some steps", over_trials=True)
def not_permitted(case: Case) -> Iterator[Concern]:
    """Finds steps that pgtrial could not execute because a server did not permit them, such as a checkpoint before the
    measured part. It yields one concern (problem) for each step, with all arms whose trials ran without it."""
    for thing in sorted({thing for trial in case.trials for thing in trial.not_permitted}):
        arms = [arm for arm in case.plan.arms if any(thing in trial.not_permitted for trial in case.completed(arm))]
        if arms:
            unequal = len(arms) < len(case.plan.arms)
            yield Concern(
                arms,
                f"On {listed(arms)} pgtrial may not {thing}"
                + ("; the other arms do not have that handicap." if unequal else "."),
                "Grant it where the provider lets you"
                + (", or compare with arms that lack it too." if unequal else "; it is the same for all arms."),
                "warning" if unequal else "info",
            )


def is_debugging(name: str, value: Any) -> bool:
    """True if a setting with this value (as SHOW prints it) serves to find errors and costs time."""
    pattern = KNOWN.costly.get(name)
    return pattern is not None and isinstance(value, str) and re.fullmatch(pattern, value) is not None


@rule("debug_setting", "a debug setting is on")
def debug_settings(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each debugging setting that is on. A setting that the study declares as its
    difference is what the study compares, and causes no concern."""
    for name in KNOWN.costly:
        values = case.known("settings", name)
        arms = [arm for arm, value in values.items() if is_debugging(name, value)]
        if not arms or any(case.declared(arm, f"settings.{name}") for arm in case.plan.arms):
            continue
        only = " only" if len(arms) < len(case.arms) else ""
        yield Concern(
            case.arms,
            f"{name} is {values[arms[0]]} in {listed(arms)}{only}: a setting for finding errors, which costs time.",
            f"Put {name} back to its default, unless the servers in question run with it.",
        )
