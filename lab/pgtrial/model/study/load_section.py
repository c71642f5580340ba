"""`[load]` of the study file: what every arm has to serve, and how long a trial of it takes."""

from __future__ import annotations

from pydantic import model_validator

from pgtrial.model.study.kinds import kind_of
from pgtrial.model.study.kinds.kind import LoadKind, OwnEnd
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.load_objections import objections


class LoadSection(LoadKeys):
    """The load of every arm. Lists are crossed into load points."""

    @model_validator(mode="after")
    def _fits_together(self) -> LoadSection:
        for objection in objections(self):
            raise ValueError(objection)
        return self

    @property
    def kind(self) -> LoadKind:
        """The kind of the load, which answers what depends on it."""
        return kind_of(self)

    @property
    def own_end(self) -> OwnEnd | None:
        """How long a load takes that ends when all of it is done; None: it ends after a time."""
        return self.kind.own_end(self)

    @property
    def ends_itself(self) -> bool:
        """True if a trial ends when all of its load is done, and not after a time."""
        return self.own_end is not None

    @property
    def given_s(self) -> tuple[float | None, float | None]:
        """Warm-up and measured part as the study gives them, seconds; None: chosen by pgtrial. 0 with an own end."""
        if self.ends_itself:
            return 0.0, 0.0
        warmup_s, duration_s = (
            length if isinstance(length, float) else None for length in (self.warmup, self.duration)
        )
        return warmup_s, duration_s

    @property
    def chooses_lengths(self) -> bool:
        """Whether pgtrial chooses the warm-up or the measured part by a preliminary block."""
        return self.capacity is None and None in self.given_s

    def timed(self, warmup_s: float, duration_s: float) -> LoadSection:
        """The load of trials of these lengths; one with an own end keeps it."""
        if self.ends_itself:
            return self
        return self.model_copy(update={"warmup": warmup_s, "duration": duration_s})

    @property
    def phases_s(self) -> tuple[float, float]:
        """Warm-up and measured part, seconds; 0 of loads that run to their end. The lengths are known (`timed`)."""
        warmup, duration = self.given_s
        if warmup is None or duration is None:
            raise ValueError("the lengths of this load are not chosen yet")
        return warmup, duration

    @property
    def expected_s(self) -> float:
        """About how long the load takes, seconds."""
        own_end = self.own_end
        return own_end.expected_s if own_end is not None else sum(self.phases_s)

    @property
    def longest_s(self) -> float:
        """What the load may take at most, seconds, besides connecting and its last transactions."""
        own_end = self.own_end
        return own_end.longest_s if own_end is not None else sum(self.phases_s)
