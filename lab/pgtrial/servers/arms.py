"""The arms of a study, by the kind of server: made for it (made.py), given, or sessions of one server."""

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
from pgtrial.model.study.servers import Given, MadeBySsh, MadeHere, Server
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Arm, Needs, allow_settings
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.given import GivenServer
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.servers.made import MadeArm
from pgtrial.servers.session_values import differences, unequal_values
from pgtrial.servers.workspace import Workspace


class GivenArm:
    """Given servers: one, or several deployments of one product, of which each trial has the one that was drawn."""

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
        """The host, where the study names one and it was reached; several deployments have none."""
        return self._servers[0].machine

    @property
    def tables_of_others(self) -> list[str]:
        """Those of any of them."""
        return sorted({tables for server in self._servers for tables in server.tables_of_others})

    @property
    def targets(self) -> list[Target]:
        """All of them."""
        return [server.target for server in self._servers]

    def check(self, needs: Needs) -> None:
        """Every one of them is looked at before the first trial. Raises StudyError."""
        for server in self._servers:
            server.check(needs)

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Load the data into each of them. Raises StudyError."""
        for server in self._servers:
            server.prepare(tables, on_progress)

    def serve(
        self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS
    ) -> AbstractContextManager[Target]:
        """The deployment that is the drawn place; its program is as it is."""
        self.notes.clear()
        return self._servers[drawn.place or 0].serve(tables, log, timings)

    @contextmanager
    def rehearsal(self, tables: Data, log: Path) -> Iterator[Target]:
        """The first deployment, as it is."""
        yield self._servers[0].target

    def loaded(self, tables: Data) -> list[LoadedData]:
        """Each of them, as it is."""
        return [
            LoadedData(server.target.label, number, partial(_as_it_is, server.target))
            for number, server in enumerate(self._servers)
        ]

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Do nothing: a given server is not analysed for a study."""

    def fetch_log(self, log: Path) -> None:
        """It stays there."""

    def close(self) -> None:
        """Let go of the hosts."""
        for server in self._servers:
            server.close()


def _as_it_is(target: Target, _log: Path) -> AbstractContextManager[Target]:
    return nullcontext(target)


class SharedServer:
    """The server of all arms, served for the first of them that asks for it until that one has ended."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.target: Target | None = None
        """While it is served."""
        self.checked = False


class SessionArm:
    """One arm: its sessions have these settings, beside those of the server."""

    def __init__(self, name: str, setup: Server, settings: Mapping[str, str], server: SharedServer) -> None:
        self.name = name
        self.setup = setup
        self.notes: list[str] = []
        self._settings = settings
        self._server = server

    @property
    def data_directory(self) -> Path | None:
        """The server's."""
        return self._server.arm.data_directory

    @property
    def account(self) -> str | None:
        """The server's."""
        return self._server.arm.account

    @property
    def host_seen(self) -> dict[str, dict[str, int]]:
        """The server's."""
        return self._server.arm.host_seen

    @property
    def tables_of_others(self) -> Sequence[str]:
        """The server's."""
        return self._server.arm.tables_of_others

    @property
    def machine(self) -> AnyMachine | None:
        """The server's."""
        return self._server.arm.machine

    @property
    def targets(self) -> Sequence[Target] | None:
        """The server's."""
        return self._server.arm.targets

    def check(self, needs: Needs) -> None:
        """Check the server, once, with the sessions of all arms. Raises StudyError or ArmError."""
        if not self._server.checked:
            self._server.arm.check(needs)
            self.notes, self._server.checked = self._server.arm.notes, True

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """See to it that the server has this data. Raises StudyError or ArmError."""
        self._server.arm.prepare(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS) -> Iterator[Target]:
        """Sessions of the server, which is started for the first arm and stopped when that one has ended, the last."""
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
        """Sessions of the server, which is started for the first arm and stopped when that one has ended, the last."""
        if self._server.target is not None:
            yield self._sessions_of(self._server.target)
            return
        with self._server.arm.rehearsal(tables, log) as target, self._shared(target) as sessions:
            yield sessions

    def loaded(self, tables: Data) -> Sequence[LoadedData]:
        """The server's."""
        return self._server.arm.loaded(tables)

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Have the copies of the shared server begin with these statistics."""
        self._server.arm.use_statistics(statistics)

    @contextmanager
    def _shared(self, target: Target) -> Iterator[Target]:
        """Sessions of a server that is there for the other arms, too."""
        self._server.target = target
        try:
            yield self._sessions_of(target)
        finally:
            self._server.target = None

    def _sessions_of(self, target: Target) -> Target:
        """Where sessions of the server have the arm's settings. Raises TrialError if they have others."""
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
        """Bring the log of the first arm's trial up to now. Raises TrialError."""
        self._server.arm.fetch_log(log)

    def close(self) -> None:
        """Let go of the server."""
        self._server.arm.close()


_KINDS: dict[type[Server], Callable[[str, Any, Needs, Workspace, LoadMaker], Arm]] = {
    Given: GivenArm,
    MadeHere: MadeArm,
    MadeBySsh: MadeArm,
}


def make_arms(
    spec: StudySpec,
    workspace: Workspace,
    sessions: Mapping[str, Mapping[str, str]] | None = None,
    maker: LoadMaker = ENGINE_HERE,
) -> dict[str, Arm]:
    """The study's arms by name, in its order; nothing is started yet. Raises StudyError.

    `sessions`, by arm: the settings of its sessions, where all arms share one server. `maker` makes their loads, and
    data on servers elsewhere.
    """
    needs = Needs.of(spec)
    servers = {name: spec.resolved(name) for name in spec.arms}
    if sessions:
        of_baseline = servers[spec.baseline]
        kept = {name: value for name, value in of_baseline.settings.items() if name not in sessions[spec.baseline]}
        server = SharedServer(
            _KINDS[type(of_baseline)](
                spec.baseline, of_baseline.model_copy(update={"settings": kept}), needs, workspace, maker
            )
        )
        return {name: SessionArm(name, servers[name], sessions[name], server) for name in spec.arms}
    return {name: _KINDS[type(server)](name, server, needs, workspace, maker) for name, server in servers.items()}
