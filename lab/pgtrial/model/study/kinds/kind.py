"""The properties and rules of a kind of load that a study may have: which keys it accepts, which load points it has,
and what planning must know about it. The base class has the values for transactions, and each kind overrides those that
differ."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from pgtrial.model import marks
from pgtrial.model.metrics import METRICS, RESPONSE, TPS
from pgtrial.model.records.kind import PointKind
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.own_data import NOT_FOR_OWN_DATA, name_of_data
from pgtrial.model.study.servers import Server, parts_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.tasks import APP_TASKS

_FORMER_DEFAULTS: Mapping[str, object] = {"warmup": 10.0, "duration": 30.0}
"""The defaults that these keys had until pgtrial 0.2. Stored studies contain them as if the user had set them."""

_FOR_JOBS = 'for jobs alone (workload = "job:FILE.sql"); leave it out'


_Load = TypeVar("_Load", bound=LoadKeys)


class Asked(Protocol):
    """The parts of a study on which the rules of a kind of load depend."""

    @property
    def load(self) -> LoadKeys:
        """Returns the load that every arm has to serve."""

    @property
    def arms(self) -> Mapping[str, SetUp]:
        """Returns the arms by name. The first one is the baseline."""

    @property
    def scripts(self) -> Mapping[str, str]:
        """Returns the texts of the scripts that belong to the study, by name."""

    @property
    def has_given(self) -> bool:
        """True if an arm is a given server, which somebody else runs."""

    def resolved(self, arm: str) -> Server:
        """Returns the server of one arm, with the keys that all arms share filled in."""


class OwnEnd(Protocol):
    """The expected and the longest duration of a load that ends when all of its work is done."""

    @property
    def expected_s(self) -> float:
        """Returns the approximate time that the load takes, in seconds; 0 if it is not known."""

    @property
    def longest_s(self) -> float:
        """Returns the longest time that the load may take, in seconds."""


class LoadKind(abc.ABC):
    """A kind of load that a study may have: the keys that it refuses, its load points, and what planning must know
    about it."""

    stored: ClassVar[type[PointKind]]
    """The type in which load points store a load of this kind. By the `key` of this type, other packages of pgtrial
    find their own code for the kind."""
    why_no_turns: ClassVar[str | None] = None
    """The reason why the trials of the arms cannot alternate in slices; None if nothing in the load prevents it."""
    why_no_fleet: ClassVar[str | None] = None
    """The reason why a single machine has to make the load; None if a fleet of machines can make it."""
    why_no_instructions: ClassVar[str | None] = None
    """The reason why pgtrial cannot count the instructions that a server executes for the load; None if it can."""
    why_no_metrics: ClassVar[str | None] = None
    """The reason why a study with this load cannot declare metrics, as the rest of a sentence about metrics; None if it
    can."""
    has_price: ClassVar[bool] = True
    """True if a study with this load compares transactions per cent, provided that its arms have prices."""
    fewest_arms: ClassVar[int] = 2
    """The smallest number of arms that a study with this load must have."""
    is_rehearsed: ClassVar[bool] = True
    """True if pgtrial runs the user's own parts of the load once on each arm before the first trial (a rehearsal), so
    that mistakes show early."""
    has_plans: ClassVar[bool] = True
    """True if trials record the plans of the load's statements."""
    has_known_sql: ClassVar[bool] = True
    """True if the load sends the scripts of the study, so that its SQL is known."""
    is_of_the_user: ClassVar[bool] = False
    """True if the load sends statements that the user wrote or recorded, even if the study has no script."""
    follows_the_arm: ClassVar[bool] = False
    """True if each arm has clients of its own, so that arms may differ even if they have the same server and
    settings."""
    runs_in_batches: ClassVar[bool] = False
    """True if the load runs in batches, each of which starts when pgtrial requests it."""
    has_planned_time: ClassVar[bool] = True
    """True if each trial takes the time of its warm-up and its measured part, and nothing more."""
    has_data_of_known_size: ClassVar[bool] = False
    """True if the size of the load's data is known in bytes, and does not depend on a scale."""
    takes_decimal_scales: ClassVar[bool] = False
    """True if the load's tables can have scales that are not whole numbers."""
    is_of_queries: ClassVar[bool] = False
    """True if each file of the load is a query, which the engine sends unchanged."""
    has_own_limit: ClassVar[bool] = False
    """True if the study itself limits the time of the load. A trial that exceeds this limit is ended at once, while
    other trials get some further time to end."""
    searches_rate: ClassVar[bool] = False
    """True if trials search for a rate. The search in a trial then begins at the rate that earlier blocks have
    found."""
    fewer: ClassVar[str] = "load points"
    """The plural noun that messages use for the parts of a study that the user should reduce if the budget is too
    short."""

    def is_meant(self, load: LoadKeys) -> bool:
        """True if the workload, or another key of `[load]`, asks for this kind of load."""
        return True

    def own_end(self, load: LoadKeys) -> OwnEnd | None:
        """Returns the durations of a load that ends when all of its work is done; None if the load ends after a given
        time."""
        return None

    def objections(self, load: LoadKeys) -> Iterator[str]:
        """Yields an objection for each key that contradicts this kind of load. If the load is of another kind, yields
        an objection for each key that only this kind may have."""
        yield from ()

    def objections_to_data(self, load: LoadKeys) -> Iterator[str]:
        """Yields an objection for each key that cannot be combined with the user's own data, `[load] data`."""
        for workload in (ORDER_ENTRY, APP_TASKS):
            if load.data and workload in load.workload:
                data, scripts = marks.short_key("load", "data"), marks.short_key("load", "workload")
                yield f"{workload} has tables of its own; leave {data} out, or name scripts for your data as {scripts}"
        if load.data:
            yield from misplaced(load, NOT_FOR_OWN_DATA, "data of your own")

    def objection_to_servers(self, study: Asked) -> str | None:
        """Returns an objection, as a sentence, if the load cannot run on the servers of the study; None if it can."""
        return None

    def misfit(self, load: LoadKeys, metric: str) -> str | None:
        """Returns why the study cannot declare this metric for the load, as the rest of a sentence that begins with the
        metric; None if it can."""
        if METRICS[metric].kind == "capacity":
            return f"takes a promise; write {marks.key('load', 'capacity', {'p99': '20ms'})}"
        return f"is {_FOR_JOBS}" if METRICS[metric].is_for_jobs else None

    def metrics(self, load: LoadKeys, declared: list[str]) -> list[str]:
        """Returns the metrics that a study with this load compares. `declared` has those that the study lists, possibly
        none."""
        return list(declared)

    def usual_metric(self, load: LoadKeys) -> str:
        """Returns the metric that is the same as the usual measure of the load. If the study declares this metric
        first, its primary claims are the same as without declared metrics."""
        return RESPONSE if self.is_paced(load) else TPS

    def is_paced(self, load: LoadKeys) -> bool:
        """True if the study fixes the number of transactions, so that the server's speed does not change it."""
        return bool(load.rate)

    @abc.abstractmethod
    def points(self, study: Asked) -> list[LoadPoint]:
        """Returns the load points of a study."""

    def may_do_without_tables(self, study: Asked) -> bool:
        """True if the load may run without pgbench's tables. A scale that the study does not set then has no
        meaning."""
        return False

    def limited(self, load: _Load, limit_s: float) -> _Load:
        """Returns the load with a time limit in seconds; unchanged for a kind of load that has no such limit."""
        return load

    def caution(self, study: Asked) -> str | None:
        """Returns a warning about the load, as a sentence, which pgtrial shows before the first trial; None if there is
        nothing to warn about."""
        return None

    def scripts_run_once(self, study: Asked) -> list[str]:
        """Returns the names of the scripts that run once in a trial. pgtrial must remove the objects that they create
        before the next trial."""
        return []

    def has_family(self, load: LoadKeys) -> bool:
        """True if a comparison has further claims that only this kind of load has, beyond the primary claims and those
        on declared metrics."""
        return False

    def parts(self, load: LoadKeys) -> int:
        """Returns the largest number of parts of the load, such as queries, that can have a claim of their own in a
        comparison."""
        return 0

    def restarts_server(self, load: LoadKeys) -> bool:
        """True if the server is restarted within a trial."""
        return False

    def empties_caches(self, load: LoadKeys) -> bool:
        """True if the kernel's cache of files is emptied within a trial."""
        return False

    def starts_programs(self, load: LoadKeys) -> bool:
        """True if the user's own programs make the load."""
        return False


def misplaced(load: LoadKeys, keys: Mapping[str, str], workload: str) -> Iterator[str]:
    """Yields an objection for each of these keys that the study sets although the workload does not use it. `keys` has
    the reasons. A key with its default value is accepted, since stored (frozen) studies have all defaults written out.
    """
    for key, reason in keys.items():
        defaults = (type(load).model_fields[key].get_default(call_default_factory=True), _FORMER_DEFAULTS.get(key))
        if getattr(load, key) not in defaults:
            yield f"{marks.short_key('load', key)} is not for {workload}: {reason}; remove it"


def sizes(load: LoadKeys) -> list[dict[str, Any]]:
    """Returns the fields of load points that describe their data, one dictionary for each set of data: each scale of
    tables that pgtrial makes, or the name of the user's own data."""
    if not load.data:
        return [{"scale": scale} for scale in load.scale]
    if names_server(load.data[0]):
        parts = parts_of(load.data[0])
        database = parts.get("dbname") or parts.get("service") or "the environment"
        return [{"scale": 1, "data": f"database {database}"}]
    return [{"scale": 1, "data": name_of_data(load.data)}]
