"""An arm on a cluster of our own: initdb, load once, then a fresh copy and a fresh server for every trial."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pgtrial.arm.base import Needs, arm_kind, check_clients, timed
from pgtrial.arm.cluster import Cluster, create_cluster
from pgtrial.arm.connect import Target
from pgtrial.arm.lab_settings import check_settings, loading_settings
from pgtrial.arm.machine import MachineState, page_settings
from pgtrial.arm.servers import resolve
from pgtrial.arm.volumes import Place, Volumes
from pgtrial.arm.workspace import Workspace
from pgtrial.data.copy import copy_directory, move_wal
from pgtrial.data.sizes import SEGMENT_MB, check_space, prefilled_wal_mb, volume_mb
from pgtrial.data.tables import Contents, load_tables, reset_tables
from pgtrial.data.template import TemplateKey
from pgtrial.errors import ArmError, StudyError, TrialError
from pgtrial.host.pages import KB, counters
from pgtrial.study.spec import SetUp


@arm_kind(lambda setup: setup.dsn is None)
class EmbeddedArm:
    """One embedded set-up. Its template depends on server and data, not on the settings, and is shared by arms."""

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        check_settings(name, setup.settings)
        self.name = name
        self.setup = setup
        self.data_directory: Path | None = None
        self.host_seen: dict[str, dict[str, int]] = {}
        self._needs = needs
        self._workspace = workspace
        self._server = workspace.reachable(resolve(setup.postgres or "18"))
        self._kept: dict[int, Path] = {}
        self._machine = MachineState(name, setup, workspace)
        self._volumes = Volumes(name, setup.storage, workspace) if setup.storage is not None else None
        initdb = " ".join(["initdb", *(setup.initdb or [])])
        self.kind = f"PostgreSQL {self._server.version} {self._server.digest[:16]} {initdb}"

    def check(self, needs: Needs) -> None:
        """Start the server once with the arm's settings: what PostgreSQL refuses is refused here, in its words."""
        check_space(
            self._workspace.state,
            max(needs.scales),
            needs.fillfactor,
            templates=sum(self._workspace.templates.find(self._key(scale)) is None for scale in needs.scales),
        )
        self._machine.check()
        if self._volumes is not None:
            self._volumes.check(volume_mb(max(needs.scales), needs.fillfactor) * 1_000_000)
        log = self._workspace.directory(f"check-{self._server.major}.log")
        try:
            with self._place(f"check-{self._server.major}") as place:
                self._copy(0, place)
                cluster = self._cluster(place.data)
                with self._host_ready(cluster), cluster.running(log, immediate=True) as target:
                    check_clients(self.name, needs, *_connections(target))
        except (ArmError, TrialError) as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        finally:
            log.unlink(missing_ok=True)

    def prepare(self, scale: int, on_progress: Callable[[str], None]) -> None:
        """Make the template of this scale unless it is there."""
        self._template(scale, on_progress)

    @contextmanager
    def serve(self, scale: int, log: Path, timings: dict[str, float]) -> Iterator[Target]:
        """A server on a fresh copy of the template; with `reset` vacuum or none, on the copy of the trial before."""
        watches = self.setup.huge_pages in KB
        self.host_seen = {"before": counters()} if watches else {}
        with ExitStack() as stack:
            with timed(timings, "restore"):
                data = self._data(scale, stack)
                cluster = self._cluster(data)
                stack.enter_context(self._host_ready(cluster))
            keep = self.setup.reset in ("vacuum", "none")
            try:
                with timed(timings, "start"):
                    cluster.start(log)
                self.data_directory = data
                if watches:
                    self.host_seen["during"] = counters()
                if keep and scale > 0:
                    with cluster.target.connect() as connection:
                        reset_tables(connection, "none" if self.setup.reset == "none" else "vacuum")
                yield cluster.target
            finally:
                self.data_directory = None
                with timed(timings, "stop"):
                    cluster.stop(immediate=not keep)
                    stack.close()
                if watches:
                    self.host_seen["after"] = counters()

    def close(self) -> None:
        """Remove the kept copies."""
        for data in self._kept.values():
            shutil.rmtree(data, ignore_errors=True)
        self._kept.clear()

    def _data(self, scale: int, stack: ExitStack) -> Path:
        """The data of a trial: a fresh copy that `stack` removes, or the one that is kept."""
        if scale in self._kept:
            return self._kept[scale]
        if self.setup.reset != "copy":
            data = self._workspace.directory(f"{self._server.major}-s{scale}")
            copy_directory(self._template(scale, _silent), data)
            self._kept[scale] = data
            return data
        place = stack.enter_context(self._place(f"{self._server.major}-s{scale}"))
        self._copy(scale, place)
        return place.data

    @contextmanager
    def _place(self, name: str) -> Iterator[Place]:
        """Room for one copy, gone afterwards: on volumes of the arm's own, or in the run's directory."""
        if self._volumes is not None:
            with self._volumes.made() as place:
                yield place
            return
        data = self._workspace.directory(name)
        try:
            yield Place(data)
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _copy(self, scale: int, place: Place) -> None:
        copy_directory(self._template(scale, _silent), place.data, flush=scale > 0)
        if place.wal is not None:
            move_wal(place.data, place.wal)

    def _cluster(self, data: Path) -> Cluster:
        workspace = self._workspace
        settings = {**self.setup.settings, **page_settings(self.setup)}
        sockets = workspace.socket_directory()
        setup = self.setup
        return Cluster(self._server, workspace.account, data, sockets, settings, setup.cpus, setup.environment)

    @contextmanager
    def _host_ready(self, cluster: Cluster) -> Iterator[None]:
        """The host as the arm asks for, with the huge pages that this very cluster needs."""
        pages = cluster.huge_pages_needed() if self.setup.huge_pages in KB else 0
        with self._machine.in_force(cluster.data_directory, pages):
            yield

    def _key(self, scale: int) -> TemplateKey:
        if scale == 0:
            return TemplateKey(self.kind, self._server.version, 0)
        return TemplateKey(self.kind, self._server.version, scale, self._needs.fillfactor, self._needs.foreign_keys)

    def _template(self, scale: int, on_progress: Callable[[str], None]) -> Path:
        def build(data: Path) -> None:
            if scale == 0:
                on_progress(f"PostgreSQL {self._server.version}: initdb")
                create_cluster(self._server, self._workspace.account, data, self.setup.initdb or [])
            else:
                copy_directory(self._template(0, on_progress), data, flush=False)
                self._load(data, scale, on_progress)

        staging = self._workspace.directory(f"template-s{scale}")
        return self._workspace.templates.ensure(self._key(scale), staging, build)

    def _load(self, data: Path, scale: int, on_progress: Callable[[str], None]) -> None:
        check_space(self._workspace.state, scale, self._needs.fillfactor)
        contents = Contents(scale, self._needs.fillfactor, self._needs.foreign_keys)
        on_progress(f"PostgreSQL {self._server.version}: loading scale {scale}")
        cluster = Cluster(
            self._server, self._workspace.account, data, self._workspace.socket_directory(), loading_settings(scale)
        )
        with cluster.running(data.parent / "loading.log") as target:
            load_tables(target, contents, on_progress)
            _prefill_wal(target, scale)


def _prefill_wal(target: Target, scale: int) -> None:
    """Use up segments and recycle them, so that trials find ready-made WAL files (see data.sizes)."""
    with target.connect() as connection:
        for _ in range(prefilled_wal_mb(scale) // SEGMENT_MB):
            connection.execute("SELECT pg_logical_emit_message(false, 'pgtrial', 'x')")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")


def _connections(target: Target) -> tuple[int, int]:
    with target.connect() as connection:
        rows = connection.execute(
            "SELECT name, setting::int FROM pg_settings WHERE name IN "
            "('max_connections', 'superuser_reserved_connections', 'reserved_connections')"
        ).fetchall()
    values = dict(rows)
    reserved = values.get("superuser_reserved_connections", 0) + values.get("reserved_connections", 0)
    return values["max_connections"], reserved


def _silent(line: str) -> None:
    del line
