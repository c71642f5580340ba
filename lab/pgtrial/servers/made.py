"""An arm whose server pgtrial makes: initdb, load once, then a fresh copy and a fresh server for every trial.

The same on every machine. What differs is who owns the server's process, where templates are kept and how a tree is
copied: `embedded` on this machine, `ssh` on another.
"""

from __future__ import annotations

import abc
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgtrial.loads.data.kinds import NO_TABLES, Data
from pgtrial.loads.data.sizes import SEGMENT_MB, check_free, prefilled_wal_mb, volume_bytes
from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostTrouble, Machine
from pgtrial.machines.pages import KB, counters
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.study.spec import SetUp
from pgtrial.servers.arm import Needs, check_clients, timed
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.lab_settings import check_settings, loading_settings
from pgtrial.servers.machine_state import MachineState, page_settings, taking_pages
from pgtrial.servers.remote_cluster import RemoteCluster
from pgtrial.servers.rooms import RoomTemplates
from pgtrial.servers.templates import KeptCopy, TemplateKey, Templates
from pgtrial.servers.volumes import DataDirectories, Volumes
from pgtrial.servers.workspace import Workspace

MadeCluster = Cluster | RemoteCluster


@dataclass(frozen=True)
class Site:
    """Where the servers of an arm are made."""

    machine: Machine
    version: str
    """Of PostgreSQL there."""
    path: Callable[[str], Path]
    """A fresh path, not yet made."""
    templates: Templates | RoomTemplates
    kept: dict[KeptCopy, Path]
    state: MachineState
    volumes: Volumes | None
    space: tuple[Path, str, str]
    """What holds templates and copies, how people call it, and what to do where it is too small."""


class MadeArm(abc.ABC):
    """One set-up. Its template depends on server and data, not on the settings, and is shared by arms of one kind."""

    kind: str

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        check_settings(name, setup.settings)
        self.name = name
        self.setup = setup
        self.machine: Machine | None = None
        self.data_directory: Path | None = None
        self.host_seen: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []
        self._needs = needs
        self._workspace = workspace
        self._served: MadeCluster | None = None

    def check(self, needs: Needs) -> None:
        """Start the server once with the arm's settings: what PostgreSQL refuses is refused here, in its words.

        Raises StudyError.
        """
        self._check_space(
            needs.largest, sum(self._site.templates.find(self._key(tables)) is None for tables in needs.data)
        )
        self._check_host()
        with self._refusing(), tempfile.TemporaryDirectory() as logs, self._room("check", None) as room:
            self._copy(NO_TABLES, room)
            cluster = self._cluster(room.data)
            with self._host_ready(cluster), cluster.running(Path(logs) / "log", immediate=True) as target:
                check_clients(self.name, needs, *connections_of(target))

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Make the template of this data unless it is there."""
        self._template(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], place: int | None = None) -> Iterator[Target]:
        """A server on a fresh copy of the template; with `reset` vacuum or none, on the copy of a trial before."""
        watches = self.setup.huge_pages in KB
        keep = self.setup.reset in ("vacuum", "none")
        machine = self._site.machine
        self.host_seen = {"before": counters(machine)} if watches else {}
        with ExitStack() as stack:
            with timed(timings, "restore"):
                data = self._data(tables, place, stack)
                cluster = self._cluster(data)
                stack.enter_context(self._host_ready(cluster))
            try:
                with timed(timings, "start"), taking_pages(self.setup):
                    cluster.start(log)
                self.data_directory, self._served = data, cluster
                if watches:
                    self.host_seen["during"] = counters(machine)
                if keep and tables != NO_TABLES:
                    reset_data(cluster.target, tables, self.setup)
                yield cluster.target
            except KeyboardInterrupt:
                self._hurry()
                raise
            finally:
                self.data_directory = self._served = None
                with timed(timings, "stop"):
                    cluster.stop(immediate=not keep)
                    cluster.fetch_log(log)
                    stack.close()
                if watches:
                    self.host_seen["after"] = counters(machine)

    def fetch_log(self, log: Path) -> None:
        """Append what the server being served has written since. Raises TrialError when its host cannot be reached."""
        if self._served is not None:
            try:
                self._served.fetch_log(log)
            except HostTrouble as error:
                raise TrialError(str(error)) from None

    @property
    @abc.abstractmethod
    def _site(self) -> Site:
        """Where it is made. Raises HostTrouble, ArmError and StudyError."""

    @property
    @abc.abstractmethod
    def _called(self) -> str:
        """How progress names the server or its machine."""

    @abc.abstractmethod
    def _cluster(self, data: Path, loading: dict[str, str] | None = None) -> MadeCluster:
        """A cluster on a data directory, with the settings of the arm, or with those of `loading` alone."""

    @abc.abstractmethod
    def _initdb(self, data: Path, on_progress: Callable[[str], None]) -> None:
        """Make an empty cluster. Raises ArmError."""

    @abc.abstractmethod
    def _copy_tree(self, source: Path, to: DataDirectories, *, flush: bool) -> None:
        """Copy a data directory, its WAL to where that goes; with `flush` it is on disk when this returns.

        Raises ArmError.
        """

    @abc.abstractmethod
    def _hurry(self) -> None:
        """The user has interrupted the lab, and waits for its end."""

    @property
    def _maker(self) -> DataMaker:
        """Who makes data on its servers: nobody but an engine here reaches a private socket."""
        return ENGINE_HERE

    def _check_host(self) -> None:
        """Find out whether the host can be as asked for. Raises StudyError."""
        site = self._site
        site.state.check()
        if site.volumes is not None:
            site.volumes.check(*volume_bytes(self._needs.largest))

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What goes wrong before the first trial is said of the study."""
        try:
            yield
        except (ArmError, TrialError) as error:
            raise StudyError(f"arms.{self.name}: {error}") from None

    def _check_space(self, data: Data, templates: int = 1) -> None:
        directory, called, cure = self._site.space
        check_free(self._site.machine.free_bytes(directory), called, cure, data, templates=templates)

    def _data(self, tables: Data, place: int | None, stack: ExitStack) -> Path:
        """The data of a trial: a fresh copy that `stack` removes, or one that is kept."""
        if self.setup.reset != "copy":
            return self._kept(tables, place)
        room = stack.enter_context(self._room(tables.short_name, place))
        self._copy(tables, room)
        return room.data

    def _kept(self, tables: Data, place: int | None) -> Path:
        """The copy with this number, which arms of one kind share, or without one the arm's own; made on first use."""
        kept = self._site.kept
        copy = KeptCopy(self._key(tables), self.name if place is None else None, place)
        if copy not in kept:
            data = self._site.path(tables.short_name)
            self._copy(tables, DataDirectories(data))
            kept[copy] = data
        return kept[copy]

    @contextmanager
    def _room(self, name: str, place: int | None) -> Iterator[DataDirectories]:
        """Room for one copy, gone afterwards: on volumes of the arm's own, or in the run's directory."""
        site = self._site
        if site.volumes is not None:
            with site.volumes.made(place) as room:
                yield room
            return
        data = site.path(name)
        try:
            yield DataDirectories(data)
        finally:
            site.machine.remove_tree(data)

    def _copy(self, tables: Data, room: DataDirectories) -> None:
        """A copy of the template, on disk when this returns: its write-back must not fall into the trial."""
        self._copy_tree(self._template(tables, _silent), room, flush=tables != NO_TABLES)

    def _settings(self) -> dict[str, str]:
        return {**self.setup.settings, **page_settings(self.setup)}

    @contextmanager
    def _host_ready(self, cluster: MadeCluster) -> Iterator[None]:
        """The host as the arm asks for, with the huge pages that this very cluster needs."""
        pages = cluster.huge_pages_needed() if self.setup.huge_pages in KB else 0
        with self._site.state.in_force(cluster.data_directory, pages):
            yield

    def _key(self, tables: Data) -> TemplateKey:
        return TemplateKey(self.kind, self._site.version, **tables.key)

    def _template(self, tables: Data, on_progress: Callable[[str], None]) -> Path:
        """The data directory that trials are copied from."""

        site = self._site

        def build(data: Path) -> None:
            if tables == NO_TABLES:
                self._initdb(data, on_progress)
                return
            self._copy_tree(self._template(NO_TABLES, on_progress), DataDirectories(data), flush=False)
            self._check_space(tables)
            on_progress(f"{self._called}: loading {tables.label}")
            cluster = self._cluster(data, loading_settings(tables))
            with tempfile.TemporaryDirectory() as logs, cluster.running(Path(logs) / "log") as target:
                load_data(target, tables, on_progress, self._maker)

        return site.templates.ensure(self._key(tables), site.path(f"template-{tables.short_name}"), build)


def _silent(line: str) -> None:
    del line


def load_data(target: Target, data: Data, on_progress: Callable[[str], None], maker: DataMaker = ENGINE_HERE) -> None:
    """Load the data, and leave WAL files for the trials to find. Raises ArmError."""
    data.make(target, on_progress, maker)
    _prefill_wal(target, data)


def reset_data(target: Target, data: Data, setup: SetUp) -> None:
    """Bring the data of a trial before near its first state, as the set-up says."""
    with target.connect() as connection:
        data.reset(connection, "none" if setup.reset == "none" else "vacuum")


def connections_of(target: Target) -> tuple[int, int]:
    """max_connections, and how many of them are reserved."""
    with target.connect() as connection:
        rows = connection.execute(
            "SELECT name, setting::int FROM pg_settings WHERE name IN "
            "('max_connections', 'superuser_reserved_connections', 'reserved_connections')"
        ).fetchall()
    values = dict(rows)
    reserved = values.get("superuser_reserved_connections", 0) + values.get("reserved_connections", 0)
    return values["max_connections"], reserved


def _prefill_wal(target: Target, data: Data) -> None:
    """Use up segments and recycle them, so that trials find ready-made WAL files (see data.sizes)."""
    with target.connect() as connection:
        for _ in range(prefilled_wal_mb(data) // SEGMENT_MB):
            connection.execute("SELECT pg_logical_emit_message(false, 'pgtrial', 'x')")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
