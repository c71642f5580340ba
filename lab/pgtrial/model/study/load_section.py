"""The section `[load]` of the study file: the load that every arm has to serve, and how long a trial takes."""

from __future__ import annotations

from pydantic import model_validator

from pgtrial.model.study.kinds import kind_of
from pgtrial.model.study.kinds.kind import LoadKind, OwnEnd
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.load_objections import objections


class LoadSection(LoadKeys):
    """The load, which is the same for all arms. Each combination of a workload, a scale, a number of clients and a rate
    is a load point, at which every arm is measured.
    """

    @model_validator(mode="after")
    def _fits_together(self) -> LoadSection:
        for objection in objections(self):
            raise ValueError(objection)
        return self

    @property
    def kind(self) -> LoadKind:
        """Returns the kind of the load. It has all properties and rules that differ between kinds."""
        return kind_of(self)

    @property
    def own_end(self) -> OwnEnd | None:
        """Returns the durations of a load that ends when all of its work is done; None if the load ends after a given
        time."""
        return self.kind.own_end(self)

    @property
    def ends_itself(self) -> bool:
        """True if a trial ends when all of its load is done, and not after a given time."""
        return self.own_end is not None

    @property
    def given_s(self) -> tuple[float | None, float | None]:
        """Returns the lengths of the warm-up and of the measured part as the study gives them, in seconds. A length is
        None if pgtrial chooses it. Both are 0 if the load ends when all of its work is done."""
        if self.ends_itself:
            return 0.0, 0.0
        warmup_s, duration_s = (
            length if isinstance(length, float) else None for length in (self.warmup, self.duration)
        )
        return warmup_s, duration_s

    @property
    def chooses_lengths(self) -> bool:
        """True if pgtrial chooses the length of the warm-up or of the measured part, by means of a preliminary block
        that runs before the first one."""
        return self.capacity is None and None in self.given_s

    def timed(self, warmup_s: float, duration_s: float) -> LoadSection:
        """Returns the load with these lengths of the warm-up and the measured part; unchanged if the load ends when all
        of its work is done."""
        if self.ends_itself:
            return self
        return self.model_copy(update={"warmup": warmup_s, "duration": duration_s})

    @property
    def phases_s(self) -> tuple[float, float]:
        """Returns the lengths of the warm-up and of the measured part, in seconds; both are 0 if the load ends when all
        of its work is done. Raises ValueError if pgtrial has not chosen the lengths yet (see `timed`)."""
        warmup, duration = self.given_s
        if warmup is None or duration is None:
            raise ValueError("pgtrial has not chosen the lengths of this load's trials yet")
        return warmup, duration

    @property
    def expected_s(self) -> float:
        """Returns the approximate time that the load takes, in seconds."""
        own_end = self.own_end
        return own_end.expected_s if own_end is not None else sum(self.phases_s)

    @property
    def longest_s(self) -> float:
        """Returns the longest time that the load may take, in seconds. It does not include the time for connecting, and
        for the last transactions to end."""
        own_end = self.own_end
        return own_end.longest_s if own_end is not None else sum(self.phases_s)
