"""Makes the results of a trial from the events of its load: the phases, the timeline, and whether and why the trial
failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import polars as pl

from pgtrial.conduct.trial.ticks import POINTS, by_second, slice_row, summary_of, timeline_row
from pgtrial.loads.engine import PHASES, summary_s, tick_s
from pgtrial.loads.events import Done, Error, Event, Query, Summary, Tick
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.latencies import Latencies
from pgtrial.model.records import Record
from pgtrial.model.records.replay import ReplaySummary, StatementTimes
from pgtrial.model.records.suite import QueryAnswer, QueryResult, SuiteSummary
from pgtrial.model.records.trial import (
    ClientUse,
    FailureSpan,
    Latency,
    Percentiles,
    Phase,
    ServiceTime,
    TaskSummary,
    TaskTimes,
    TransactionKind,
)
from pgtrial.store.tables import SLICES_SCHEMA, TIMELINE_SCHEMA

_R = TypeVar("_R", bound=Record)

_LONGEST_CAUSE = 300
"""The longest cause of a failure that a sentence quotes, in characters."""
_WHOLE_SECOND = 0.9
_LATE = 0.25
"""The share of a slice's length by which its last transactions may end after the slice's planned end. A slice whose
transactions end later counts as late."""


class Outcome:
    """Collects the events of a load as they arrive. Does not know the arm, so that the rules by which a trial has
    failed are the same for all arms."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.done: Done | None = None
        """The last event of the load, which has its results; None if the load ended without it."""
        self.first_error: str | None = None
        self.refused: Error | None = None
        """The event of the first statement that the server refused."""
        self.failed_after_s: list[float] = []
        self.clients = 0
        self.scripts: list[str] = []
        """The descriptions of the load's scripts or queries."""
        self.begun = False
        self.program: str | None = None
        """The name and version that a client program reports about itself."""
        self.queries: dict[str, list[Query]] = {}
        """The measured runs of each query of a suite, by the query's name."""
        self.query_limit_s: float | None = None
        """The time limit of a suite's queries, in seconds; None for other loads."""
        self.slice_s: float | None = None
        """The length of a slice, in seconds; None for a load that does not alternate with others."""

    def add(self, event: Event) -> None:
        """Adds one event. Unknown events are ignored, as the protocol of the engine's events requires."""
        self.begun = self.begun or event["event"] != "lost"
        if event["event"] == "tick":
            if event["phase"] in PHASES:
                self.ticks.append(event)
        elif event["event"] == "hello":
            plan = event.get("plan", {})
            self.slice_s = plan["slices"]["length_s"] if "slices" in plan else None
            self.scripts = plan.get("scripts", [])
            self.program = event.get("program")
            self.query_limit_s = plan["suite"]["limit_s"] if "suite" in plan else None
        elif event["event"] == "query":
            if event["phase"] == "measure":
                self.queries.setdefault(event["query"], []).append(event)
        elif event["event"] == "connected":
            self.clients = int(event["clients"])
        elif event["event"] == "error":
            where = f"{event['machine']}: " if "machine" in event else ""
            self.first_error = self.first_error or where + str(event.get("message", "unknown error"))
            if self.refused is None and event.get("kind") == "statement":
                self.refused = event
        elif event["event"] == "task":
            self.failed_after_s.append(float(event["waited_s"]) + float(event["served_s"]))
        elif event["event"] == "done":
            self.done = event

    def failure(self, status: int, last_words: str, maker: str = "the engine") -> str | None:
        """Returns the reason why the trial failed, as one sentence; None if it did not fail. `status` and `last_words`
        are the exit status and the last output of the program that made the load, and `maker` is a name for this
        program."""
        if self.done is None:
            return f"{maker} ended before its report: {last_words}"
        cause = " ".join((self.first_error or last_words).split())[:_LONGEST_CAUSE]
        if self.aborted_clients:
            return f"{self.aborted_clients} of {self.clients or 'the'} clients were cut off: {cause}"
        if status != 0:
            return f"{maker} ended with status {status}: {cause}"
        if self.done.get("interrupted"):
            return f"{maker} was interrupted by something other than the lab"
        measured = self.measured
        if self.query_limit_s is not None and (measured is None or measured.transactions == 0):
            return f"every query failed: {cause}" if not self.queries else f"every query failed: {self._first_refusal}"
        return _nothing_done(self.tasks) if measured is None or measured.transactions == 0 else None

    @property
    def warmup(self) -> Phase | None:
        """The results of the warm-up: the engine's own summary or, if the load ended early, the sum of its ticks."""
        return self._phase("warmup")

    @property
    def measured(self) -> Phase | None:
        """The results of the measured part: the engine's own summary or, if the load ended early, the sum of its
        ticks."""
        return self._phase("measure")

    @property
    def failure_spans(self) -> list[FailureSpan]:
        """For each phase and each kind of failure, the first and the last second in which it occurred, and the number
        of failures."""
        seconds: dict[tuple[Any, str], list[tuple[int, int]]] = {}
        for tick in self.ticks:
            for kind, failures in tick.get("failures", {}).items():
                seconds.setdefault((tick["phase"], kind), []).append((tick["second"], failures))
        return [
            FailureSpan(
                phase=phase,
                kind=kind,
                first_s=of_kind[0][0],
                last_s=of_kind[-1][0],
                failures=sum(number for _, number in of_kind),
            )
            for (phase, kind), of_kind in seconds.items()
        ]

    @property
    def tasks(self) -> TaskSummary | None:
        """The counts and times of the tasks; None for a load without tasks."""
        done = self.done
        summary, measured = (done.get("tasks"), done.get("measure")) if done is not None else (None, None)
        if not summary or not measured:
            return None
        after = self.failed_after_s
        times = {
            "response_us": _times(summary["response_us"], measured.get("latency_us")),
            "queue_us": _times(summary["queue_us"], measured.get("queue_us")),
            "service_us": _times(summary["service_us"], measured.get("service_us")),
            "timeout_waited_us": _times(summary["timeout_waited_us"], None),
            "failed_after_us": 1e6 * sum(after) / len(after) if after else None,
        }
        return TaskSummary.model_validate({**summary, **times}, extra="ignore")

    @property
    def kinds(self) -> list[TransactionKind]:
        """The results of each script if the load has several scripts; an empty list for a load with one script."""
        scripts = self.done.get("scripts", []) if self.done is not None else []
        return [
            TransactionKind(
                name=name,
                transactions=script["transactions"],
                failures=script.get("failures", {}),
                latency_us=_percentiles(Latency, script.get("latency_us")),
            )
            for name, script in zip(self.scripts, scripts, strict=False)
        ]

    @property
    def replay(self) -> ReplaySummary | None:
        """The results of the statements of a replay; None for any other load."""
        statements = self.done.get("replay") if self.done is not None else None
        if not statements:
            return None
        beyond = statements.get("other_templates")
        others = beyond["statements"] if beyond else 0
        templates = [
            {
                **template,
                "failures": template["unexpected_failures"],
                "missing": sum(template["missing_failures"].values()),
                "expected": template["expected_failures"],
                "time_us": _percentiles(StatementTimes, template["time_us"]),
            }
            for template in statements["templates"]
        ]
        return ReplaySummary.model_validate({**statements, "templates": templates, "others": others}, extra="ignore")

    @property
    def suite(self) -> SuiteSummary | None:
        """The results of the queries of a suite; None for any other load."""
        if self.query_limit_s is None or self.done is None:
            return None
        results = [_query_result(name, self.queries.get(name, [])) for name in self.scripts]
        return SuiteSummary(queries=results, limit_s=self.query_limit_s)

    @property
    def _first_refusal(self) -> str:
        """The message of the first error that a query of the suite had; empty if there was no error."""
        runs = (run for of_query in self.queries.values() for run in of_query)
        return next((" ".join(run["message"].split()) for run in runs if run["message"]), "")

    @property
    def aborted_clients(self) -> int:
        """The number of clients that could not continue, for example because their connection was lost."""
        return int(self.done.get("clients_aborted", 0)) if self.done is not None else 0

    @property
    def client(self) -> ClientUse | None:
        """The resources that the engine has used, and its warnings about itself. Raises StudyError if the engine is too
        old to report them."""
        use = self.done.get("client") if self.done is not None else None
        if not use:
            return None
        try:
            return ClientUse.model_validate({name: use[name] for name in ClientUse.model_fields}, extra="ignore")
        except KeyError as missing:
            raise StudyError(
                f"the engine's last event has no field {missing}; install the engine and the lab from the same "
                "pgtrial release"
            ) from None

    @property
    def histogram(self) -> str | None:
        """The histogram of the response times in the measured part, as an HdrHistogram V2 in base64; None if there is
        none."""
        measured = self._summary("measure")
        return measured.get("histogram") if measured else None

    def tps_of(self, tick: Tick) -> float:
        """Returns the committed transactions per second of a tick."""
        seconds = tick_s(tick, self.clients)
        return float(tick["transactions"] / seconds) if seconds else 0.0

    def speeds(self, *, paced: bool) -> list[float]:
        """Returns the speed in each slice or whole second from the start of the load. The speed is the number of
        transactions per second or, with `paced` (a load with a rate), the reciprocal of the mean response time.

        With `paced`, a slice or second without a transaction gets the speed of the previous one. At the start it gets
        the speed of the first slice or second with a transaction.
        """
        ticks = [tick for tick in self.ticks if "slice" in tick or tick.get("seconds", 1.0) >= _WHOLE_SECOND]
        if not paced:
            return [self.tps_of(tick) for tick in ticks]
        means = [(tick.get("latency_us") or {}).get("mean") for tick in ticks]
        speed = next((1e6 / mean for mean in means if mean), 0.0)
        return [speed := 1e6 / mean if mean else speed for mean in means]

    def timeline(self) -> pl.DataFrame:
        """Returns a table with one row for each whole second. The time after the last whole second is only in the
        summaries.

        For a load that alternates with others, a second is made of slices of this load that together last a second.
        """
        if self.slice_s is not None:
            seconds = list(by_second(self.ticks, self.clients, self.slice_s))
        else:
            seconds = [tick for tick in self.ticks if tick.get("seconds", 1.0) >= _WHOLE_SECOND]
        return pl.DataFrame([timeline_row(tick) for tick in seconds], schema=TIMELINE_SCHEMA, orient="row")

    def slices(self) -> pl.DataFrame:
        """Returns a table with one row for each slice."""
        return pl.DataFrame([slice_row(tick) for tick in self.ticks], schema=SLICES_SCHEMA, orient="row")

    def overrun(self) -> str | None:
        """Returns a sentence for the user if most slices ended late by more than a quarter of their length; otherwise
        None."""
        if self.slice_s is None:
            return None
        ends = [(tick["slice"]["end_s"], tick["slice"]["planned_end_s"]) for tick in self.ticks]
        late = sum(end is not None and end - planned > _LATE * self.slice_s for end, planned in ends)
        if 2 * late <= len(ends):
            return None
        return (
            f"{late} of {len(ends)} slices ended late by more than a quarter, since transactions are long; "
            f'write {marks.key("load", "interleave", f"{4 * self.slice_s:g}s")}, or "off"'
        )

    def _phase(self, name: Literal["warmup", "measure"]) -> Phase | None:
        summary = self._summary(name)
        if not summary:
            return None
        seconds = summary_s(summary, self.clients)
        return Phase(
            duration_s=seconds,
            transactions=summary["transactions"],
            failures=summary.get("failures", {}),
            tps=summary["tps"] * summary["duration_s"] / seconds if seconds else 0.0,
            latency_us=_percentiles(Latency, summary.get("latency_us")),
            service_us=_percentiles(ServiceTime, summary.get("service_us")),
            with_failures_us=_with_failures(summary) if name == "measure" else None,
            retries=summary.get("retries", 0),
            statement_errors=summary["queries"]["errors"] if "queries" in summary else None,
        )

    def _summary(self, phase: Literal["warmup", "measure"]) -> Summary | None:
        if self.done is not None:
            return self.done.get(phase)
        return summary_of([tick for tick in self.ticks if tick["phase"] == phase], self.clients)


def _percentiles(kind: type[_R], figures: Mapping[str, Any] | None) -> _R | None:
    """Returns the statistics of a histogram as a record of the type `kind`; None if the histogram has no transactions
    or no percentiles."""
    if not figures or "p50" not in figures:
        return None
    return kind.model_validate({**figures, "p999": figures.get("p99.9")}, extra="ignore")


def _with_failures(summary: Summary) -> Percentiles | None:
    """Returns the percentiles of all transactions of a summary, in which failed transactions count as slower than all
    others. Returns None if no transaction failed, or if there is no histogram."""
    failed, histogram = sum(summary.get("failures", {}).values()), summary.get("histogram")
    if not failed or not histogram:
        return None
    latencies = Latencies.read(histogram)
    at = {name: latencies.percentile_of(percent, latencies.total + failed) for name, percent in POINTS.items()}
    return Percentiles.model_validate({name.replace(".", ""): value for name, value in at.items()})


def _query_result(name: str, runs: Sequence[Query]) -> QueryResult:
    """Returns the result of a query (times, failures and answers) from its measured runs."""
    failed = Counter(run["sqlstate"] for run in runs if run["sqlstate"] is not None)
    answered = [run for run in runs if run["time_us"] is not None and not run["over_limit"]]
    answers = dict.fromkeys((run["rows"], run["rows_hash"]) for run in answered)
    return QueryResult(
        query=name,
        times_us=[run["time_us"] for run in runs if run["time_us"] is not None],
        over_limit=sum(run["over_limit"] for run in runs),
        failures=dict(failed),
        message=next((run["message"] for run in runs if run["message"] is not None), None),
        answers=[QueryAnswer(rows=rows, rows_hash=rows_hash) for rows, rows_hash in answers],
    )


def _times(extent: Mapping[str, Any] | None, percentiles: Mapping[str, Any] | None) -> TaskTimes | None:
    """Returns the times of tasks: mean, smallest and largest value from `extent`, and percentiles from the histogram.
    The median of `extent`, which is exact, replaces that of the histogram."""
    if extent is None:
        return None
    near = percentiles or {}
    return TaskTimes.model_validate({"median": near.get("p50"), "p95": near.get("p95"), **extent}, extra="ignore")


def _nothing_done(tasks: TaskSummary | None) -> str:
    if tasks is None:
        return "not one transaction was committed in the measured part"
    kinds = ", ".join(f"{kind}: {number:,}" for kind, number in tasks.failures.items())
    return f"not one of {tasks.planned:,} tasks was completed ({kinds or 'none ended'})"
