"""Recognises the names of workloads: built-in workloads, and the user's own workloads, which have a path or a
prefix."""

from __future__ import annotations

import difflib

from pgtrial.model.quoting import quoted
from pgtrial.model.study.jobs import is_job
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.own_data import weight_of
from pgtrial.model.study.packs import BUNDLED
from pgtrial.model.study.programs import PROGRAMS
from pgtrial.model.study.replay import is_replay
from pgtrial.model.study.suites import is_suite
from pgtrial.model.study.sysbench import SYSBENCH_TESTS
from pgtrial.model.study.tasks import APP_TASKS

WORKLOADS = ("tpcb-like", "simple-update", "select-only")
"""The built-in workloads of pgbench, under the names of pgbench's own built-in scripts."""

BUILT_IN = (*WORKLOADS, *SYSBENCH_TESTS, ORDER_ENTRY, APP_TASKS, PROGRAMS)


def is_script(workload: str) -> bool:
    """True if a workload is a pack, or a script of the user that is given by its path, and not a built-in workload."""
    if _has_prefix(workload):
        return False
    workload = weight_of(workload)[0]
    return "/" in workload or workload.endswith((".sql", ".lua")) or workload.startswith(BUNDLED)


def stands_alone(workload: str) -> bool:
    """True if a workload is a job, a replay, a suite, tasks or client programs. Such a workload decides by itself how
    many clients it has and at which rate it runs."""
    return workload in (APP_TASKS, PROGRAMS) or _has_prefix(workload)


def _has_prefix(workload: str) -> bool:
    return is_replay(workload) or is_suite(workload) or is_job(workload)


def known(names: list[str]) -> list[str]:
    """Returns the names unchanged. Raises ValueError if one of them is not the name of a workload."""
    for name in names:
        if name not in BUILT_IN and not (is_script(name) or _has_prefix(name)):
            near = difflib.get_close_matches(name, BUILT_IN, n=1, cutoff=0.4)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"the built-in ones are {', '.join(BUILT_IN)}, and a script of your own is named by its "
                "path, with a / or ending in .sql or .lua; a pack that comes with pgtrial is pack:NAME"
            )
            raise ValueError(f"{quoted(name)} is not a built-in workload; {hint}")
    return names
