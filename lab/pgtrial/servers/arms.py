"""The arms of a study by the kind of their server: servers that somebody else runs (given), and sessions of one server
that all arms share. Servers that pgtrial makes are in made.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker
from pgtrial.loads.target import Target
from pgtrial.machines.windows import AnyMachine
from pgtrial.model.errors import StudyError, TrialError, one_line
from pgtrial.model.records.plan import AS_IT_IS, Drawn
from pgtrial.model.study.design import Design
from pgtrial.model.study.factors import ends_of
from pgtrial.model.study.servers import Given, MadeBySsh, MadeHere, Server
from pgtrial.servers.arm import Arm, Instrument, Needs, allow_settings
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.drawn_setups import DrawnArm
from pgtrial.servers.given import GivenServer
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.servers.made import MadeArm
from pgtrial.servers.session_values import differences, unequal_values
from pgtrial.servers.workspace import Workspace


class GivenArm:
    """An arm with a given server, or with several given servers that are deployments of one product. Each trial then
    uses one of the deployments, which the study's plan has drawn at random."""

    data_directory: Path | None = None
    account: str | None = None

    def __init__(self, name: str, setup: Given, needs: Needs, workspace: Workspace, maker: LoadMaker) -> None:
        self.name = name
        self.setup = setup
        self.host_seen: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []
        self._servers = [
            GivenServer(name, deployment, needs, workspace, maker, notes=self.notes) for deployment in setup.deployments
        ]

    @property
    def machine(self) -> AnyMachine | None:
        """The server's host, if the study names one and pgtrial has reached it; otherwise None. A study cannot name
        hosts for several deployments."""
        return self._servers[0].machine

    @property
    def tables_of_others(self) -> list[str]:
        """Descriptions of the tables on any of the deployments that the load uses and pgtrial has not made."""
        return sorted({tables for server in self._servers for tables in server.tables_of_others})

    @property
    def targets(self) -> list[Target]:
        """The addresses of all deployments."""
        return [server.target for server in self._servers]

    def check(self, needs: Needs) -> None:
        """Checks every deployment before the first trial. Raises StudyError."""
        for server in self._servers:
            server.check(needs)

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Loads the data into every deployment. Raises StudyError."""
        for server in self._servers:
            server.prepare(tables, on_progress)

    def serve(
        self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS
    ) -> AbstractContextManager[Target]:
        """Provides the deployment that was drawn for the trial. A given server has no layouts, since pgtrial has not
        built its program."""
        self.notes.clear()
        return self._servers[drawn.place or 0].serve(tables, log, timings)

    @contextmanager
    def rehearsal(self, tables: Data, log: Path, instrument: Instrument | None = None) -> Iterator[Target]:
        """Provides the first deployment, without changing anything there. It runs already, so no instrument can run
        it."""
        yield self._servers[0].target

    def loaded(self, tables: Data) -> list[LoadedData]:
        """Returns an entry for each deployment, since each has its own copy of the data. Changes nothing on the
        servers."""
        return [
            LoadedData(server.target.label, number, partial(_as_it_is, server.target))
            for number, server in enumerate(self._servers)
        ]

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Does nothing, since pgtrial does not run ANALYZE on a given server."""

    def fetch_log(self, log: Path) -> None:
        """Does nothing, since the log of a given server stays where that server writes it."""

    def close(self) -> None:
        """Closes the connections to the hosts of the deployments."""
        for server in self._servers:
            server.close()


def _as_it_is(target: Target, _log: Path) -> AbstractContextManager[Target]:
    return nullcontext(target)


class SharedServer:
    """The server that all arms share. The first arm that needs it starts it, and it runs until that arm releases it."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.target: Target | None = None
        """The server's address while the server runs for a trial; otherwise None."""
        self.checked = False


class SessionArm:
    """An arm that differs from the others by the settings of its sessions only. All arms share one server."""

    def __init__(self, name: str, setup: Server, settings: Mapping[str, str], server: SharedServer) -> None:
        self.name = name
        self.setup = setup
        self.notes: list[str] = []
        self._settings = settings
        self._server = server

    @property
    def data_directory(self) -> Path | None:
        """The data directory of the shared server."""
        return self._server.arm.data_directory

    @property
    def account(self) -> str | None:
        """The account that owns the data directory of the shared server."""
        return self._server.arm.account

    @property
    def host_seen(self) -> dict[str, dict[str, int]]:
        """The counters of huge pages on the shared server's host before and during the last trial."""
        return self._server.arm.host_seen

    @property
    def tables_of_others(self) -> Sequence[str]:
        """Descriptions of the tables on the shared server that the load uses and pgtrial has not made."""
        return self._server.arm.tables_of_others

    @property
    def machine(self) -> AnyMachine | None:
        """The machine on which the shared server runs."""
        return self._server.arm.machine

    @property
    def targets(self) -> Sequence[Target] | None:
        """The addresses of the shared server if it exists before the first trial; () or None if pgtrial makes it
        (`Arm.targets`)."""
        return self._server.arm.targets

    def check(self, needs: Needs) -> None:
        """Checks the shared server, and the sessions of all arms on it. Does so only once for all arms. Raises
        StudyError or ArmError."""
        if not self._server.checked:
            self._server.arm.check(needs)
            self.notes, self._server.checked = self._server.arm.notes, True

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Makes sure that the shared server has this data. Raises StudyError or ArmError."""
        self._server.arm.prepare(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS) -> Iterator[Target]:
        """Provides sessions of the shared server. The first arm that enters this context starts the server, and stops
        it on exit; it therefore has to be the last arm that leaves its context."""
        server = self._server
        if server.target is not None:
            log.write_text("The arms are sessions of one server. Its log is in the trial that was the first.\n")
            self.notes = []
            yield self._sessions_of(server.target)
            return
        with server.arm.serve(tables, log, timings, drawn) as target:
            self.notes = server.arm.notes
            with self._shared(target) as sessions:
                yield sessions

    @contextmanager
    def rehearsal(self, tables: Data, log: Path, instrument: Instrument | None = None) -> Iterator[Target]:
        """Provides sessions of the shared server. The first arm that enters this context starts the server, and stops
        it on exit; it therefore has to be the last arm that leaves its context."""
        if self._server.target is not None:
            yield self._sessions_of(self._server.target)
            return
        with self._server.arm.rehearsal(tables, log, instrument) as target, self._shared(target) as sessions:
            yield sessions

    def loaded(self, tables: Data) -> Sequence[LoadedData]:
        """Returns where the data of the shared server is stored."""
        return self._server.arm.loaded(tables)

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Sets the planner statistics that each fresh copy of the shared server gets."""
        self._server.arm.use_statistics(statistics)

    @contextmanager
    def _shared(self, target: Target) -> Iterator[Target]:
        """Lets the other arms use the server within the context, and provides sessions with this arm's settings."""
        self._server.target = target
        try:
            yield self._sessions_of(target)
        finally:
            self._server.target = None

    def _sessions_of(self, target: Target) -> Target:
        """Returns the server's address with the arm's settings for sessions. Raises TrialError if a new session does
        not have these settings."""
        with_settings = target.with_settings(self._settings)
        try:
            allow_settings(target, self._settings)
            with with_settings.for_load.connect() as session:
                unequal = differences(session, self._settings)
        except psycopg.Error as error:
            raise TrialError(
                f"no session of {target.label} can be opened with the arm's settings: {one_line(error)}"
            ) from None
        if unequal:
            raise TrialError(f"{unequal_values(unequal, self._settings)} in new sessions of {target.label}")
        return with_settings

    def fetch_log(self, log: Path) -> None:
        """Copies what the shared server has logged up to now to `log`, a file of the first arm's trial. Raises
        TrialError."""
        self._server.arm.fetch_log(log)

    def close(self) -> None:
        """Closes the arm that provides the shared server."""
        self._server.arm.close()


_KINDS: dict[type[Server], Callable[[str, Any, Needs, Workspace, LoadMaker], Arm]] = {
    Given: GivenArm,
    MadeHere: MadeArm,
    MadeBySsh: MadeArm,
}


def make_arms(design: Design, workspace: Workspace, maker: LoadMaker = ENGINE_HERE) -> dict[str, Arm]:
    """Returns the study's arms by name, in the order of the study. Starts no server yet. Raises StudyError.

    `maker` starts the engines that make the load, and that load data on servers of other machines.
    """
    needs, servers, sessions, baseline = Needs.of(design), design.servers, design.sessions, design.baseline
    if sessions:
        of_baseline = servers[baseline]
        kept = {name: value for name, value in of_baseline.settings.items() if name not in sessions[baseline]}
        shared = SharedServer(
            _KINDS[type(of_baseline)](
                baseline, of_baseline.model_copy(update={"settings": kept}), needs, workspace, maker
            )
        )

    def with_setup(name: str, setup: Server) -> Arm:
        if not sessions:
            return _KINDS[type(setup)](name, setup, needs, workspace, maker)
        own = {setting: value for setting, value in setup.settings.items() if setting in sessions[name]}
        return SessionArm(name, setup, own, shared)

    if not design.factors:
        return {name: with_setup(name, server) for name, server in servers.items()}
    if design.given and not sessions:
        raise StudyError(
            "factors are screened in sessions of the given server, in turns, but this load cannot take turns; choose a "
            "load whose trials alternate"
        )

    def at_levels(name: str, levels: str) -> Arm:
        return with_setup(name, design.server_at(levels))

    ends = ends_of(design.spec.factors)
    return {name: DrawnArm(name, ends[name], partial(at_levels, name)) for name in servers}
