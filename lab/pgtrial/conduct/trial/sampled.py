"""Chooses how the server and the host of a trial are sampled during the load, and which of the samples belong to it."""

from __future__ import annotations

from typing import Self

from pgtrial.conduct.trial.load_statements import known_statements
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.evidence.observe.sampler import Observation, OwnTime, Sampler
from pgtrial.loads.target import Target
from pgtrial.model.study.servers import Given


class NotWatching:
    """Replaces the sampler in a trial that is not observed, and does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Ends nothing."""

    def load_begins(self, engine: int | None) -> None:
        """Ignores the start of the load, since nothing is sampled."""

    def measure_begins(self) -> None:
        """Ignores the start of the measured part, since nothing is sampled."""


Watching = Sampler | NotWatching


def sampler_for(order: TrialOrder, target: Target) -> Watching:
    """Returns the sampler for a trial. It is a context manager, which samples the server and its host between
    `load_begins` and the end of the context."""
    load, arm = order.load, order.arm
    if not load.observe or order.shared_server or load.kind.restarts_server(load):
        return NotWatching()
    known = known_statements(order.point, order.script) if isinstance(arm.setup, Given) else None
    return Sampler(target.connect, arm.machine, arm.data_directory, alone=order.turn.of == 1, known=known)


def seen_in(order: TrialOrder, watching: Watching, outcome: Outcome, begin: float | None) -> Observation | None:
    """Returns what the sampler has seen of a load that has ended; None if the trial is not observed.

    `begin` is the time at which all loads that alternate with this one began, by time.monotonic(). It is None if the
    load did not alternate with others.
    """
    if isinstance(watching, NotWatching):
        return None
    return watching.seen(_measured_s(order, outcome), _own_time(order, outcome, begin))


def _own_time(order: TrialOrder, outcome: Outcome, begin: float | None) -> OwnTime | None:
    """Returns the slices in which this load was active; None if it did not alternate with other loads."""
    if begin is None:
        return None
    slices = [tick["slice"] for tick in outcome.ticks]
    return OwnTime(
        begin + order.turn.wall_s(order.load.phases_s[0]),
        [(begin + one["planned_begin_s"], begin + one["planned_end_s"]) for one in slices],
    )


def _measured_s(order: TrialOrder, outcome: Outcome) -> float:
    """Returns the length of the measured part in seconds: as planned or, for a load that ends by itself, as
    measured."""
    if not order.load.ends_itself:
        return order.turn.wall_s(order.load.phases_s[1])
    measured = outcome.measured
    return measured.duration_s if measured else order.load.longest_s
