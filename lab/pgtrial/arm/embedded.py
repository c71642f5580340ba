"""An arm on a cluster of our own: initdb, load once, then a fresh copy and a fresh server for every trial."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pgtrial.arm.base import Needs, arm_kind, check_clients, timed
from pgtrial.arm.cluster import Cluster, create_cluster
from pgtrial.arm.connect import Target
from pgtrial.arm.lab_settings import check_settings, loading_settings
from pgtrial.arm.servers import resolve
from pgtrial.arm.workspace import Workspace
from pgtrial.data.copy import copy_directory
from pgtrial.data.sizes import SEGMENT_MB, check_space, prefilled_wal_mb
from pgtrial.data.tables import Contents, load_tables, reset_tables
from pgtrial.data.template import TemplateKey
from pgtrial.errors import ArmError, StudyError
from pgtrial.study.spec import SetUp


@arm_kind(lambda setup: setup.dsn is None)
class EmbeddedArm:
    """One embedded set-up. Its template depends on server and data, not on the settings, and is shared by arms."""

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        check_settings(name, setup.settings)
        self.name = name
        self.setup = setup
        self.data_directory: Path | None = None
        self._needs = needs
        self._workspace = workspace
        self._server = workspace.reachable(resolve(setup.postgres or "18"))
        self._kept: dict[int, Path] = {}
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
        data = self._workspace.directory(f"check-{self._server.major}")
        log = data.with_suffix(".log")
        try:
            copy_directory(self._template(0, _silent), data, flush=False)
            with self._cluster(data).running(log, immediate=True) as target:
                check_clients(self.name, needs, *_connections(target))
        except ArmError as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        finally:
            shutil.rmtree(data, ignore_errors=True)
            log.unlink(missing_ok=True)

    def prepare(self, scale: int, on_progress: Callable[[str], None]) -> None:
        """Make the template of this scale unless it is there."""
        self._template(scale, on_progress)

    @contextmanager
    def serve(self, scale: int, log: Path, timings: dict[str, float]) -> Iterator[Target]:
        """A server on a fresh copy of the template; with `reset` vacuum or none, on the copy of the trial before."""
        with timed(timings, "restore"):
            data = self._data(scale)
        cluster = self._cluster(data)
        keep = self.setup.reset in ("vacuum", "none")
        try:
            with timed(timings, "start"):
                cluster.start(log)
            self.data_directory = data
            if keep and scale > 0:
                with cluster.target.connect() as connection:
                    reset_tables(connection, "none" if self.setup.reset == "none" else "vacuum")
            yield cluster.target
        finally:
            self.data_directory = None
            with timed(timings, "stop"):
                cluster.stop(immediate=not keep)
                if not keep:
                    shutil.rmtree(data, ignore_errors=True)

    def close(self) -> None:
        """Remove the kept copies."""
        for data in self._kept.values():
            shutil.rmtree(data, ignore_errors=True)
        self._kept.clear()

    def _data(self, scale: int) -> Path:
        if scale in self._kept:
            return self._kept[scale]
        data = self._workspace.directory(f"{self._server.major}-s{scale}")
        copy_directory(self._template(scale, _silent), data)
        if self.setup.reset != "copy":
            self._kept[scale] = data
        return data

    def _cluster(self, data: Path) -> Cluster:
        workspace = self._workspace
        return Cluster(self._server, workspace.account, data, workspace.socket_directory(), self.setup.settings)

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
