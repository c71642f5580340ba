"""Rules on what disturbs or distorts any measurement, whether or not the arms differ in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pgtrial.evidence.audit.cases import Case, listed
from pgtrial.model.records.study import Finding


def _where(case: Case, group: str, name: str, *values: Any) -> list[str]:
    return [arm for arm in case.arms if case.value(arm, group, name) in values]


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


_Test = Callable[[str], bool]


def _is(*values: str) -> _Test:
    return lambda value: value in values


def _is_not(*values: str) -> _Test:
    return lambda value: value not in values


def _starts(beginning: str) -> _Test:
    return lambda value: value.startswith(beginning)


_COSTLY: dict[str, _Test] = {
    "log_statement": _is("all", "mod"),
    "log_duration": _is("on"),
    "log_min_duration_statement": _is("0"),
    "log_min_duration_sample": _is("0"),
    "log_min_messages": _starts("debug"),
    "log_min_error_statement": _starts("debug"),
    "client_min_messages": _starts("debug"),
    "log_parser_stats": _is("on"),
    "log_planner_stats": _is("on"),
    "log_executor_stats": _is("on"),
    "log_statement_stats": _is("on"),
    "debug_print_parse": _is("on"),
    "debug_print_rewritten": _is("on"),
    "debug_print_plan": _is("on"),
    "debug_discard_caches": _is_not("0"),
    "debug_copy_parse_plan_trees": _is("on"),
    "debug_write_read_parse_plan_trees": _is("on"),
    "debug_raw_expression_coverage_test": _is("on"),
    "trace_locks": _is("on"),
    "trace_lwlocks": _is("on"),
    "trace_notify": _is("on"),
    "trace_sort": _is("on"),
    "wal_debug": _is("on"),
    "wal_consistency_checking": _is_not(""),
    "jit_debugging_support": _is("on"),
    "jit_dump_bitcode": _is("on"),
    "jit_profiling_support": _is("on"),
    "auto_explain.log_min_duration": _is_not("-1", ""),
}
"""PostgreSQL's documentation, chapters Error Reporting and Logging, Developer Options and Statistics."""


def is_debugging(name: str, value: Any) -> bool:
    """Whether a setting with this value, as SHOW prints it, is for finding errors and costs time."""
    test = _COSTLY.get(name)
    return test is not None and isinstance(value, str) and test(value)


def debug_settings(case: Case) -> Iterator[Finding]:
    """One finding a setting; a declared one is what is compared."""
    for name in _COSTLY:
        values = {arm: case.value(arm, "settings", name) for arm in case.arms}
        arms = [arm for arm, value in values.items() if is_debugging(name, value)]
        if not arms or any(case.declared(arm, f"settings.{name}") for arm in case.plan.arms):
            continue
        where = f"in {listed(arms)} only" if len(arms) < len(values) else f"in {listed(arms)}"
        yield Finding(
            rule="debug_setting",
            severity="warning",
            arms=list(values) if len(arms) < len(values) else arms,
            message=f"{name} is {values[arms[0]]} {where}: a setting for finding errors, which costs time.",
            cure=f"Put {name} back to its default, unless the servers in question run with it.",
        )
