"""The questions that pgtrial asks about the load of a study, whichever kind it is. The answers of the base class are
those of transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, ClassVar, Protocol, TypeVar

from pgtrial.model.metrics import METRICS, RESPONSE, TPS
from pgtrial.model.records.kind import PointKind
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.own_data import NOT_FOR_OWN_DATA
from pgtrial.model.study.servers import Server, names_server, parts_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.tasks import APP_TASKS

_FORMER_DEFAULTS: Mapping[str, object] = {"warmup": 10.0, "duration": 30.0}
"""Defaults of these keys until pgtrial 0.2, which stored studies have written out."""

_FOR_JOBS = 'for jobs alone (workload = "job:FILE.sql"); leave it out'


_Load = TypeVar("_Load", bound=LoadKeys)


class Asked(Protocol):
    """The parts of a study that a kind of load looks at."""

    @property
    def load(self) -> LoadKeys:
        """Returns the load that every arm has to serve."""

    @property
    def arms(self) -> Mapping[str, SetUp]:
        """Returns the arms, of which the first is the baseline."""

    @property
    def scripts(self) -> Mapping[str, str]:
        """Returns the text of each script of the study's own, by its name."""

    @property
    def has_given(self) -> bool:
        """True if an arm is a given server."""

    def resolved(self, arm: str) -> Server:
        """Returns the server of one arm, with the keys that all arms share filled in."""


class OwnEnd(Protocol):
    """The duration of a load that ends when all of it is done."""

    @property
    def expected_s(self) -> float:
        """Returns about how long the load takes, seconds; 0 if that is not known."""

    @property
    def longest_s(self) -> float:
        """Returns the longest time that the load may take, seconds."""


class LoadKind:
    """The load of a study: what it refuses, its load points, and what the plan has to know of it."""

    stored: ClassVar[type[PointKind]]
    """The type of what load points store of the kind. Its `key` is the name by which each floor of the lab finds its
    own part of the kind."""
    why_no_turns: ClassVar[str | None] = None
    """The reason why the trials of the arms cannot take turns; None if nothing in the load prevents it."""
    why_no_fleet: ClassVar[str | None] = None
    """The reason why one machine has to make the load; None if several machines can."""
    why_no_metrics: ClassVar[str | None] = None
    """The reason why a study with this load declares no metrics; None if it may declare some."""
    has_price: ClassVar[bool] = True
    """True if prices of the arms make transactions per cent a metric."""
    fewest_arms: ClassVar[int] = 2
    """The fewest arms that a study with this load may have."""
    is_rehearsed: ClassVar[bool] = True
    """True if a rehearsal runs what the user has written on each arm before the first trial."""
    has_plans: ClassVar[bool] = True
    """True if trials record the plans of the load's statements."""
    has_known_sql: ClassVar[bool] = True
    """True if the load sends the scripts of the study, so that its SQL is known."""
    is_of_the_user: ClassVar[bool] = False
    """True if the load sends statements of the user even if the study has no script."""
    follows_the_arm: ClassVar[bool] = False
    """True if each arm has clients of its own, so that arms differ even on one server."""
    runs_in_batches: ClassVar[bool] = False
    """True if the load runs in batches, each started when the lab asks for it."""
    has_planned_time: ClassVar[bool] = True
    """True if each trial takes the time of its warm-up and its measured part, and nothing more."""
    has_data_of_known_size: ClassVar[bool] = False
    """True if the size of its data is known in bytes, and not by its scale."""
    takes_decimal_scales: ClassVar[bool] = False
    """True if its tables have sizes between whole scales."""
    is_of_queries: ClassVar[bool] = False
    """True if each of its files is a query, which the engine sends as it stands."""
    has_own_limit: ClassVar[bool] = False
    """True if the study limits the time of the load, so that a trial that exceeds the limit gets no further time to
    end."""
    searches_rate: ClassVar[bool] = False
    """True if trials look for a rate, and begin where those of earlier blocks have ended."""
    fewer: ClassVar[str] = "load points"
    """The noun for the parts of the load that a study with a smaller budget must have fewer of, for messages."""

    def is_meant(self, load: LoadKeys) -> bool:
        """True if the workload, or another key, names this kind."""
        return True

    def own_end(self, load: LoadKeys) -> OwnEnd | None:
        """Returns how long a load takes that ends by itself; None: it ends after a time."""
        return None

    def objections(self, load: LoadKeys) -> Iterator[str]:
        """Yields what does not go with this kind of load; for loads of other kinds, the keys that are for this kind
        alone."""
        yield from ()

    def objections_to_data(self, load: LoadKeys) -> Iterator[str]:
        """Yields what does not go with data of the user's own."""
        for workload in (ORDER_ENTRY, APP_TASKS):
            if load.data and workload in load.workload:
                yield f"{workload} has tables of its own; leave data out, or name scripts on your data as workload"
        if load.data:
            yield from misplaced(load, NOT_FOR_OWN_DATA, "data of your own")

    def objection_to_servers(self, study: Asked) -> str | None:
        """Returns what speaks against the load on the servers of a study, a sentence; None: nothing."""
        return None

    def misfit(self, load: LoadKeys, metric: str) -> str | None:
        """Returns why a declared metric does not go with the load, the rest of a sentence; None: it does."""
        if METRICS[metric].kind == "capacity":
            return 'takes a promise; write [load] capacity = { p99 = "20ms" }'
        return f"is {_FOR_JOBS}" if METRICS[metric].is_for_jobs else None

    def metrics(self, load: LoadKeys, declared: list[str]) -> list[str]:
        """Returns the metrics of a study that declares these, which may be none."""
        return list(declared)

    def usual_metric(self, load: LoadKeys) -> str:
        """Returns the metric that says what the load's measure says."""
        return RESPONSE if self.is_paced(load) else TPS

    def is_paced(self, load: LoadKeys) -> bool:
        """True if the number of transactions is given, so that the server's speed does not change it."""
        return bool(load.rate)

    def points(self, study: Asked) -> list[LoadPoint]:
        """Returns the load points of a study."""
        raise NotImplementedError

    def may_do_without_tables(self, study: Asked) -> bool:
        """True if the scale says nothing unless the study sets it, since the load may need no tables of pgbench."""
        return False

    def limited(self, load: _Load, limit_s: float) -> _Load:
        """Returns the load, ended after this time if nothing else ends it, seconds."""
        return load

    def caution(self, study: Asked) -> str | None:
        """Returns what the user should know of the load before the first trial, a sentence; None: nothing."""
        return None

    def scripts_run_once(self, study: Asked) -> list[str]:
        """Returns the scripts that run once in a trial, so that what they make has to be undone before the next."""
        return []

    def has_family(self, load: LoadKeys) -> bool:
        """True if there are claims of the kind's own, beside the primary ones and those on declared metrics."""
        return False

    def parts(self, load: LoadKeys) -> int:
        """Returns how many parts of the load, such as queries, may have a claim each in a comparison."""
        return 0

    def restarts_server(self, load: LoadKeys) -> bool:
        """True if the server is restarted within a trial."""
        return False

    def empties_caches(self, load: LoadKeys) -> bool:
        """True if the kernel's cache of files is emptied within a trial."""
        return False

    def starts_programs(self, load: LoadKeys) -> bool:
        """True if programs of the user's own send the load."""
        return False


def misplaced(load: LoadKeys, keys: Mapping[str, str], workload: str) -> Iterator[str]:
    """Yields objections to keys that do not apply to a workload. Defaults are no objection, since a frozen study has
    them written out."""
    for key, reason in keys.items():
        defaults = (type(load).model_fields[key].get_default(call_default_factory=True), _FORMER_DEFAULTS.get(key))
        if getattr(load, key) not in defaults:
            yield f"{key} is not for {workload}: {reason}; remove it"


def sizes(load: LoadKeys) -> list[dict[str, Any]]:
    """Returns what load points say of their data: the scales of tables that pgtrial makes, or the user's own data."""
    if not load.data:
        return [{"scale": scale} for scale in load.scale]
    if names_server(load.data[0]):
        parts = parts_of(load.data[0])
        database = parts.get("dbname") or parts.get("service") or "the environment"
        return [{"scale": 1, "data": f"database {database}"}]
    return [{"scale": 1, "data": " + ".join(PurePosixPath(path).name for path in load.data)}]
