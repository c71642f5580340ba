"""Which keys of `[load]` fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from pgtrial.model.study.capacity import NOT_FOR_CAPACITY
from pgtrial.model.study.jobs import NOT_FOR_JOBS, OF_THE_LOAD_BESIDE, objections_to_job
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.load_values import AUTO
from pgtrial.model.study.order_entry import MOST_WAREHOUSES, ORDER_ENTRY
from pgtrial.model.study.own_data import NOT_FOR_OWN_DATA, objections_to_weights
from pgtrial.model.study.programs import NOT_FOR_PROGRAMS, PROGRAMS
from pgtrial.model.study.replay import NOT_FOR_REPLAYS, ReplaySection
from pgtrial.model.study.suites import NOT_FOR_SUITES, SuiteSection, objections_to_scale
from pgtrial.model.study.sysbench import SysbenchSection, is_sysbench
from pgtrial.model.study.tasks import APP_TASKS, NOT_FOR_TASKS, TasksSection

_FORMER_DEFAULTS: Mapping[str, object] = {"warmup": 10.0, "duration": 30.0}
"""Defaults of these keys until pgtrial 0.2, which stored studies have written out."""


def objections(load: LoadKeys) -> Iterator[str]:
    """What does not go together, a sentence each."""
    return chain(
        _objections_to_limits(load),
        _objections_to_own_data(load),
        _objections_to_own_end(load),
        _objections_to_programs(load),
        _objections_to_capacity(load),
    )


def _objections_to_limits(load: LoadKeys) -> Iterator[str]:
    """What does not go together, a sentence each."""
    if load.latency_limit is not None and load.max_tries is None:
        yield "latency_limit ends the tries of a transaction; set max_tries as well, 0 for no other end"
    if load.latency_limit is not None and load.rate:
        yield (
            "latency_limit at a rate would skip the latest transactions and flatter the response time; leave one "
            "of the two out"
        )
    if not load.runs_suite and (decimal := [scale for scale in load.scale if not isinstance(scale, int)]):
        yield f"scale is {decimal[0]:g}, and for {load.workload[0]} it has to be a whole number; round it"
    if any(map(is_sysbench, load.workload)):
        yield from _objections_of_sysbench(load)
    elif load.sysbench != SysbenchSection():
        yield "sysbench is for workloads that are tests of sysbench, and none of these is; remove it"
    if ORDER_ENTRY in load.workload:
        if max(load.scale) > MOST_WAREHOUSES:
            yield f"scale is the number of warehouses of {ORDER_ENTRY}, at most {MOST_WAREHOUSES:,}"
    elif load.check or load.procedures:
        given = "check" if load.check else "procedures"
        yield f"{given} is for the workload {ORDER_ENTRY}; set it, or remove {given}"


def _objections_of_sysbench(load: LoadKeys) -> Iterator[str]:
    if load.protocol == "extended":
        yield 'tests of sysbench know the protocols prepared and simple; set protocol = "prepared"'
    if load.warmup != AUTO and load.warmup != int(load.warmup):
        yield f"warmup is {load.warmup:g}s, and with tests of sysbench it has to be whole seconds"
    if any(rate != int(rate) for rate in load.rate):
        yield "tests of sysbench are started at whole numbers of transactions per second; round the rate"
    if load.max_tries is not None:
        yield ("max_tries is for pgbench's workloads; tests of sysbench begin an event again by themselves: remove it")
    if load.on_server_loss != "fail":
        yield (
            f'on_server_loss = "{load.on_server_loss}" is not for tests of sysbench, whose clients do not '
            'connect anew; write "fail", or give them a study of their own'
        )


def _objections_to_own_data(load: LoadKeys) -> Iterator[str]:
    if load.query is not None and "workload" in load.model_fields_set:
        yield "query stands in place of workload; leave one of the two out"
    yield from objections_to_weights(load.workload)
    if load.replays:
        if load.data and load.replay.data is not None:
            yield "data and replay.data name the same thing; leave one of the two out"
        return
    for workload in (ORDER_ENTRY, APP_TASKS):
        if load.data and workload in load.workload:
            yield f"{workload} has tables of its own; leave data out, or name scripts on your data as workload"
    if load.data:
        yield from _misplaced(load, NOT_FOR_OWN_DATA, "data of your own")


def _objections_to_own_end(load: LoadKeys) -> Iterator[str]:
    if load.runs_tasks:
        if len(load.workload) > 1:
            yield (f"{APP_TASKS} is judged by what its tasks took, and the others are not; give it a study of its own")
        yield from _misplaced(load, NOT_FOR_TASKS, APP_TASKS)
    elif load.tasks != TasksSection():
        yield f"tasks is for the workload {APP_TASKS}; set it, or remove tasks"
    if load.replays:
        if len(load.workload) > 1:
            yield "a replay has data of its own and is judged by itself; give it a study of its own"
        yield from _misplaced(load, NOT_FOR_REPLAYS, "a replay")
        if load.replay.data is None and not load.data:
            yield (
                "a replay needs [load.replay] data: a dump (pg_dump) of the data as they were when the capture began"
            )
    elif load.replay != ReplaySection():
        yield "replay is for the workload replay:DIRECTORY; set it, or remove replay"
    if load.runs_suite:
        if len(load.workload) > 1:
            yield "a suite is judged by its queries, and the others are not; give it a study of its own"
        if len(load.scale) > 1:
            yield "a suite has one scale; give each scale a study of its own"
        yield from objections_to_scale(load.scale[0])
        yield from _misplaced(load, NOT_FOR_SUITES, "a suite")
    elif load.suite != SuiteSection():
        yield "suite is for the workload suite:NAME; set it, or remove suite"
    yield from objections_to_job(load.workload, load.job)
    if load.runs_job:
        yield from _objections_beside_job(load)


def _objections_beside_job(load: LoadKeys) -> Iterator[str]:
    allowed = OF_THE_LOAD_BESIDE if load.job.beside is not None else ()
    yield from _misplaced(load, {key: why for key, why in NOT_FOR_JOBS.items() if key not in allowed}, "a job")
    if load.job.beside is not None and not load.rate:
        yield "job.beside is a load at a rate; set [load] rate, in transactions per second"


def _objections_to_programs(load: LoadKeys) -> Iterator[str]:
    if load.runs_programs:
        if len(load.workload) > 1:
            yield f"{PROGRAMS} is what the arms' commands do; give other workloads a study of their own"
        yield from _misplaced(load, NOT_FOR_PROGRAMS, PROGRAMS)


def _objections_to_capacity(load: LoadKeys) -> Iterator[str]:
    if load.capacity is None:
        return
    unfit = [name for name in load.workload if load.has_own_end or load.runs_programs or is_sysbench(name)]
    if unfit:
        yield f"capacity is not for {unfit[0]}; use a workload of pgbench, a script, a pack or {ORDER_ENTRY}"
    yield from _misplaced(load, NOT_FOR_CAPACITY, "a study of capacity")


def _misplaced(load: LoadKeys, keys: Mapping[str, str], workload: str) -> Iterator[str]:
    """Objections to keys that say nothing of a workload. A frozen study has its defaults written out."""
    for key, reason in keys.items():
        defaults = (type(load).model_fields[key].get_default(call_default_factory=True), _FORMER_DEFAULTS.get(key))
        if getattr(load, key) not in defaults:
            yield f"{key} is not for {workload}: {reason}; remove it"
