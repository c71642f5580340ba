"""The properties of a kind of load that reports, verdicts and trials ask for, such as the unit of its throughput.

Each kind of load has a class of its own in a module beside this one (`transactions.py`, `capacity.py`, `programs.py`,
`tasks.py`, `replay.py`, `suite.py`, `job.py`), and `LoadPoint.kind` is the only place that chooses among them. Other
code does not test which kind a load is: it reads one of these properties.
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
    """The properties of one kind of load. This base class has those of a load of transactions that runs for a given
    time."""

    key: ClassVar[str]
    """The kind's name. The other packages of the lab have tables by this name, in which they find their own code for
    the kind."""
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
    """True if it is not known how long a trial takes before its load has run."""
    has_percentiles: ClassVar[bool] = True
    """True if the report compares the percentiles of its response times, each as a claim of its own."""
    knows_each_statement: ClassVar[bool] = False
    """True if the rows and the errors of each statement are known, and have rules of their own."""
    counts_failures: ClassVar[bool] = True
    """True if the engine counts each transaction that fails."""
    rests: ClassVar[bool] = False
    """True if the load is idle for parts of the measured time, so that its throughput counts only the rest of the
    time."""
    is_timed: ClassVar[bool] = False
    """True if the result of a trial is its time from beginning to end."""
    is_watched_beside: ClassVar[bool] = False
    """True if the response times of a trial are those of another load, which runs at the same time as this one."""
    reports_progress: ClassVar[bool] = False
    """True if the server reports the progress of the load."""
    counts_blocks_of_parts: ClassVar[bool] = False
    """True if the report proposes a command with further blocks for a study whose parts, such as queries, are
    undecided. The command has as many blocks as these parts need."""

    repeats: ClassVar[bool] = True
    """True if the clients repeat the load until the time of a trial is over."""
    is_by_engine: ClassVar[bool] = True
    """True if the engine makes the load, so that it knows each transaction."""

    @property
    def measure(self) -> Measure:
        """Returns what claims compare unless the study says otherwise: the amount of work done or, where the load fixes
        that amount, the time that it takes."""
        return "goodput"

    @property
    def amount(self) -> str | None:
        """Returns the amount of work in a trial, for reports: `15,000 tasks`; None if a trial does as much as its time
        allows."""
        return None

    @property
    def folder(self) -> str | None:
        """Returns the folder among the study's scripts that has the load's files; None if the load has no folder of its
        own."""
        return None

    @property
    def query_files(self) -> dict[str, str]:
        """Returns the files in the load's folder that hold one query each, by the name of the query."""
        return {}

    @property
    def scripts_beside(self) -> list[str]:
        """Returns the names of the scripts of a load that runs at the same time as this one, as it may with a job."""
        return []

    @property
    def rows_made(self) -> int:
        """Returns the number of rows of the load's own table, which has no scale; 0 if the load has no such table."""
        return 0

    def most_engines(self, clients: int) -> int:
        """Returns how many engines can share the load, where each needs at least one client."""
        return clients

    @property
    def has_scale(self) -> bool:
        """True if the load's tables are made in the size that a scale gives."""
        return True

    @property
    def details(self) -> str:
        """Returns the end of the load point's name, which follows workload and data and begins with a comma."""
        return ""

    def described(self, workload: str, data: str) -> str:
        """Returns the names of workload and data for reports; `data` is the part that follows the workload."""
        return f"{workload}{data}"

    def directory(self, workload: str, size: str) -> str:
        """Returns the name of the load point in the names of directories; `size` is that of its data."""
        return "-".join(filter(None, (workload, size)))
