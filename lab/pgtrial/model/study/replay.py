"""The workload replay:DIRECTORY: the recorded sessions of a capture, on data that pgtrial restores from a dump."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.records.replay import ReplayFiles
from pgtrial.model.units import Share, Whole, as_arguments

REPLAY = "replay:"
"""The prefix of the name of a workload that is a replay. The path of the capture follows the prefix."""

NOT_FOR_REPLAYS = {
    "scale": "its data are those of replay.data",
    "clients": "its sessions are those of the capture; replay.max_connections limits how many are open at once",
    "rate": "its statements have recorded times, which replay.speed changes",
    "warmup": "all its statements count",
    "duration": "it ends when the sessions have ended; replay.sample draws some of them",
    "protocol": "each statement is sent as it was recorded",
    "fillfactor": "its tables are those of replay.data",
    "foreign_keys": "its tables are those of replay.data",
    "max_tries": "a session goes on as it was recorded",
    "latency_limit": "a session goes on as it was recorded",
    "on_server_loss": "a session whose connection breaks is over",
}
"""The keys of `[load]` that do not apply to a replay, each with the reason."""

MOST_STATEMENTS = 16
"""The largest number of templates (statements of a replay that differ only in their values) that have a claim of their
own in a comparison. So many claims can be decided after 12 blocks."""

_PATIENCE = 4
"""A replay fails if it takes longer than this many times the expected time plus `_PATIENCE_S` seconds."""
_PATIENCE_S = 600.0


AsFastAsPossible = Literal["as-fast-as-possible"]
AS_FAST_AS_POSSIBLE: AsFastAsPossible = "as-fast-as-possible"

_HIGHEST_SPEED = 1e6
"""The highest speed that the load engine accepts. The lowest speed is 1 divided by it."""


def _known_speed(speed: Any) -> Any:
    if isinstance(speed, int | float) and not isinstance(speed, bool):
        speed = float(speed)
    is_number = isinstance(speed, float) and 1 / _HIGHEST_SPEED <= speed <= _HIGHEST_SPEED
    if not is_number and speed != AS_FAST_AS_POSSIBLE:
        raise ValueError(
            f'{quoted(speed)} is not a speed; write a number, 1 for the recorded times, or "{AS_FAST_AS_POSSIBLE}"'
        )
    return speed


class ReplaySection(Record):
    """The load `workload = "replay:DIRECTORY"`: a [replay](replay.md#in-a-study) of recorded sessions. A trial is one
    replay on a fresh copy of `data`. The keys of `[load]` for times, clients, scale, rate, protocol, tries and tables
    are refused.
    """

    data: str | None = Field(
        None,
        description="The path of a dump by `pg_dump`, in any format, of the data at the moment when the capture "
        "began. It is relative to the study file.",
    )
    speed: Annotated[AsFastAsPossible | float, BeforeValidator(_known_speed)] = Field(
        1.0,
        description="The number by which the recorded times are divided: 2 replays twice as fast. The verdict is "
        'about the mean response time. `"as-fast-as-possible"`: statements follow each other without '
        "pauses, and the verdict is about statements per second.",
    )
    sample: Share = Field(
        1.0,
        gt=0,
        le=1,
        description="The share of the recorded sessions that is replayed. Each block draws its own sessions, the "
        "same ones for all arms.",
    )
    copies: Whole = Field(1, ge=1, le=10_000, description="How many copies of each recorded session run.")
    max_connections: Whole | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="The largest number of connections that are open at the same time; further sessions wait. "
        "Default: as many as were open in the capture.",
    )
    hash_results: bool = Field(
        False,
        description="True to compare the values of the results between arms, and not only the numbers of rows. "
        "It costs CPU time of the client.",
    )
    files: ReplayFiles | None = Field(
        None,
        description="pgtrial writes this key into the study file that it stores in the study directory: the "
        "checksums of the capture and the dump.",
    )

    @property
    def factor(self) -> float | None:
        """Returns the number by which the recorded times are divided; None if the replay runs as fast as possible."""
        return self.speed if isinstance(self.speed, float) else None

    @property
    def expected_s(self) -> float:
        """Returns the approximate time that a replay takes, in seconds. A replay as fast as possible counts with the
        recorded time, which is the longest to expect."""
        return self.files.recorded_s / (self.factor or 1.0) if self.files is not None else 0.0

    @property
    def longest_s(self) -> float:
        """Returns the time in seconds after which a replay has failed."""
        return _PATIENCE * self.expected_s + _PATIENCE_S

    def arguments(self) -> list[str]:
        """Returns the options of the load engine for the replay."""
        pace = ["--as-fast-as-possible"] if self.factor is None else [f"--speed={self.factor:.10g}"]
        asked = {"sample": f"{self.sample * 100:.10g}", "copies": self.copies, "max-connections": self.max_connections}
        return [*pace, *as_arguments(asked), *(["--hash-results"] if self.hash_results else [])]


def is_replay(workload: str) -> bool:
    """True if a workload is a replay."""
    return workload.startswith(REPLAY)
