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
from pgtrial.model.study.sql_texts import own_query
from pgtrial.model.study.suites import SuiteSection
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.study.tasks import TasksSection
from pgtrial.model.study.workload_names import known
from pgtrial.model.units import Seconds, ServerLoss, Whole, as_list


class LoadKeys(Record):
    """The keys of `[load]`."""

    # each combination of the values in these lists is a load point
    workload: Annotated[list[str], BeforeValidator(as_list), AfterValidator(distinct), AfterValidator(known)] = Field(
        ["tpcb-like"],
        min_length=1,
        description="What the clients run; [which load fits](loads.md) helps to choose. pgbench: `tpcb-like`, "
        "`simple-update`, `select-only`, or your own scripts by their paths, relative to the study "
        "file and ending in `.sql`. sysbench: its tests, such as `oltp_read_write`, or a Lua script "
        "ending in `.lua`. Others: [`order-entry`](order-entry.md); [packs](packs.md) as "
        "`pack:queue`, `pack:kv/A` or the path of a folder. The following must be the only workload "
        "of a study: [`app-tasks`](tasks.md); `replay:DIRECTORY`, a [capture](replay.md), which is "
        "a recording of sessions; `suite:NAME` or `suite:FOLDER`, a [suite of queries](suites.md); "
        "`job:FILE.sql`, a [job](jobs.md). Several workloads are measured one by one. Scripts with "
        'weights run together as one load: `["a.sql", "b.sql=3"]`. A script of your own finds the '
        "tables that `data` or `setup_sql` makes; pgbench's tables and the variable `:scale` exist "
        "only if the script names one of these tables or `scale` is set.",
    )
    query: Annotated[str, AfterValidator(own_query)] | None = Field(
        None,
        description="One SQL query that the clients run, in place of `workload` ([tutorial](tutorials/own-query.md)).",
    )
    values: ValueColumns = Field(
        {},
        description='Columns from which variables of the query or script take random values: `{ id = "orders.id" '
        "}` gives the variable `:id` a random value of that column in each transaction.",
    )
    data: Annotated[OwnData, BeforeValidator(as_list)] = Field(
        [],
        description="Your own data, which is loaded before the first trial: the path of a dump, the paths of SQL "
        'files in their order, `["schema.sql", "data.sql"]`, or a connection string of a database '
        "that is dumped.",
    )
    data_files: DataFiles | None = Field(
        None,
        description="pgtrial writes this key into the study file that it stores in the study directory: the "
        "checksum and the size of `data`.",
    )
    scale: Annotated[list[Scale], BeforeValidator(as_list), AfterValidator(distinct)] = Field(
        [10],
        min_length=1,
        description="The size of the data, in units of the workload. pgbench: 100,000 accounts (15 MB) for each "
        "unit; order-entry: warehouses (105 MB each); packs: their own unit; suites: 0.01 to 100. "
        "Tests of sysbench have `[load.sysbench]` instead. Each scale is measured at every number of "
        "clients. Six or more scales show [cliffs](method.md#over-clients-and-sizes), where the data "
        "outgrow the memory.",
    )
    clients: Annotated[list[Count], BeforeValidator(as_list), AfterValidator(distinct)] = Field(
        [8],
        min_length=1,
        description="The number of clients that run transactions at the same time, each on its own connection. "
        "Each number is a load point of its own. Six or more numbers, such as `[1, 2, 4, 8, 16, "
        "32]`, give a [scalability law](method.md#over-clients-and-sizes).",
    )
    rate: Annotated[list[Rate], BeforeValidator(as_list), AfterValidator(distinct)] = Field(
        [],
        description="The number of transactions per second that all clients together start, at random moments. "
        "The verdict is then about the [response time](method.md#at-a-given-rate). Default: each "
        "client starts a transaction as soon as the one before has ended, and the verdict is about "
        "throughput.",
    )
    capacity: Capacity | None = Field(
        None,
        description="With this key, pgtrial looks for the [highest rate](capacity.md) at which the load keeps "
        "the promise that you write here, a limit for the response time and for failures: `{ p99 = "
        '"20ms", failures = "0.1%" }`. `at_most` in it limits the rates that are tried, in '
        "transactions per second. `duration` is then the length of one probe, a run at one rate.",
    )
    sysbench: SysbenchSection = Field(SysbenchSection(), description="See `[load.sysbench]`.")
    tasks: TasksSection = Field(TasksSection(), description="See `[load.tasks]`.")
    pack: PackSection = Field(PackSection(), description="See `[load.pack]`.")
    replay: ReplaySection = Field(ReplaySection(), description="See `[load.replay]`.")
    suite: SuiteSection = Field(SuiteSection(), description="See `[load.suite]`.")
    job: JobSection = Field(JobSection(), description="See `[load.job]`.")
    cpus: str | None = Field(
        None, description="The CPUs on which the load engine runs, such as `4-7`. Default: all CPUs."
    )
    threads: Whole | None = Field(
        None,
        ge=1,
        description="The number of threads of each load engine. Default: one for every 16 clients, and at most "
        "half as many as there are CPUs (as many as there are CPUs on a machine without a server). Engines on one "
        "machine share its CPUs.",
    )
    protocol: Protocol = Field(
        "prepared",
        description="The query protocol, as in pgbench's option `-M`. `simple`: the values are part of the text. "
        "`extended`: each statement is parsed each time that it runs. `prepared`: each connection prepares a "
        "statement once.",
    )
    fillfactor: Whole = Field(
        100, ge=10, le=100, description="The fill factor, in percent, of the tables that pgtrial makes."
    )
    foreign_keys: bool = Field(False, description="True to make the tables of pgtrial with foreign keys.")
    warmup: WarmUp = Field(
        AUTO,
        description="How long the load runs before the measured part of each trial, in seconds. The seconds of "
        "the warm-up do not count. `auto`: until the speed no longer rises "
        "([how](method.md#lengths-by-themselves)).",
    )
    duration: MeasuredPart = Field(
        AUTO,
        description="The length of the measured part of each trial, in whole seconds. `auto`: a length with which "
        "the budget has enough blocks for a verdict and, if possible, about three quarters of a block's time are "
        "measured ([how](method.md#lengths-by-themselves)).",
    )
    observe: bool = Field(
        True,
        description="True to [sample](observation.md) wait events and the counters of server and host during the "
        "trials.",
    )
    instructions: bool = Field(
        False,
        description="True to count, before the first trial, the [CPU instructions](instructions.md) that the server of "
        "each arm executes for a transaction. pgtrial must make the servers on this machine, and needs valgrind.",
    )
    max_tries: Whole | None = Field(
        None,
        ge=0,
        description="How often a transaction is tried if it ends with a serialization failure or a deadlock. 0: "
        "without limit. Default: once.",
    )
    latency_limit: Seconds | None = Field(
        None,
        gt=0,
        description="With `max_tries`: the time in seconds after which a transaction is not tried again.",
    )

    check: bool = Field(
        False,
        description="True to check order-entry's [consistency conditions](order-entry.md#consistency) before and "
        "after each trial. A trial has failed if a condition does not hold after it.",
    )
    procedures: bool = Field(
        False,
        description="True to make order-entry call [stored procedures](order-entry.md#stored-procedures), with one "
        "call for each transaction (PostgreSQL 11 or later).",
    )

    on_server_loss: ServerLoss = Field(
        "fail",
        description="What happens to a trial that loses its server. `fail`: the trial has failed. `wait 60s`: the "
        "clients try to connect again for up to this time, and the time without service [counts as part of the "
        "trial](method.md#when-the-server-goes). Not for sysbench.",
    )

    interleave: Interleave = Field(
        "auto",
        description="Whether the trials of a block alternate in short [slices](method.md#slices), so that all arms "
        "are measured in the same period. `auto`: if possible. `off`: the trials run one after the other. A number, "
        'such as `"250ms"`: the length of a slice. `warmup` and `duration` count only the arm\'s own slices.',
    )
    share_server: bool = Field(
        True,
        description="True to measure arms on one server if they differ only in settings that a session can set, "
        "or only in their scripts. False to give each arm a server of its own.",
    )
    statistics: Literal["drawn", "same", "once"] = Field(
        "drawn",
        description="Which [statistics of the planner](method.md#the-same-statistics) a fresh copy of the data "
        "has. `drawn`: ANALYZE takes a new sample for each trial. `same`: all arms have the "
        "statistics of the first arm. `once`: all copies keep the statistics that ANALYZE made "
        "after loading. The key has no effect on servers that are given by `dsn`.",
    )

    answers: Literal["same", "may differ"] = Field(
        "same",
        description="Whether arms with [scripts or SQL of their own](method.md#the-same-answers) have to return the "
        "same rows. `same`: a difference withholds the verdict. `may differ`: the rows are not "
        "compared.",
    )

    @property
    def is_mixed(self) -> bool:
        """True if the scripts in `workload` have weights, so that they run together as one load. Otherwise the
        workloads are measured one by one."""
        return any(weight_of(workload)[1] is not None for workload in self.workload)

    @property
    def scale_is_set(self) -> bool:
        """True if the study sets the scale. Otherwise the scale is the default, 10."""
        return "scale" in self.model_fields_set
