"""Settings that are for finding errors and cost time: they are told even where all arms have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pgtrial.facts.audit import Case, listed, rule
from pgtrial.store.records import Finding

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


@rule
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
