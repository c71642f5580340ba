"""Samples a server a few times per second while it serves a load, with a session and a thread of the lab's own.

The sampler never makes a trial fail: an error ends the sampler and leaves a note, and the load goes on. The CPU time
that the sampler uses on the observed machine is measured and limited to a share of one CPU.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pgtrial.evidence.observe.host import HostSampler
from pgtrial.evidence.observe.linux import client_cpu
from pgtrial.evidence.observe.system import Reading, Snapshot, per_second
from pgtrial.evidence.observe.views import GAUGES, Doings, Views, mean_waits, read_waits, statement_gains
from pgtrial.loads.target import Session, is_pooled
from pgtrial.machines.interrupt import held_off
from pgtrial.machines.machine import HostTrouble
from pgtrial.machines.windows import AnyMachine
from pgtrial.model.errors import one_line
from pgtrial.store.tables import OBSERVED_SCHEMA

WAITS_EVERY_S = 0.5
COUNTERS_EVERY = 2
"""The number of samples of pg_stat_activity for each reading of the counters."""

MOST_SHARE = 0.01
"""The largest share of one CPU that the sampler may use. After an expensive sample, the sampler waits longer for the
next one."""

_JITTER = 0.4
"""The share of an interval between two samples by which its length varies at random. With fixed intervals, samples
could fall into step with the server's own processes, or with a load at a given rate."""

_STATEMENT_TIMEOUT = "SET statement_timeout = '5s'"
_PATIENCE_S = 6.0
"""The longest time, in seconds, that pgtrial waits for the sampler when a load has ended. It is longer than the time
limit of the sampler's statements, so that the last one has ended by then."""


@dataclass(frozen=True)
class Observation:
    """The samples of one load, in the columns of WAITS_SCHEMA and OBSERVED_SCHEMA, with notes and the cost of the
    sampling.

    `cost` covers the measured phase: samples (their number), transactions (those of the sampler itself), lab_cpu_s,
    statements_s (the time that the sampler's statements took), and server_cpu_s if the server's host can be observed.
    """

    waits: pl.DataFrame
    observed: pl.DataFrame
    notes: list[str]
    cost: dict[str, float]


@dataclass(frozen=True)
class OwnTime:
    """The slices of time in which one of several alternating loads was active, while the other loads paused. All times
    are those of time.monotonic()."""

    measured_since: float
    """The time (time.monotonic()) at which the measured phase of all these loads begins."""
    slices: Sequence[tuple[float, float]]
    """The begin and the end of each slice of this load."""

    def holds(self, began: float, ended: float) -> bool:
        """True if a sample that began and ended at these times lies completely within one of the slices of this load,
        so that no other load was active meanwhile."""
        return any(first <= began and ended <= last for first, last in self.slices)


def waits_of(
    looks: Iterable[tuple[float, float, Doings]], since: float, duration_s: float, own: OwnTime | None = None
) -> pl.DataFrame:
    """Returns, for each second, counted from `since`, the number of sessions by backend type, wait event and state, as
    the mean over the samples that began in this second. Seconds before `since` are negative.

    Each element of `looks` is a sample: the times at which it began and ended, on the clock of time.monotonic(), and
    the sessions that it found. With `own`, samples outside of the load's slices are ignored.
    """
    return mean_waits(
        [
            (began - since, doings)
            for began, ended, doings in looks
            if began - since < duration_s and (own is None or own.holds(began, ended))
        ]
    )


class Sampler:
    """A context manager that samples a server during a load. It connects before the load begins, since a new connection
    disturbs the server for a moment.

    `machine` is the server's host, if it can be observed; `data_directory` is that of the server, if pgtrial started
    the server; `known` has the texts of the load's statements without values, if only their counters may be read (see
    `Views`); `alone` is true if the study loads no other server on this host at the same time.
    """

    def __init__(
        self,
        connect: Callable[[], Session],
        machine: AnyMachine | None,
        data_directory: Path | None,
        *,
        alone: bool = True,
        known: Collection[str] | None = None,
    ):
        self._alone = alone
        self._known = known
        self._connect = connect
        self._machine = machine
        self._data_directory = data_directory
        self._engine: int | None = None
        self._host: HostSampler | None = None
        self._session: Session | None = None
        self._measured_since: float | None = None
        self._notes: list[str] = []
        self._sessions: list[tuple[float, float, Doings]] = []
        """The samples of pg_stat_activity: the times at which each began and ended, and the sessions that it found."""
        self._readings: list[Reading] = []
        self._statements: dict[str, float] = {}
        self._looks: list[tuple[float, dict[str, float]]] = []
        """For each sample, the time at which it began (time.monotonic()) and its cost, under the keys of
        Observation.cost."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        try:
            self._session = self._connect()
        except Exception as error:  # noqa: BLE001  (a trial does not fail because it cannot be watched)
            self._end(error)
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
            if self._thread.is_alive():
                self._note("the sampler did not come back from its last statement")
        elif self._session is not None:
            self._session.close()

    def load_begins(self, engine: int | None) -> None:
        """Starts sampling, since the load begins now. `engine` is the process id of the load engine, if it runs on this
        machine; its CPU time is then sampled too."""
        if self._session is None:
            return
        self._engine = engine
        with held_off():
            self._thread = threading.Thread(target=self._run, args=(self._session,), name="sampler", daemon=True)
            self._thread.start()

    def measure_begins(self) -> None:
        """Notes that the measured phase begins now, as second 0 of the samples."""
        self._measured_since = time.monotonic()

    def seen(self, duration_s: float, own: OwnTime | None = None) -> Observation:
        """Returns the samples until the scheduled end of the measured phase; those of the warm-up have negative
        seconds. Returns no samples if the measured phase never began.

        `own` has the slices of a load that alternates with others. Samples of sessions that were not taken within these
        slices are ignored.
        """
        since = self._measured_since
        if since is None:
            return Observation(mean_waits([]), per_second([]), list(self._notes), {})
        since = own.measured_since if own is not None else since
        waits = waits_of(self._sessions, since, duration_s, own)
        rates = per_second(
            [Reading(r.moment - since, r.counters, r.gauges) for r in self._readings if r.moment - since < duration_s]
        )
        whole = [(None, "pg_stat_statements", name, value) for name, value in self._statements.items()]
        observed = pl.concat([rates, pl.DataFrame(whole, schema=OBSERVED_SCHEMA, orient="row")])
        looks = [spent for began, spent in self._looks if 0 <= began - since < duration_s]
        # a short measured phase may be over before the next sample
        names = self._looks[0][1] if self._looks else ("samples", "transactions", "lab_cpu_s", "statements_s")
        cost = {name: sum((look[name] for look in looks), 0.0) for name in names}
        return Observation(waits, observed, list(self._notes), cost)

    def _run(self, session: Session) -> None:
        try:
            with session:
                if not is_pooled(session):  # a pooler would keep these settings for other clients
                    session.prepare_threshold = 0
                    session.execute(_STATEMENT_TIMEOUT)
                if self._machine is not None:
                    self._host = HostSampler(self._machine, self._data_directory, session, alone=self._alone)
                self._watch(session)
        except Exception as error:  # noqa: BLE001  (a trial does not fail because it was watched)
            self._end(error)

    def _end(self, error: Exception) -> None:
        self._note(f"the sampler ended early: {one_line(error)}")

    def _watch(self, session: Session) -> None:
        views = Views(session, self._known)
        for name in views.refused:
            self._note(f"not observed: {name}, which the role may not read (grant pg_read_all_stats)")
        for name, since in views.lacking.items():
            self._note(f"not observed: {name}, which PostgreSQL has from {since} on")
        statements = views.statements()
        meter = _Meter(self._host)
        for number in itertools.count():
            began = time.monotonic()
            doings, hidden = read_waits(session)
            self._sessions.append((began, time.monotonic(), doings))
            if hidden:
                self._note("not observed: sessions of others, which the role may not see (grant pg_read_all_stats)")
            counted = number % COUNTERS_EVERY == 0
            if counted:
                self._read_counters(views)
            took = meter.look(began, 1 + counted)
            self._looks.append((began, took))
            paced = self._host is not None and self._host.system.limits_itself
            spent = took["lab_cpu_s"] + (0.0 if paced else took.get("server_cpu_s", 0.0))
            pause = WAITS_EVERY_S * random.uniform(1 - _JITTER, 1 + _JITTER)
            if self._over.wait(max(pause - (time.monotonic() - began), spent / MOST_SHARE)):
                break
        self._statements = statement_gains(statements, views.statements())

    def _read_counters(self, views: Views) -> None:
        counters = views.read()
        moment = time.monotonic()
        host = self._look_at_host()
        gauges = {source: counters.pop(source) for source in GAUGES & counters.keys()} | host.gauges
        counters |= host.counters
        client = None if self._engine is None else client_cpu(self._engine)
        if client is not None and host.counters:
            counters["processes"] = {**host.counters.get("processes", {}), "client_cpu_s": client}
        self._readings.append(Reading(moment, counters, gauges))

    def _look_at_host(self) -> Snapshot:
        """Reads the host's counters. If the host is not reachable, a note says so and the host is not read again; the
        views of the server are still read."""
        if self._host is None:
            return Snapshot()
        try:
            snapshot = self._host.look()
        except HostTrouble as error:
            self._note(f"the server's host was not observed to the end: {error}")
            self._host = None
            return Snapshot()
        if snapshot.unsupported is not None:
            self._note(f"not observed: the server's host, which runs {snapshot.unsupported}")
            self._host = None
        return snapshot

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


class _Meter:
    """Measures the cost of sampling: the CPU time of the sampler's thread and, if the server's host can be observed,
    the CPU time on that host."""

    def __init__(self, host: HostSampler | None):
        self._host = host
        self._taken = self._cpu()

    def look(self, began: float, transactions: int) -> dict[str, float]:
        """Returns the cost of sampling since the last call of this method, with the keys of Observation.cost. `began`
        is the time at which the sample began that has just ended, and `transactions` the number of its transactions."""
        ended, before, self._taken = time.monotonic(), self._taken, self._cpu()
        spent = {name: taken - before[name] for name, taken in self._taken.items()}
        statements_s = max(0.0, ended - began - spent["lab_cpu_s"])
        counts = {"samples": 1.0, "transactions": float(transactions), "lab_cpu_s": 0.0, "statements_s": statements_s}
        return counts | spent

    def _cpu(self) -> dict[str, float]:
        """Returns the CPU seconds that sampling has used so far: `lab_cpu_s` in this thread and, if the server's host
        can be observed, `server_cpu_s` on that host."""
        server = {} if self._host is None else {"server_cpu_s": self._host.cpu_taken_s()}
        return {"lab_cpu_s": time.thread_time(), **server}
