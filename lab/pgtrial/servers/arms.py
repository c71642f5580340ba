"""The arms of a study by their kind of server: made for the study (made.py), given, or sessions of one server."""

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
from pgtrial.model.errors import TrialError, one_line
from pgtrial.model.records.plan import AS_IT_IS, Drawn
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Given, MadeBySsh, MadeHere, Server
from pgtrial.servers.arm import Arm, Needs, allow_settings
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.given import GivenServer
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.servers.made import MadeArm
from pgtrial.servers.session_values import differences, unequal_values
from pgtrial.servers.workspace import Workspace


class GivenArm:
    """An arm of given servers: one, or several deployments of one product, of which each trial uses the one that was
    drawn."""

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
        """The server's host, if the study names one and it was reached; with several deployments there is none."""
        return self._servers[0].machine

    @property
    def tables_of_others(self) -> list[str]:
        """The tables on any of the deployments that the load uses and pgtrial has not made, for people."""
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
        """Provides the deployment that was drawn for the trial. The drawn layout of the server's program is ignored,
        since pgtrial did not build it."""
        self.notes.clear()
        return self._servers[drawn.place or 0].serve(tables, log, timings)

    @contextmanager
    def rehearsal(self, tables: Data, log: Path) -> Iterator[Target]:
        """Provides the first deployment, unchanged."""
        yield self._servers[0].target

    def loaded(self, tables: Data) -> list[LoadedData]:
        """Returns an entry for each deployment, since each has its own copy of the data. Nothing is changed there."""
        return [
            LoadedData(server.target.label, number, partial(_as_it_is, server.target))
            for number, server in enumerate(self._servers)
        ]

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Does nothing: a given server is not analysed for a study."""

    def fetch_log(self, log: Path) -> None:
        """Does nothing: the log stays with the given server."""

    def close(self) -> None:
        """Closes the deployments and with them the connections to their hosts."""
        for server in self._servers:
            server.close()


def _as_it_is(target: Target, _log: Path) -> AbstractContextManager[Target]:
    return nullcontext(target)


class SharedServer:
    """The one server that all arms share. The first arm that asks for it starts it, and it runs until that arm releases
    it."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.target: Target | None = None
        """The server's address while it is served."""
        self.checked = False


class SessionArm:
    """An arm whose sessions have settings of their own, in addition to those of the server that all arms share."""

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
        """The counters of the shared server's host around the last trial."""
        return self._server.arm.host_seen

    @property
    def tables_of_others(self) -> Sequence[str]:
        """The tables of the shared server that the load uses and pgtrial has not made."""
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
        """Checks the shared server, once, with the sessions of all arms. Raises StudyError or ArmError."""
        if not self._server.checked:
            self._server.arm.check(needs)
            self.notes, self._server.checked = self._server.arm.notes, True

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Makes sure that the shared server has this data. Raises StudyError or ArmError."""
        self._server.arm.prepare(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS) -> Iterator[Target]:
        """Provides sessions of the shared server. The first arm that enters starts the server and stops it on exit, so
        that arm has to be the last to leave."""
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
    def rehearsal(self, tables: Data, log: Path) -> Iterator[Target]:
        """Provides sessions of the shared server. The first arm that enters starts the server and stops it on exit, so
        that arm has to be the last to leave."""
        if self._server.target is not None:
            yield self._sessions_of(self._server.target)
            return
        with self._server.arm.rehearsal(tables, log) as target, self._shared(target) as sessions:
            yield sessions

    def loaded(self, tables: Data) -> Sequence[LoadedData]:
        """Returns the places where the shared server has this data."""
        return self._server.arm.loaded(tables)

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Makes the copies of the shared server begin with these statistics."""
        self._server.arm.use_statistics(statistics)

    @contextmanager
    def _shared(self, target: Target) -> Iterator[Target]:
        """Provides sessions of a server that the other arms can use meanwhile."""
        self._server.target = target
        try:
            yield self._sessions_of(target)
        finally:
            self._server.target = None

    def _sessions_of(self, target: Target) -> Target:
        """Returns the address of the server for sessions with the arm's settings. Raises TrialError if sessions have
        others."""
        with_settings = target.with_settings(self._settings)
        try:
            allow_settings(target, self._settings)
            with with_settings.for_load.connect() as session:
                unequal = differences(session, self._settings)
        except psycopg.Error as error:
            raise TrialError(f"{target.label} gave no session the arm's settings: {one_line(error)}") from None
        if unequal:
            raise TrialError(f"{unequal_values(unequal, self._settings)} in new sessions of {target.label}")
        return with_settings

    def fetch_log(self, log: Path) -> None:
        """Copies the log to the first arm's trial up to now. Raises TrialError."""
        self._server.arm.fetch_log(log)

    def close(self) -> None:
        """Closes the arm that makes the shared server."""
        self._server.arm.close()


_KINDS: dict[type[Server], Callable[[str, Any, Needs, Workspace, LoadMaker], Arm]] = {
    Given: GivenArm,
    MadeHere: MadeArm,
    MadeBySsh: MadeArm,
}


def make_arms(design: Design, workspace: Workspace, maker: LoadMaker = ENGINE_HERE) -> dict[str, Arm]:
    """Returns the study's arms by name, in its order. Nothing is started yet. Raises StudyError.

    `maker` makes their loads, and data on servers elsewhere.
    """
    needs, servers, sessions, baseline = Needs.of(design), design.servers, design.sessions, design.baseline
    if sessions:
        of_baseline = servers[baseline]
        kept = {name: value for name, value in of_baseline.settings.items() if name not in sessions[baseline]}
        server = SharedServer(
            _KINDS[type(of_baseline)](
                baseline, of_baseline.model_copy(update={"settings": kept}), needs, workspace, maker
            )
        )
        return {name: SessionArm(name, servers[name], sessions[name], server) for name in servers}
    return {name: _KINDS[type(server)](name, server, needs, workspace, maker) for name, server in servers.items()}
