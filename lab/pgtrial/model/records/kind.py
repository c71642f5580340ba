"""What pgtrial asks of the load of a load point, whichever kind it is.

Each kind of load has a type of its own beside this module (`transactions.py`, `capacity.py`, `programs.py`, `tasks.py`,
`replay.py`, `suite.py`, `job.py`), and `LoadPoint.kind` is the only place that chooses among them. Nothing else asks
which kind a load is: it asks one of the questions below.
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
    """The load of a load point; the answers here are those of a load of transactions that runs for a given time."""

    key: ClassVar[str]
    """The name by which each floor finds its part of the kind."""
    called: ClassVar[str] = "the load"
    """What a trial runs, for people: `the job`."""
    noun: ClassVar[str] = "transaction"
    """What the load is a sequence of, for people."""
    rate_unit: ClassVar[str] = "tps"
    """The unit of what the load does in a second."""
    has_rate: ClassVar[bool] = True
    """True if the load repeats something many times a second, so that its throughput and its timeline say something."""
    time_is_unknown: ClassVar[bool] = False
    """True if nobody knows how long a trial takes before its load has run."""
    has_percentiles: ClassVar[bool] = True
    """True if the percentiles of its response times are compared by themselves."""
    knows_each_statement: ClassVar[bool] = False
    """True if the rows and the errors of each statement are known, and have rules of their own."""
    counts_failures: ClassVar[bool] = True
    """True if the engine counts each transaction that fails."""
    rests: ClassVar[bool] = False
    """True if it does nothing for parts of the measured time, so that its throughput is of the rest of that time."""
    is_timed: ClassVar[bool] = False
    """True if the time of a trial, from beginning to end, is what it shows."""
    is_watched_beside: ClassVar[bool] = False
    """True if the response times of its trials are those of another load, which runs beside it."""
    reports_progress: ClassVar[bool] = False
    """True if the server reports how far it is."""
    counts_blocks_of_parts: ClassVar[bool] = False
    """True if the command that the report proposes has the blocks that the parts of the load need for a decision."""

    repeats: ClassVar[bool] = True
    """True if clients do the same again until the time of a trial is over."""
    is_by_engine: ClassVar[bool] = True
    """True if the engine makes the load, so that it knows each transaction."""
    lists_statements: ClassVar[bool] = True
    """True if the statements that its files list have plans to compare."""

    @property
    def measure(self) -> Measure:
        """What claims compare unless the study says otherwise: how much is done, or where that is fixed, how soon."""
        return "goodput"

    @property
    def amount(self) -> str | None:
        """What a trial does, for people: `15,000 tasks`; None: as much as its time holds."""
        return None

    @property
    def folder(self) -> str | None:
        """The folder among the scripts of the study that has its files; None: it has no folder of its own."""
        return None

    @property
    def query_files(self) -> dict[str, str]:
        """The files in its folder that are a query each, by the name of the query."""
        return {}

    @property
    def scripts_beside(self) -> list[str]:
        """The scripts of loads that run beside it."""
        return []

    @property
    def rows_made(self) -> int:
        """The rows of a table of its own, which no scale gives; 0: it has none."""
        return 0

    def most_engines(self, clients: int) -> int:
        """Returns how many engines can share the load: each has a client at least."""
        return clients

    @property
    def has_scale(self) -> bool:
        """True if its tables are made in the size of a scale."""
        return True

    @property
    def details(self) -> str:
        """What follows workload and data in the name of the load point, with the comma before it."""
        return ""

    def described(self, workload: str, data: str) -> str:
        """Returns workload and data, for people; `data` is what follows the workload."""
        return f"{workload}{data}"

    def directory(self, workload: str, size: str) -> str:
        """Returns the name of the load point in the names of directories; `size` is that of its data."""
        return "-".join(filter(None, (workload, size)))
