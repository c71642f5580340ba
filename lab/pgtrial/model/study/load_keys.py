"""The keys of `[load]`, each declared once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pgtrial.model.records import Record
from pgtrial.model.study.capacity import Capacity
from pgtrial.model.study.jobs import JobSection
from pgtrial.model.study.load_values import (
    AUTO,
    Count,
    Interleave,
    MeasuredPart,
    Protocol,
    Rate,
    Scale,
    WarmUp,
    distinct,
)
from pgtrial.model.study.own_data import DataFiles, OwnData, ValueColumns, weight_of
from pgtrial.model.study.packs import PackSection
from pgtrial.model.study.replay import ReplaySection
from pgtrial.model.study.suites import SuiteSection
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.study.tasks import TasksSection
from pgtrial.model.study.workload_names import known
from pgtrial.model.units import Seconds, ServerLoss, as_list


class LoadKeys(Record):
    """The keys of `[load]`."""

    # lists are crossed with each other into load points
    workload: Annotated[list[str], BeforeValidator(as_list), AfterValidator(distinct), AfterValidator(known)] = Field(
        ["tpcb-like"],
        min_length=1,
        description="pgbench's tpcb-like, simple-update, select-only. sysbench's tests, such as oltp_read_write. "
        "[order-entry](order-entry.md). [app-tasks](tasks.md), alone. Scripts by their paths, relative "
        "to the study file: `.sql` for pgbench, `.lua` for sysbench. [Packs](packs.md): `pack:queue`, "
        "`pack:kv/A` or a folder. `replay:DIRECTORY`, alone: a [capture](replay.md). `suite:NAME` or "
        "`suite:FOLDER`, alone: [queries](suites.md). `job:FILE.sql`, alone: a [job](jobs.md). A pgbench script "
        "finds what setup_sql makes, and pgbench's tables and `:scale` "
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
    scale: Annotated[list[Scale], BeforeValidator(as_list), AfterValidator(distinct)] = Field(
        [10],
        min_length=1,
        description="Scale factors: 100,000 accounts (15 MB) each; warehouses of order-entry (105 MB); a pack's "
        "unit; of suites 0.01 to 100. Not for sysbench's tests. Six or more show "
        "[cliffs](method.md#over-clients-and-sizes).",
    )
    clients: Annotated[list[Count], BeforeValidator(as_list), AfterValidator(distinct)] = Field(
        [8],
        min_length=1,
        description="Concurrent clients. Six or more, such as `[1, 2, 4, 8, 16, 32]`, give a "
        "[scalability law](method.md#over-clients-and-sizes).",
    )
    rate: Annotated[list[Rate], BeforeValidator(as_list), AfterValidator(distinct)] = Field(
        [],
        description="Transactions per second of all clients together, at random moments; default: no limit.",
    )
    capacity: Capacity | None = Field(
        None,
        description="The promise of which the highest rate is looked for ([how](capacity.md)), and with `at_most` the "
        "highest that is tried: "
        '`{ p99 = "20ms", failures = "0.1%" }`. `duration` is then the length of a probe.',
    )
    sysbench: SysbenchSection = Field(SysbenchSection(), description="See `[load.sysbench]`.")
    tasks: TasksSection = Field(TasksSection(), description="See `[load.tasks]`.")
    pack: PackSection = Field(PackSection(), description="See `[load.pack]`.")
    replay: ReplaySection = Field(ReplaySection(), description="See `[load.replay]`.")
    suite: SuiteSection = Field(SuiteSection(), description="See `[load.suite]`.")
    job: JobSection = Field(JobSection(), description="See `[load.job]`.")
    cpus: str | None = Field(None, description="CPUs of the engine, `4-7`; default: all.")
    threads: int | None = Field(
        None,
        ge=1,
        description="Threads of each engine; default: one for 16 clients, at most half the CPUs (all, on machines "
        "without a server).",
    )
    protocol: Protocol = Field("prepared", description="Query protocol.")
    fillfactor: int = Field(100, ge=10, le=100, description="Of the tables, percent.")
    foreign_keys: bool = Field(False, description="In the tables.")
    warmup: WarmUp = Field(
        AUTO,
        description="Load before the measured part; measured apart. `auto`: as long as the speed rises after the "
        "start ([how](method.md#lengths-by-themselves)).",
    )
    duration: MeasuredPart = Field(
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
        description="Whether arms that differ only in settings of sessions, or in their scripts, share one server.",
    )
    statistics: Literal["drawn", "same", "once"] = Field(
        "drawn",
        description="What [statistics](method.md#the-same-statistics) the planner has on fresh copies of the data. "
        "`drawn`: ANALYZE draws them for each trial. `same`: all arms have those of the first. `once`: each copy has "
        "those that its template got when it was loaded. Nothing is done for this key on given servers.",
    )

    answers: Literal["same", "may differ"] = Field(
        "same",
        description="Whether arms with [scripts of their own](method.md#the-same-answers) have to find the same rows. "
        "`may differ`: their answers are not compared.",
    )

    @property
    def is_mixed(self) -> bool:
        """True if the scripts in `workload` have weights, so that they are one load and not several."""
        return any(weight_of(workload)[1] is not None for workload in self.workload)

    @property
    def scale_is_set(self) -> bool:
        """True if the study names the scale, which is 10 otherwise."""
        return "scale" in self.model_fields_set
