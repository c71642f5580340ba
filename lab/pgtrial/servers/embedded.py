"""An arm on a cluster of our own: initdb, load once, then a fresh copy and a fresh server for every trial."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pgtrial.loads.data.kinds import NO_TABLES, Data
from pgtrial.loads.data.sizes import check_space, volume_bytes
from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.machines.pages import KB, counters
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.study.spec import SetUp
from pgtrial.servers.arm import Needs, check_clients, timed
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.copy import copy_directory, move_wal
from pgtrial.servers.installations import resolve
from pgtrial.servers.lab_settings import check_settings, loading_settings
from pgtrial.servers.machine_state import MachineState, page_settings, taking_pages
from pgtrial.servers.own_server import connections_of, load_data, reset_data
from pgtrial.servers.templates import KeptCopy, TemplateKey
from pgtrial.servers.volumes import DataDirectories, Volumes
from pgtrial.servers.workspace import Workspace


class EmbeddedArm:
    """One embedded set-up. Its template depends on server and data, not on the settings, and is shared by arms."""

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        check_settings(name, setup.settings)
        self.name = name
        self.setup = setup
        self.machine: Machine | None = LOCAL
        self.data_directory: Path | None = None
        self.host_seen: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []
        self._needs = needs
        self._workspace = workspace
        self._server = workspace.reachable(resolve(setup.postgres or "18"))
        self._machine = MachineState(name, setup, workspace.changes())
        self._volumes = Volumes(name, setup.storage, workspace.changes()) if setup.storage is not None else None
        initdb = " ".join(["initdb", *(setup.initdb or [])])
        self.kind = f"PostgreSQL {self._server.version} {self._server.digest[:16]} {initdb}"

    @property
    def targets(self) -> None:
        """A new one for each trial, here."""
        return

    def check(self, needs: Needs) -> None:
        """Start the server once with the arm's settings: what PostgreSQL refuses is refused here, in its words."""
        check_space(
            self._workspace.state,
            needs.largest,
            templates=sum(self._workspace.templates.find(self._key(tables)) is None for tables in needs.data),
        )
        self._machine.check()
        if self._volumes is not None:
            self._volumes.check(*volume_bytes(needs.largest))
        log = self._workspace.directory(f"check-{self._server.major}.log")
        try:
            with self._room(f"check-{self._server.major}", None) as room:
                self._copy(NO_TABLES, room)
                cluster = self._cluster(room.data)
                with self._host_ready(cluster), cluster.running(log, immediate=True) as target:
                    check_clients(self.name, needs, *connections_of(target))
        except (ArmError, TrialError) as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        finally:
            log.unlink(missing_ok=True)

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Make the template of this data unless it is there."""
        self._template(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], place: int | None = None) -> Iterator[Target]:
        """A server on a fresh copy of the template; with `reset` vacuum or none, on the copy of a trial before."""
        watches = self.setup.huge_pages in KB
        self.host_seen = {"before": counters(LOCAL)} if watches else {}
        with ExitStack() as stack:
            with timed(timings, "restore"):
                data = self._data(tables, place, stack)
                cluster = self._cluster(data)
                stack.enter_context(self._host_ready(cluster))
            keep = self.setup.reset in ("vacuum", "none")
            try:
                with timed(timings, "start"), taking_pages(self.setup):
                    cluster.start(log)
                self.data_directory = data
                if watches:
                    self.host_seen["during"] = counters(LOCAL)
                if keep and tables != NO_TABLES:
                    reset_data(cluster.target, tables, self.setup)
                yield cluster.target
            finally:
                self.data_directory = None
                with timed(timings, "stop"):
                    cluster.stop(immediate=not keep)
                    stack.close()
                if watches:
                    self.host_seen["after"] = counters(LOCAL)

    def fetch_log(self, log: Path) -> None:
        """The server writes it there itself."""

    def close(self) -> None:
        """Remove the kept copies, those that it shares with other arms as well."""
        kept = self._workspace.kept
        for copy in [copy for copy in kept if copy.owner in (None, self.name) and copy.template.kind == self.kind]:
            shutil.rmtree(kept.pop(copy), ignore_errors=True)

    def _data(self, tables: Data, place: int | None, stack: ExitStack) -> Path:
        """The data of a trial: a fresh copy that `stack` removes, or one that is kept."""
        if self.setup.reset != "copy":
            return self._kept(tables, place)
        room = stack.enter_context(self._room(f"{self._server.major}-{tables.short_name}", place))
        self._copy(tables, room)
        return room.data

    def _kept(self, tables: Data, place: int | None) -> Path:
        """The copy with this number, which arms of one kind share, or without one the arm's own; made on first use."""
        kept = self._workspace.kept
        copy = KeptCopy(self._key(tables), self.name if place is None else None, place)
        if copy not in kept:
            data = self._workspace.directory(f"{self._server.major}-{tables.short_name}")
            copy_directory(self._template(tables, _silent), data)
            kept[copy] = data
        return kept[copy]

    @contextmanager
    def _room(self, name: str, place: int | None) -> Iterator[DataDirectories]:
        """Room for one copy, gone afterwards: on volumes of the arm's own, or in the run's directory."""
        if self._volumes is not None:
            with self._volumes.made(place) as room:
                yield room
            return
        data = self._workspace.directory(name)
        try:
            yield DataDirectories(data)
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _copy(self, tables: Data, room: DataDirectories) -> None:
        copy_directory(self._template(tables, _silent), room.data, flush=tables != NO_TABLES)
        if room.wal is not None:
            move_wal(room.data, room.wal)

    def _cluster(self, data: Path) -> Cluster:
        workspace = self._workspace
        settings = {**self.setup.settings, **page_settings(self.setup)}
        sockets = workspace.socket_directory()
        setup = self.setup
        return Cluster(
            self._server,
            workspace.account,
            data,
            sockets,
            settings,
            setup.cpus,
            setup.environment,
            tcp=setup.connect == "tcp",
        )

    @contextmanager
    def _host_ready(self, cluster: Cluster) -> Iterator[None]:
        """The host as the arm asks for, with the huge pages that this very cluster needs."""
        pages = cluster.huge_pages_needed() if self.setup.huge_pages in KB else 0
        with self._machine.in_force(cluster.data_directory, pages):
            yield

    def _key(self, tables: Data) -> TemplateKey:
        return TemplateKey(self.kind, self._server.version, **tables.key)

    def _template(self, tables: Data, on_progress: Callable[[str], None]) -> Path:
        def build(data: Path) -> None:
            if tables == NO_TABLES:
                on_progress(f"PostgreSQL {self._server.version}: initdb")
                create_cluster(self._server, self._workspace.account, data, self.setup.initdb or [])
            else:
                copy_directory(self._template(NO_TABLES, on_progress), data, flush=False)
                self._load(data, tables, on_progress)

        staging = self._workspace.directory(f"template-{tables.short_name}")
        return self._workspace.templates.ensure(self._key(tables), staging, build)

    def _load(self, data: Path, tables: Data, on_progress: Callable[[str], None]) -> None:
        check_space(self._workspace.state, tables)
        on_progress(f"PostgreSQL {self._server.version}: loading {tables.label}")
        cluster = Cluster(
            self._server, self._workspace.account, data, self._workspace.socket_directory(), loading_settings(tables)
        )
        with cluster.running(data.parent / "loading.log") as target:
            load_data(target, tables, on_progress)


def _silent(line: str) -> None:
    del line
