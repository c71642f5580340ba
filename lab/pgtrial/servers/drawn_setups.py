"""An arm of a screening study. For each trial it provides a server, or sessions of the shared server, with the levels
of the factors that the plan has drawn for the trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgtrial.loads.data.data import Data
from pgtrial.loads.target import Target
from pgtrial.machines.windows import AnyMachine
from pgtrial.model.records.plan import AS_IT_IS, Drawn
from pgtrial.model.study.servers import Server
from pgtrial.servers.arm import Arm, Instrument, Needs
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.loaded_data import LoadedData


class DrawnArm:
    """An arm of a screening study, whose set-up changes from trial to trial. Everything that is not about a certain
    trial, such as loading data, uses the set-up that the arm has in the study file."""

    def __init__(self, name: str, levels: str, at_levels: Callable[[str], Arm]) -> None:
        """`levels` are the levels that the arm has in the study file. `at_levels` returns an arm of this name with the
        given levels."""
        self.name = name
        self._at_levels = at_levels
        self._usual = at_levels(levels)
        self._now = self._usual
        """The arm with the levels of the last trial; before the first trial, the arm of the study file."""
        self._statistics: CopyStatistics | None = None

    @property
    def notes(self) -> list[str]:
        """Sentences on what happened to the host before the last trial began."""
        return self._now.notes

    @notes.setter
    def notes(self, notes: list[str]) -> None:
        self._now.notes = notes

    @property
    def setup(self) -> Server:
        """The server with the levels of the last trial."""
        return self._now.setup

    @property
    def data_directory(self) -> Path | None:
        """The data directory of the server that runs now."""
        return self._now.data_directory

    @property
    def account(self) -> str | None:
        """The account that owns the data directory."""
        return self._now.account

    @property
    def host_seen(self) -> dict[str, dict[str, int]]:
        """The counters of huge pages on the host before and during the last trial."""
        return self._now.host_seen

    @property
    def tables_of_others(self) -> Sequence[str]:
        """Descriptions of the tables that the load uses and pgtrial has not made."""
        return self._now.tables_of_others

    @property
    def machine(self) -> AnyMachine | None:
        """The machine on which the server runs."""
        return self._now.machine

    @property
    def targets(self) -> Sequence[Target] | None:
        """The addresses of the server if it exists before the first trial."""
        return self._usual.targets

    def check(self, needs: Needs) -> None:
        """Checks the set-up of the study file. Raises StudyError or ArmError."""
        self._usual.check(needs)

    def check_levels(self, levels: str, needs: Needs) -> None:
        """Starts a server with these levels once. Raises StudyError with the message of PostgreSQL if it does not
        start."""
        self._at_levels(levels).check(needs)

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Loads this data if that is not done yet. Raises StudyError or ArmError."""
        self._usual.prepare(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS) -> Iterator[Target]:
        """Provides a server, or sessions of the shared server, with the levels that were drawn for the trial."""
        self._now = self._usual if drawn.levels is None else self._at_levels(drawn.levels)
        if self._statistics is not None:
            self._now.use_statistics(self._statistics)
        with self._now.serve(tables, log, timings, drawn) as target:
            yield target

    @contextmanager
    def rehearsal(self, tables: Data, log: Path, instrument: Instrument | None = None) -> Iterator[Target]:
        """Provides a server with the set-up of the study file, on a copy of this data."""
        with self._usual.rehearsal(tables, log, instrument) as target:
            yield target

    def loaded(self, tables: Data) -> Sequence[LoadedData]:
        """Returns where this data is stored."""
        return self._usual.loaded(tables)

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Sets the planner statistics that each fresh copy of the data gets before a trial."""
        self._statistics = statistics

    def fetch_log(self, log: Path) -> None:
        """Copies to `log` what the server of the last trial has logged up to now. Raises TrialError."""
        self._now.fetch_log(log)

    def close(self) -> None:
        """Releases what the arm keeps between trials."""
        self._usual.close()
