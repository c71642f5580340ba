"""The properties of a kind of load that reports, verdicts and trials need to know, such as the unit of its throughput.

Each kind of load has a class of its own in a module next to this one (`transactions.py`, `capacity.py`, `programs.py`,
`tasks.py`, `replay.py`, `suite.py`, `job.py`), and only `LoadPoint.kind` chooses among them. Other code does not test
which kind a load is: it reads one of these properties.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Measure = Literal[
    "goodput",
    "mean response time",
    "mean response time of tasks",
    "geometric mean of query times",
    "time of the job",
]


class PointKind:
    """The properties of one kind of load. The values in this base class are those of a load of transactions that runs
    for a given time."""

    key: ClassVar[str]
    """The name of the kind. Other packages of pgtrial have tables with these names as keys, in which they find their
    own code for the kind."""
    called: ClassVar[str] = "the load"
    """The name of what a trial runs, for reports: `the job`."""
    noun: ClassVar[str] = "transaction"
    """The name of one item of the load, for reports: `transaction`, `statement`."""
    rate_unit: ClassVar[str] = "tps"
    """The unit of the load's throughput."""
    has_rate: ClassVar[bool] = True
    """True if the load repeats its transactions or statements many times a second, so that its throughput and its
    timeline are worth reporting."""
    time_is_unknown: ClassVar[bool] = False
    """True if the time of a trial is not known until its load has run once."""
    has_percentiles: ClassVar[bool] = True
    """True if the report can compare the arms by each percentile of the load's response times."""
    knows_each_statement: ClassVar[bool] = False
    """True if the rows and the errors of each statement are known. The audit then has rules of its own for them."""
    counts_failures: ClassVar[bool] = True
    """True if the load engine counts each transaction that fails."""
    rests: ClassVar[bool] = False
    """True if the load is idle for parts of the measured time. Its throughput is then computed over the other parts
    only."""
    is_timed: ClassVar[bool] = False
    """True if the result of a trial is the time that the load takes from beginning to end."""
    is_watched_beside: ClassVar[bool] = False
    """True if the response times of a trial are those of another load, which runs at the same time as this one."""
    reports_progress: ClassVar[bool] = False
    """True if the server reports the progress of the load, for example in pg_stat_progress_create_index."""
    counts_blocks_of_parts: ClassVar[bool] = False
    """True if the load has parts, such as queries, with verdicts of their own. If parts are undecided, the report then
    proposes a command that adds as many blocks as these parts need."""

    repeats: ClassVar[bool] = True
    """True if the clients repeat the load until the time of a trial is over."""
    is_by_engine: ClassVar[bool] = True
    """True if pgtrial's load engine makes the load, so that each transaction is known."""

    @property
    def measure(self) -> Measure:
        """Returns what claims compare unless the study declares metrics: the amount of work done or, where the load
        fixes that amount, the time that the work takes."""
        return "goodput"

    @property
    def amount(self) -> str | None:
        """Returns the amount of work in a trial, for reports: `15,000 tasks`; None if a trial does as much work as its
        time allows."""
        return None

    @property
    def folder(self) -> str | None:
        """Returns the folder among the study's scripts that has the load's files; None if the load's files are not in a
        folder of their own."""
        return None

    @property
    def query_files(self) -> dict[str, str]:
        """Returns the files in the load's folder that hold one query each, with the names of the queries as keys."""
        return {}

    @property
    def scripts_beside(self) -> list[str]:
        """Returns the names of the scripts of a second load that runs at the same time as this one. Only jobs can have
        such a load."""
        return []

    @property
    def rows_made(self) -> int:
        """Returns the number of rows of the table that this kind of load makes in place of pgbench's tables, and whose
        size does not depend on a scale; 0 if the load makes no such table."""
        return 0

    def most_engines(self, clients: int) -> int:
        """Returns how many load engines can share the load, if each engine needs at least one client."""
        return clients

    @property
    def has_scale(self) -> bool:
        """True if the load's tables have a size that depends on the scale."""
        return True

    @property
    def details(self) -> str:
        """Returns the details of the load that end the load point's name, after workload and data. The text begins with
        its separator, as in `, 8 clients, 500/s`."""
        return ""

    def described(self, workload: str, data: str) -> str:
        """Returns one name for workload and data together, for reports. `data` is the text that follows the workload,
        such as `, scale 20`."""
        return f"{workload}{data}"

    def directory(self, workload: str, size: str) -> str:
        """Returns the text that stands for the load point in names of directories, such as `tpcb-like-s20`. `size`
        stands for the size of the data, such as `s20`."""
        return "-".join(filter(None, (workload, size)))
