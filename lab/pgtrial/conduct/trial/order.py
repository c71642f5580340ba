"""The order for a trial: everything that is known before it begins. It does not change while the trial runs; what the
trial finds is in `results.py`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pgtrial.conduct.progress import Listener
from pgtrial.conduct.trial.load_statements import FindStatements
from pgtrial.loads.data.data import Data
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.programs.rounds import Rounds
from pgtrial.loads.sql_files import SqlFiles
from pgtrial.loads.turns import ALONE, Turn
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.own_metrics import MetricSection
from pgtrial.servers.arm import Arm


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Beginning:
    """The moment at which a trial began."""

    wall_clock: str = field(default_factory=_now)
    """The time by the wall clock, in UTC, in the format of ISO 8601 with milliseconds."""
    monotonic_s: float = field(default_factory=time.monotonic)
    """The time by time.monotonic()."""

    @property
    def under_way_s(self) -> float:
        """The time in seconds that has passed since the trial began."""
        return time.monotonic() - self.monotonic_s

    @property
    def present(self) -> str:
        """The present time in UTC, computed as the beginning of the trial plus the time since then by the monotonic
        clock.

        The wall clock itself is not used: it may have been set in the meantime, or the machine may have slept, and
        neither is time that the trial took.
        """
        present = datetime.fromisoformat(self.wall_clock) + timedelta(seconds=self.under_way_s)
        return present.isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class TrialOrder:
    """The order for a trial. Several trials that run at the same time have an order each."""

    planned: PlannedTrial
    arm: Arm
    load: LoadSection
    """The load, with the lengths of this trial."""
    point: LoadPoint
    data: Data
    directory: Path
    """The directory of the trial, which has a temporary name until the trial is stored."""
    script: Path | None
    """The script file of the load if the study has its own, or the folder of a pack."""
    listener: Listener
    maker: LoadMaker
    beginning: Beginning = field(default_factory=Beginning)
    turn: Turn = ALONE
    shared_server: bool = False
    """True if all arms are sessions of one server. The server's counters then count the load of all arms together."""
    beside_script: Path | None = None
    """The file of the study's own script that runs at the same time as a job."""
    pack: SqlFiles | None = None
    """The files of the workload, if it is a pack."""
    values: Mapping[str, Path] = field(default_factory=dict)
    """The files from which each transaction draws the values of its variables, by the variable's name."""
    statements: FindStatements | None = None
    """A function that returns the statements of the load, so that they can be explained after the load. It is None if
    the plans of earlier trials are valid for this one too, or if the study records no plans."""
    with_drawn_statistics: bool = False
    """True if ANALYZE draws the planner's statistics for this trial, so that its plans may differ from the plans of
    earlier trials."""
    inbox: Inbox | None = None
    """The queue in which the events of all alternating loads arrive."""
    rounds: Rounds | None = None
    """The rounds in which client programs take turns; None for loads of other kinds."""
    metrics: Mapping[str, MetricSection] = field(default_factory=dict)
    """The study's own metrics, whose values SQL or programs find out, by name."""
    start_rate: float | None = None
    """The rate at which a search for the capacity begins, 1/s; None if no capacity is known yet."""
    notes: tuple[str, ...] = ()
    """Notes on the machines that make the load, which are stored with the trial."""

    @property
    def log(self) -> Path:
        """The file that receives the server's log."""
        return self.directory / "server.log"

    @property
    def counts_server(self) -> bool:
        """True if this trial reads the counters of its server. If the server is shared, only the first trial does."""
        return not self.shared_server or self.turn.number == 1
