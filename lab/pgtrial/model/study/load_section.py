"""`[load]` of the study file: what every arm has to serve, and which keys fit together."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pgtrial.model.records import Record
from pgtrial.model.study.capacity import NOT_FOR_CAPACITY, Capacity
from pgtrial.model.study.jobs import NOT_FOR_JOBS, OF_THE_LOAD_BESIDE, JobSection, is_job, objections_to_job
from pgtrial.model.study.order_entry import MOST_WAREHOUSES, ORDER_ENTRY
from pgtrial.model.study.own_data import (
    NOT_FOR_OWN_DATA,
    DataFiles,
    OwnData,
    ValueColumns,
    objections_to_weights,
    weight_of,
)
from pgtrial.model.study.packs import BUNDLED, PackSection
from pgtrial.model.study.programs import NOT_FOR_PROGRAMS, PROGRAMS
from pgtrial.model.study.replay import NOT_FOR_REPLAYS, ReplaySection, is_replay
from pgtrial.model.study.suites import NOT_FOR_SUITES, SuiteSection, is_suite
from pgtrial.model.study.sysbench import SYSBENCH_TESTS, SysbenchSection, is_sysbench
from pgtrial.model.study.tasks import APP_TASKS, NOT_FOR_TASKS, TasksSection
from pgtrial.model.units import Seconds, ServerLoss, as_list, parse_duration

Count = Annotated[int, Field(ge=1, le=1_000_000)]
"""A scale factor or a number of clients."""

Rate = Annotated[float, Field(gt=0, le=1_000_000_000)]
"""Transactions per second."""

SHORTEST_SLICE_S = 0.01
"""The engine's shortest slice."""


def _interleave(value: Any) -> Any:
    if value in ("auto", "off"):
        return value
    try:
        seconds = parse_duration(value)
    except ValueError:
        raise ValueError(f'{value!r} is neither "auto" nor "off" nor the length of a slice, such as "250ms"') from None
    if seconds < SHORTEST_SLICE_S:
        raise ValueError(f"a slice of {seconds * 1000:g}ms is too short; write {SHORTEST_SLICE_S * 1000:g}ms or more")
    return seconds


Interleave = Annotated[Literal["auto", "off"] | float, BeforeValidator(_interleave)]

Protocol = Literal["simple", "extended", "prepared"]


WORKLOADS = ("tpcb-like", "simple-update", "select-only")
"""The built-in workloads of pgbench, named as it names its scripts."""

BUILT_IN = (*WORKLOADS, *SYSBENCH_TESTS, ORDER_ENTRY, APP_TASKS, PROGRAMS)


def is_script(workload: str) -> bool:
    """Whether a workload is a script of the study's own, given by its path, or a pack, and not a built-in one."""
    if is_replay(workload) or is_suite(workload) or is_job(workload):
        return False
    workload = weight_of(workload)[0]
    return "/" in workload or workload.endswith((".sql", ".lua")) or workload.startswith(BUNDLED)


def _distinct(values: list[Any]) -> list[Any]:
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"lists {', '.join(repeated)} more than once; each value makes its own load points")
    return values


def _known(names: list[str]) -> list[str]:
    for name in names:
        if name not in BUILT_IN and not any(kind(name) for kind in (is_script, is_replay, is_suite, is_job)):
            near = difflib.get_close_matches(name, BUILT_IN, n=1, cutoff=0.4)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"the built-in ones are {', '.join(BUILT_IN)}, and a script of your own is named by its "
                "path, with a / or ending in .sql or .lua; a pack that comes with pgtrial is pack:NAME"
            )
            raise ValueError(f"{name!r} is no built-in workload; {hint}")
    return names


AUTO: Literal["auto"] = "auto"
"""A length that pgtrial chooses."""


def _length(value: Any) -> Any:
    if value == AUTO:
        return value
    try:
        seconds = parse_duration(value)
    except ValueError:
        raise ValueError(f'{value!r} is not a duration; write for example 10s or 1min, or "auto"') from None
    if not math.isfinite(seconds):
        raise ValueError(f"{value!r} is no length of a trial")
    return seconds


def _warmup(value: Any) -> Any:
    length = _length(value)
    if length != AUTO and length < 0:
        raise ValueError(f"a warm-up of {length:g}s is impossible; write 0 or more")
    return length


def _duration(value: Any) -> Any:
    length = _length(value)
    if length != AUTO and length < 1:
        raise ValueError(f"{length:g}s is too short; write 1s or more")
    if length != AUTO and length != int(length):
        raise ValueError(f"{length:g}s is not a whole number of seconds, which pgbench's -T requires")
    return length


Length = float | Literal["auto"]

_FORMER_DEFAULTS: Mapping[str, object] = {"warmup": 10.0, "duration": 30.0}
"""Defaults of these keys until pgtrial 0.2, which stored studies have written out."""


class LoadSection(Record):
    """The load of every arm. Lists are crossed into load points."""

    # lists are crossed with each other into load points
    workload: Annotated[list[str], BeforeValidator(as_list), AfterValidator(_distinct), AfterValidator(_known)] = Field(
        ["tpcb-like"],
        min_length=1,
        description="pgbench's tpcb-like, simple-update, select-only. sysbench's tests, such as oltp_read_write. "
        "[order-entry](order-entry.md). [app-tasks](tasks.md), alone. Scripts by their paths, relative "
        "to the study file: `.sql` for pgbench, `.lua` for sysbench. [Packs](packs.md): `pack:queue`, "
        "`pack:kv/A` or a folder. `replay:DIRECTORY`, alone: a [capture](replay.md). `suite:NAME` or "
        "`suite:FOLDER`, alone: [queries](suites.md). `job:FILE.sql`, alone: a [job](jobs.md). A pgbench script "
        "finds pgbench's tables, `:scale`, and what setup_sql makes; on a given server the tables only "
        "if it names one or `scale` is set. Weights make one load of scripts: "
        '`["a.sql", "b.sql=3"]`.',
    )
    query: str | None = Field(
        None,
        min_length=1,
        description="A query in place of workload ([how](tutorials/own-query.md)).",
    )
    values: ValueColumns = Field(
        {},
        description='Columns that give variables random values: `{ id = "orders.id" }`.',
    )
    data: Annotated[OwnData, BeforeValidator(as_list)] = Field(
        [],
        description='Your own data: a dump, SQL files, `["schema.sql", "data.sql"]`, or a connection string.',
    )
    data_files: DataFiles | None = Field(None, description="Written by pgtrial.")
    scale: Annotated[list[Count], BeforeValidator(as_list), AfterValidator(_distinct)] = Field(
        [10],
        min_length=1,
        description="Scale factors: 100,000 accounts (15 MB) each; warehouses of order-entry (105 MB); a pack's "
        "unit. Not for sysbench's tests. Six or more show [cliffs](method.md#over-clients-and-sizes).",
    )
    clients: Annotated[list[Count], BeforeValidator(as_list), AfterValidator(_distinct)] = Field(
        [8],
        min_length=1,
        description="Concurrent clients. Six or more, such as `[1, 2, 4, 8, 16, 32]`, give a "
        "[scalability law](method.md#over-clients-and-sizes).",
    )
    rate: Annotated[list[Rate], BeforeValidator(as_list), AfterValidator(_distinct)] = Field(
        [],
        description="Transactions per second of all clients together, at random moments; default: no limit.",
    )
    capacity: Capacity | None = Field(
        None,
        description="The promise of which the highest rate is looked for ([how](capacity.md)): "
        '`{ p99 = "20ms", failures = "0.1%" }`. `duration` is then the length of a probe.',
    )
    sysbench: SysbenchSection = Field(SysbenchSection(), description="See `[load.sysbench]`.")
    tasks: TasksSection = Field(TasksSection(), description="See `[load.tasks]`.")
    pack: PackSection = Field(PackSection(), description="See `[load.pack]`.")
    replay: ReplaySection = Field(ReplaySection(), description="See `[load.replay]`.")
    suite: SuiteSection = Field(SuiteSection(), description="See `[load.suite]`.")
    job: JobSection = Field(JobSection(), description="See `[load.job]`.")
    cpus: str | None = Field(None, description="CPUs of the engine, `4-7`; default: all.")
    jobs: int | None = Field(
        None,
        ge=1,
        description="Threads of each engine; default: one for 16 clients, at most half the CPUs (all, on machines "
        "without a server).",
    )
    protocol: Protocol = Field("prepared", description="Query protocol.")
    fillfactor: int = Field(100, ge=10, le=100, description="Of the tables, percent.")
    foreign_keys: bool = Field(False, description="In the tables.")
    warmup: Annotated[Length, BeforeValidator(_warmup)] = Field(
        AUTO,
        description="Load before the measured part; measured apart. `auto`: as long as the speed rises after the "
        "start ([how](method.md#lengths-by-themselves)).",
    )
    duration: Annotated[Length, BeforeValidator(_duration)] = Field(
        AUTO,
        description="The measured part of each trial; whole seconds. `auto`: such that a verdict is possible within "
        "the budget, with three quarters of the time measured where possible.",
    )
    observe: bool = Field(
        True,
        description="Whether waits, the server's and the host's counters are [sampled](observation.md) during trials.",
    )
    max_tries: int | None = Field(
        None,
        ge=0,
        description="Tries after serialization failures and deadlocks; 0: without limit; default: one.",
    )
    latency_limit: Seconds | None = Field(
        None, gt=0, description="With max_tries: a longer transaction is not tried again."
    )

    check: bool = Field(
        False,
        description="Whether order-entry's [conditions](order-entry.md#consistency) are checked around each trial.",
    )
    procedures: bool = Field(
        False,
        description="Whether order-entry calls [stored procedures](order-entry.md#stored-procedures) (PostgreSQL 11 "
        "or later).",
    )

    on_server_loss: ServerLoss = Field(
        "fail",
        description="`fail`: a trial that loses its server has failed. `wait 60s`: clients try so long to connect "
        "again, and the gap [counts](method.md#when-the-server-goes). Not for sysbench.",
    )

    interleave: Interleave = Field(
        "auto",
        description="Whether arms take turns in short [slices](method.md#slices): `auto` where possible, `off`, or "
        "a slice's length, `\"250ms\"`. `warmup` and `duration` are each arm's own time.",
    )
    share_server: bool = Field(
        True,
        description="Whether arms that differ only in settings of sessions share one server.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> LoadSection:
        for objection in chain(
            self._objections(),
            self._objections_to_own_data(),
            self._objections_to_own_end(),
            self._objections_to_programs(),
            self._objections_to_capacity(),
        ):
            raise ValueError(objection)
        return self

    def _objections(self) -> Iterator[str]:
        """What does not go together, a sentence each."""
        if self.latency_limit is not None and self.max_tries is None:
            yield "latency_limit ends the tries of a transaction; set max_tries as well, 0 for no other end"
        if self.latency_limit is not None and self.rate:
            yield (
                "latency_limit at a rate would skip the latest transactions and flatter the response time; leave one "
                "of the two out"
            )
        if any(map(is_sysbench, self.workload)):
            yield from self._objections_of_sysbench()
        elif self.sysbench != SysbenchSection():
            yield "sysbench is for workloads that are tests of sysbench, and none of these is; remove it"
        if ORDER_ENTRY in self.workload:
            if max(self.scale) > MOST_WAREHOUSES:
                yield f"scale is the number of warehouses of {ORDER_ENTRY}, at most {MOST_WAREHOUSES:,}"
        elif self.check or self.procedures:
            given = "check" if self.check else "procedures"
            yield f"{given} is for the workload {ORDER_ENTRY}; set it, or remove {given}"

    def _objections_of_sysbench(self) -> Iterator[str]:
        if self.protocol == "extended":
            yield 'tests of sysbench know the protocols prepared and simple; set protocol = "prepared"'
        if self.warmup != AUTO and self.warmup != int(self.warmup):
            yield f"warmup is {self.warmup:g}s, and with tests of sysbench it has to be whole seconds"
        if any(rate != int(rate) for rate in self.rate):
            yield "tests of sysbench are started at whole numbers of transactions per second; round the rate"
        if self.max_tries is not None:
            yield (
                "max_tries is for pgbench's workloads; tests of sysbench begin an event again by themselves: remove it"
            )
        if self.on_server_loss != "fail":
            yield (
                f'on_server_loss = "{self.on_server_loss}" is not for tests of sysbench, whose clients do not '
                'connect anew; write "fail", or give them a study of their own'
            )

    def _objections_to_own_data(self) -> Iterator[str]:
        if self.query is not None and "workload" in self.model_fields_set:
            yield "query stands in place of workload; leave one of the two out"
        yield from objections_to_weights(self.workload)
        if self.replays:
            if self.data and self.replay.data is not None:
                yield "data and replay.data name the same thing; leave one of the two out"
            return
        for workload in (ORDER_ENTRY, APP_TASKS):
            if self.data and workload in self.workload:
                yield f"{workload} has tables of its own; leave data out, or name scripts on your data as workload"
        if self.data:
            yield from self._misplaced(NOT_FOR_OWN_DATA, "data of your own")

    def _objections_to_own_end(self) -> Iterator[str]:
        if self.runs_tasks:
            if len(self.workload) > 1:
                yield (
                    f"{APP_TASKS} is judged by what its tasks took, and the others are not; give it a study of its own"
                )
            yield from self._misplaced(NOT_FOR_TASKS, APP_TASKS)
        elif self.tasks != TasksSection():
            yield f"tasks is for the workload {APP_TASKS}; set it, or remove tasks"
        if self.replays:
            if len(self.workload) > 1:
                yield "a replay has data of its own and is judged by itself; give it a study of its own"
            yield from self._misplaced(NOT_FOR_REPLAYS, "a replay")
            if self.replay.data is None and not self.data:
                yield (
                    "a replay needs [load.replay] data: a dump (pg_dump) of the data as they were when the capture "
                    "began"
                )
        elif self.replay != ReplaySection():
            yield "replay is for the workload replay:DIRECTORY; set it, or remove replay"
        if self.runs_suite:
            if len(self.workload) > 1:
                yield "a suite is judged by its queries, and the others are not; give it a study of its own"
            if len(self.scale) > 1:
                yield "a suite has one scale; give each scale a study of its own"
            yield from self._misplaced(NOT_FOR_SUITES, "a suite")
        elif self.suite != SuiteSection():
            yield "suite is for the workload suite:NAME; set it, or remove suite"
        yield from objections_to_job(self.workload, self.job)
        if self.runs_job:
            yield from self._objections_beside_job()

    def _objections_beside_job(self) -> Iterator[str]:
        allowed = OF_THE_LOAD_BESIDE if self.job.beside is not None else ()
        yield from self._misplaced({key: why for key, why in NOT_FOR_JOBS.items() if key not in allowed}, "a job")
        if self.job.beside is not None and not self.rate:
            yield "job.beside is a load at a rate; set [load] rate, in transactions per second"

    def _objections_to_programs(self) -> Iterator[str]:
        if self.runs_programs:
            if len(self.workload) > 1:
                yield f"{PROGRAMS} is what the arms' commands do; give other workloads a study of their own"
            yield from self._misplaced(NOT_FOR_PROGRAMS, PROGRAMS)

    def _objections_to_capacity(self) -> Iterator[str]:
        if self.capacity is None:
            return
        unfit = [name for name in self.workload if self.has_own_end or self.runs_programs or is_sysbench(name)]
        if unfit:
            yield f"capacity is not for {unfit[0]}; use a workload of pgbench, a script, a pack or {ORDER_ENTRY}"
        yield from self._misplaced(NOT_FOR_CAPACITY, "a study of capacity")

    def _misplaced(self, keys: Mapping[str, str], workload: str) -> Iterator[str]:
        """Objections to keys that say nothing of a workload. A frozen study has its defaults written out."""
        for key, reason in keys.items():
            defaults = (type(self).model_fields[key].get_default(call_default_factory=True), _FORMER_DEFAULTS.get(key))
            if getattr(self, key) not in defaults:
                yield f"{key} is not for {workload}: {reason}; remove it"

    @property
    def is_mixed(self) -> bool:
        """Whether its scripts have weights, and are one load together."""
        return any(weight_of(workload)[1] is not None for workload in self.workload)

    @property
    def scale_is_set(self) -> bool:
        """Whether the study names the scale; it is 10 otherwise."""
        return "scale" in self.model_fields_set

    @property
    def runs_tasks(self) -> bool:
        """Whether a trial is one run of all tasks to their end."""
        return APP_TASKS in self.workload

    @property
    def replays(self) -> bool:
        """Whether a trial is one replay of a capture to its end."""
        return any(map(is_replay, self.workload))

    @property
    def runs_suite(self) -> bool:
        """Whether a trial runs the queries of a suite, each as often as the study says."""
        return any(map(is_suite, self.workload))

    @property
    def runs_job(self) -> bool:
        """Whether a trial is one run of a job to its end."""
        return any(map(is_job, self.workload))

    @property
    def runs_programs(self) -> bool:
        """Whether the load is what the arms' own client programs do."""
        return PROGRAMS in self.workload

    @property
    def _own_end(self) -> TasksSection | ReplaySection | SuiteSection | JobSection | None:
        """The section of a load that has an end of its own."""
        if self.replays:
            return self.replay
        if self.runs_suite:
            return self.suite
        if self.runs_job:
            return self.job
        return self.tasks if self.runs_tasks else None

    @property
    def has_own_end(self) -> bool:
        """Whether a trial ends when all of its load is done, and not after a time."""
        return self._own_end is not None

    @property
    def given_s(self) -> tuple[float | None, float | None]:
        """Warm-up and measured part as the study gives them, seconds; None: chosen by pgtrial. 0 with an own end."""
        if self.has_own_end:
            return 0.0, 0.0
        warmup_s, duration_s = (
            length if isinstance(length, float) else None for length in (self.warmup, self.duration)
        )
        return warmup_s, duration_s

    @property
    def chooses_lengths(self) -> bool:
        """Whether pgtrial chooses the warm-up or the measured part by a preliminary block."""
        return self.capacity is None and None in self.given_s

    def timed(self, warmup_s: float, duration_s: float) -> LoadSection:
        """The load of trials of these lengths; one with an own end keeps it."""
        if self.has_own_end:
            return self
        return self.model_copy(update={"warmup": warmup_s, "duration": duration_s})

    @property
    def phases_s(self) -> tuple[float, float]:
        """Warm-up and measured part, seconds; 0 of loads that run to their end. The lengths are known (`timed`)."""
        warmup, duration = self.given_s
        if warmup is None or duration is None:
            raise ValueError("the lengths of this load are not chosen yet")
        return warmup, duration

    @property
    def expected_s(self) -> float:
        """About how long the load takes, seconds."""
        return self._own_end.expected_s if self._own_end is not None else sum(self.phases_s)

    @property
    def longest_s(self) -> float:
        """What the load may take at most, seconds, besides connecting and its last transactions."""
        return self._own_end.longest_s if self._own_end is not None else sum(self.phases_s)
