"""An arm on a cluster of our own on another host, reached by ssh: pg_ctl there owns the server's process."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from pgtrial.loads.data.kinds import Data
from pgtrial.loads.data_makers import DataMaker
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostError, HostLost, HostTrouble
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.study.spec import SetUp
from pgtrial.servers.arm import Needs
from pgtrial.servers.installations import ServerBinaries, resolve
from pgtrial.servers.machine_state import MachineState
from pgtrial.servers.made import MadeArm, Site
from pgtrial.servers.remote_cluster import RemoteCluster, Way, create_cluster, way_to
from pgtrial.servers.rooms import Room
from pgtrial.servers.volumes import DataDirectories, Volumes
from pgtrial.servers.workspace import Workspace

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine

PORT = 54321
"""Where a server there listens unless the study says another: seldom taken, and one port to open in a firewall."""

_RESERVED = ("listen_addresses", "port")
_COPY = (
    "rm -rf {to}; if cp --reflink=auto -a {empty} {to}.try 2>/dev/null; then rm -rf {to}.try; "
    "cp --reflink=auto -a {source} {to}; else rm -rf {to}.try; cp -Rp {source} {to}; fi"
)
"""GNU's cp shares blocks where the file system can; the others copy."""


@dataclass
class _There:
    """What the arm has found on its host."""

    room: Room
    server: ServerBinaries
    way: Way
    runner: tuple[str, ...]
    site: Site


class SshArm(MadeArm):
    """One set-up on another host. Arms on one host, in one folder, share a room and its templates."""

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        super().__init__(name, setup, needs, workspace)
        for reserved in {item.lower() for item in setup.settings} & {*_RESERVED}:
            raise StudyError(f"arms.{name}: {reserved} of a server on another host is set by address and port")
        self.kind = f"PostgreSQL {setup.postgres} on {setup.ssh}"
        self._found: _There | None = None
        self._checked = 0
        """What the room's `settled` was when the host was checked last: disks may have other names since."""

    def check(self, needs: Needs) -> None:
        """Connect, and start the server there once with the arm's settings. Raises StudyError, ArmError."""
        with self._refusing():
            super().check(needs)

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Make the template of this data there unless it is there; it is loaded over the network."""
        with self._complaining():
            super().prepare(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], place: int | None = None) -> Iterator[Target]:
        """As on this machine. A host that is not there now raises ArmError: the trial has not begun. One that is lost
        from here on fails it."""
        log.touch()
        with self._complaining():
            self.notes = self._workspace.rooms.ready(self._there.room)
            if self._there.room.settled != self._checked:
                self._check_host()
        with self._complaining(), self._trial(), super().serve(tables, log, timings, place) as target:
            yield target

    @property
    def targets(self) -> tuple[Target, ...]:
        """None before a trial; each is made where every machine that makes load can reach it."""
        return ()

    def close(self) -> None:
        """The room goes with the workspace, and all that is in it."""

    @property
    def _there(self) -> _There:
        """The host, reached on first use, and what it has for this arm. Raises HostTrouble, ArmError and StudyError."""
        if self._found is None:
            self._found = self._find()
        return self._found

    @property
    def _site(self) -> Site:
        return self._there.site

    def _check_host(self) -> None:
        super()._check_host()
        self._checked = self._there.room.settled

    def _find(self) -> _There:
        setup, needs = self.setup, self._needs
        patience = needs.patience_s or PATIENCE_S
        room = self._workspace.rooms.room(str(setup.ssh), str(setup.data), sudo=bool(setup.sudo), patience_s=patience)
        machine = room.machine
        try:
            server = resolve(setup.postgres or "18", machine, room.account)
            runner = _runner(machine, setup.cpus)
        except StudyError as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        initdb = " ".join(["initdb", *(setup.initdb or [])])
        self.kind = f"PostgreSQL {server.version} {server.digest[:16]} {initdb} on {setup.ssh}"
        self.machine = machine
        site = Site(
            machine,
            server.version,
            room.path,
            room.templates,
            room.kept,
            MachineState(self.name, setup, room.journal),
            Volumes(self.name, setup.storage, room.journal) if setup.storage is not None else None,
            (room.root, f"{setup.data} on {machine.label}", "name another folder as data"),
        )
        return _There(room, server, way_to(room, setup.address, setup.port or PORT), runner, site)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (ArmError, TrialError, HostTrouble) as error:
            _heed_interrupt(error)
            raise StudyError(f"arms.{self.name}: {error}") from None

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        """What goes wrong with the host stops the study, in a sentence that names the arm."""
        try:
            yield
        except HostTrouble as error:
            _heed_interrupt(error)
            raise ArmError(f"arms.{self.name}: {error}") from None

    @contextmanager
    def _trial(self) -> Iterator[None]:
        """A host that is lost under a trial fails it: stopped and run again, the study would forget it."""
        try:
            yield
        except HostLost as lost:
            _heed_interrupt(lost)
            raise TrialError(f"the server's host was lost in mid-trial: {lost}") from None
        except psycopg.OperationalError as error:
            raise TrialError(f"the server did not answer: {' '.join(str(error).split())}") from None

    @contextmanager
    def _room(self, name: str, place: int | None) -> Iterator[DataDirectories]:
        room = self._there.room
        with super()._room(name, place) as made:
            if self._site.volumes is not None and room.account is not None:
                for path in (made.data, made.wal):
                    if path is not None:
                        room.machine.chown(path.parent, room.account)
            yield made

    def _cluster(self, data: Path, loading: dict[str, str] | None = None) -> RemoteCluster:
        there = self._there
        if loading is not None:
            return RemoteCluster(there.room, there.server, data, self._way, loading)
        return RemoteCluster(
            there.room, there.server, data, self._way, self._settings(), there.runner, self.setup.environment
        )

    @property
    def _called(self) -> str:
        return self._there.room.machine.label

    def _initdb(self, data: Path, on_progress: Callable[[str], None]) -> None:
        on_progress(f"{self._called}: initdb of PostgreSQL {self._there.server.version}")
        create_cluster(self._there.room, self._there.server, data, self.setup.initdb or [])

    def _copy_tree(self, source: Path, to: DataDirectories, *, flush: bool) -> None:
        room = self._there.room
        quoted = {"source": source, "to": to.data, "empty": source / "PG_VERSION"}
        try:
            room.shell(_COPY.format(**{name: shlex.quote(str(path)) for name, path in quoted.items()}))
        except HostError as error:
            free = room.machine.free_bytes(room.root) / 1e6
            # cp says the same of each file
            said = " cp: ".join(str(error).split(" cp: ")[:2])
            raise ArmError(f"arms.{self.name}: the data cannot be copied, with {free:,.0f} MB free: {said}") from None
        if to.wal is not None:
            wal, own = shlex.quote(str(to.wal)), shlex.quote(str(to.data / "pg_wal"))
            room.shell(f"cp -Rp {own} {wal} && rm -rf {own} && ln -s {wal} {own}")
        if flush:
            room.machine.tool(["sync"])

    def _hurry(self) -> None:
        self._there.room.machine.connection.hurry()

    @property
    def _maker(self) -> DataMaker:
        return self._workspace.maker

    @property
    def _way(self) -> Way:
        """Open to all that make load now: a machine of the fleet may have taken another one's place."""
        way = self._there.way
        return replace(way, clients=tuple(dict.fromkeys([*way.clients, *self._workspace.load_from()])))


def _runner(machine: RemoteMachine, cpus: str | None) -> tuple[str, ...]:
    """What runs a server on these CPUs of that host. Raises StudyError."""
    if cpus is None:
        return ()
    for tool in (("taskset", "-c"), ("cpuset", "-l")):
        if machine.looked(["sh", "-c", f"command -v {tool[0]}"]).status == 0:
            tried = machine.looked([*tool, cpus, "true"])
            if tried.status != 0:
                said = " ".join(tried.stderr.split())
                raise StudyError(f"cpus = {cpus!r} on {machine.label}: {said}")
            return (*tool, cpus)
    raise StudyError(f"cpus = {cpus!r}: {machine.label} has neither taskset nor cpuset; leave cpus out")


def _heed_interrupt(error: BaseException) -> None:
    """Raise the interrupt in the course of which the error came: nothing that fails on the way out hides that."""
    behind = error.__context__
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            raise behind from None
        behind = behind.__context__
