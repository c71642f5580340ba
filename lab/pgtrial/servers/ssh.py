"""An arm on a cluster of our own on another host, reached by ssh: loaded once, then a fresh copy for every trial."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from pgtrial.loads.data.kinds import NO_TABLES, Data
from pgtrial.loads.data.sizes import check_free, volume_bytes
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostError, HostLost, HostTrouble, Machine
from pgtrial.machines.pages import KB, counters
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.study.spec import SetUp
from pgtrial.servers.arm import Needs, check_clients, timed
from pgtrial.servers.lab_settings import check_settings, loading_settings
from pgtrial.servers.machine_state import MachineState, page_settings, taking_pages
from pgtrial.servers.own_server import connections_of, load_data, reset_data
from pgtrial.servers.remote_cluster import RemoteCluster, Way, create_cluster, way_to
from pgtrial.servers.remote_installations import RemoteBinaries, find_server
from pgtrial.servers.rooms import Room
from pgtrial.servers.templates import KeptCopy, TemplateKey
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
    server: RemoteBinaries
    way: Way
    runner: tuple[str, ...]
    state: MachineState
    volumes: Volumes | None


class SshArm:
    """One set-up on another host. Arms on one host, in one folder, share a room and its templates."""

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        check_settings(name, setup.settings)
        for reserved in {item.lower() for item in setup.settings} & {*_RESERVED}:
            raise StudyError(f"arms.{name}: {reserved} of a server on another host is set by address and port")
        self.name = name
        self.setup = setup
        self.kind = f"PostgreSQL {setup.postgres} on {setup.ssh}"
        self.machine: Machine | None = None
        self.data_directory: Path | None = None
        self.host_seen: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []
        self._needs = needs
        self._workspace = workspace
        self._found: _There | None = None
        self._cluster_served: RemoteCluster | None = None
        self._checked = 0
        """What the room's `settled` was when the host was checked last: disks may have other names since."""

    def check(self, needs: Needs) -> None:
        """Connect, and start the server there once with the arm's settings. Raises StudyError, ArmError."""
        try:
            there = self._there
            missing = sum(self._template_if_there(tables) is None for tables in needs.data)
            check_free(
                there.room.machine.free_bytes(there.room.root),
                f"{self.setup.data} on {there.room.machine.label}",
                "name another folder as data",
                needs.largest,
                templates=missing,
            )
            self._check_host(there)
            with tempfile.TemporaryDirectory() as logs, self._place("check", None) as place:
                self._copy(NO_TABLES, place)
                cluster = self._cluster(place.data)
                with self._host_ready(cluster), cluster.running(Path(logs) / "log", immediate=True) as target:
                    check_clients(self.name, needs, *connections_of(target))
        except (ArmError, TrialError, HostTrouble) as error:
            _heed_interrupt(error)
            raise StudyError(f"arms.{self.name}: {error}") from None

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Make the template of this data there unless it is there; it is loaded over the network."""
        with self._complaining():
            self._template(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], place: int | None = None) -> Iterator[Target]:
        """A server on a fresh copy of the template; with `reset` vacuum or none, on the copy of a trial before.

        A host that is not there now raises ArmError: the trial has not begun. One that is lost from here on fails it.
        """
        watches = self.setup.huge_pages in KB
        keep = self.setup.reset in ("vacuum", "none")
        log.touch()
        with self._complaining():
            self.notes = self._workspace.rooms.ready(self._there.room)
            if self._there.room.settled != self._checked:
                self._check_host(self._there)
        with self._complaining(), self._trial(), ExitStack() as stack:
            machine = self._there.room.machine
            self.host_seen = {"before": counters(machine)} if watches else {}
            with timed(timings, "restore"):
                data = self._data(tables, place, stack)
                cluster = self._cluster(data)
                stack.enter_context(self._host_ready(cluster))
            try:
                with timed(timings, "start"), taking_pages(self.setup):
                    cluster.start(log)
                self.data_directory, self._cluster_served = data, cluster
                if watches:
                    self.host_seen["during"] = counters(machine)
                if keep and tables != NO_TABLES:
                    reset_data(cluster.target, tables, self.setup)
                yield cluster.target
            except KeyboardInterrupt:
                machine.connection.hurry()
                raise
            finally:
                self.data_directory = self._cluster_served = None
                with timed(timings, "stop"):
                    cluster.stop(immediate=not keep)
                    cluster.fetch_log(log)
                    stack.close()
                if watches:
                    self.host_seen["after"] = counters(machine)

    def fetch_log(self, log: Path) -> None:
        """Append what the server being served has written since. Raises TrialError when its host cannot be reached."""
        if self._cluster_served is not None:
            try:
                self._cluster_served.fetch_log(log)
            except HostTrouble as error:
                raise TrialError(str(error)) from None

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

    def _check_host(self, there: _There) -> None:
        """Find out whether the host can be as asked for. Raises StudyError."""
        there.state.check()
        if there.volumes is not None:
            there.volumes.check(*volume_bytes(self._needs.largest))
        self._checked = there.room.settled

    def _find(self) -> _There:
        setup, needs = self.setup, self._needs
        patience = needs.patience_s or PATIENCE_S
        room = self._workspace.rooms.room(str(setup.ssh), str(setup.data), sudo=bool(setup.sudo), patience_s=patience)
        machine = room.machine
        try:
            server = find_server(machine, setup.postgres or "18", room.account)
            runner = _runner(machine, setup.cpus)
        except StudyError as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        initdb = " ".join(["initdb", *(setup.initdb or [])])
        self.kind = f"PostgreSQL {server.version} {server.checksum} {initdb} on {setup.ssh}"
        self.machine = machine
        return _There(
            room,
            server,
            way_to(room, setup.address, setup.port or PORT),
            runner,
            MachineState(self.name, setup, room.journal),
            Volumes(self.name, setup.storage, room.journal) if setup.storage is not None else None,
        )

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

    def _data(self, tables: Data, place: int | None, stack: ExitStack) -> Path:
        """The data of a trial: a fresh copy that `stack` removes, or one that is kept."""
        if self.setup.reset != "copy":
            return self._kept(tables, place)
        room = stack.enter_context(self._place(tables.short_name, place))
        self._copy(tables, room)
        return room.data

    def _kept(self, tables: Data, place: int | None) -> Path:
        """The copy with this number, which arms of one kind share, or without one the arm's own; made on first use."""
        kept = self._there.room.kept
        copy = KeptCopy(self._key(tables), self.name if place is None else None, place)
        if copy not in kept:
            data = self._there.room.path(tables.short_name)
            self._copy(tables, DataDirectories(data))
            kept[copy] = data
        return kept[copy]

    @contextmanager
    def _place(self, name: str, place: int | None) -> Iterator[DataDirectories]:
        """Room for one copy, gone afterwards: on volumes of the arm's own, or in the room."""
        there = self._there
        if there.volumes is not None:
            with there.volumes.made(place) as made:
                for volume in (made.data.parent, *([made.wal.parent] if made.wal is not None else [])):
                    if there.room.account is not None:
                        there.room.machine.chown(volume, there.room.account)
                yield made
            return
        data = there.room.path(name)
        try:
            yield DataDirectories(data)
        finally:
            there.room.machine.remove_tree(data)

    def _copy(self, tables: Data, place: DataDirectories) -> None:
        """A copy of the template, on disk when this returns: its write-back must not fall into the trial."""
        source = self._template(tables, _silent)
        self._copy_tree(source, place.data)
        if place.wal is not None:
            wal, own = shlex.quote(str(place.wal)), shlex.quote(str(place.data / "pg_wal"))
            self._there.room.shell(f"cp -Rp {own} {wal} && rm -rf {own} && ln -s {wal} {own}")
        if tables != NO_TABLES:
            self._there.room.machine.tool(["sync"])

    def _copy_tree(self, source: Path, to: Path) -> None:
        room = self._there.room
        quoted = {"source": source, "to": to, "empty": source / "PG_VERSION"}
        try:
            room.shell(_COPY.format(**{name: shlex.quote(str(path)) for name, path in quoted.items()}))
        except HostError as error:
            free = room.machine.free_bytes(room.root) / 1e6
            # cp says the same of each file
            said = " cp: ".join(str(error).split(" cp: ")[:2])
            raise ArmError(f"arms.{self.name}: the data cannot be copied, with {free:,.0f} MB free: {said}") from None

    def _cluster(self, data: Path) -> RemoteCluster:
        there, setup = self._there, self.setup
        settings = {**setup.settings, **page_settings(setup)}
        return RemoteCluster(there.room, there.server, data, self._way, settings, there.runner, setup.environment)

    @property
    def _way(self) -> Way:
        """Open to all that make load now: a machine of the fleet may have taken another one's place."""
        way = self._there.way
        return replace(way, clients=tuple(dict.fromkeys([*way.clients, *self._workspace.load_from()])))

    @contextmanager
    def _host_ready(self, cluster: RemoteCluster) -> Iterator[None]:
        """The host as the arm asks for, with the huge pages that this very cluster needs."""
        pages = cluster.huge_pages_needed() if self.setup.huge_pages in KB else 0
        with self._there.state.in_force(cluster.data, pages):
            yield

    def _key(self, tables: Data) -> TemplateKey:
        return TemplateKey(self.kind, self._there.server.version, **tables.key)

    def _template_if_there(self, tables: Data) -> Path | None:
        return self._there.room.templates.get(self._key(tables))

    def _template(self, tables: Data, on_progress: Callable[[str], None]) -> Path:
        """The data directory that trials are copied from, for as long as the room is there."""
        there = self._there
        if (found := self._template_if_there(tables)) is not None:
            return found
        data = there.room.path(f"template-{tables.short_name}")
        if tables == NO_TABLES:
            on_progress(f"{there.room.machine.label}: initdb of PostgreSQL {there.server.version}")
            create_cluster(there.room, there.server, data, self.setup.initdb or [])
        else:
            self._copy_tree(self._template(NO_TABLES, on_progress), data)
            self._load(data, tables, on_progress)
            # it has to outlive a start of the host
            there.room.machine.tool(["sync"])
        there.room.templates[self._key(tables)] = data
        return data

    def _load(self, data: Path, tables: Data, on_progress: Callable[[str], None]) -> None:
        there = self._there
        on_progress(f"{there.room.machine.label}: loading {tables.label}")
        cluster = RemoteCluster(there.room, there.server, data, self._way, loading_settings(tables))
        with tempfile.TemporaryDirectory() as logs, cluster.running(Path(logs) / "log") as target:
            load_data(target, tables, on_progress, self._workspace.maker)


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


def _silent(line: str) -> None:
    del line
