"""An arm on a cluster of our own on this machine: the lab itself owns the server's process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from pgtrial.machines.machine import LOCAL
from pgtrial.model.study.spec import SetUp
from pgtrial.servers.arm import Needs
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.copy import copy_directory, move_wal
from pgtrial.servers.installations import resolve
from pgtrial.servers.machine_state import MachineState
from pgtrial.servers.made import MadeArm, Site
from pgtrial.servers.volumes import DataDirectories, Volumes
from pgtrial.servers.workspace import Workspace


class EmbeddedArm(MadeArm):
    """One set-up on this machine. Its templates are kept between studies."""

    def __init__(self, name: str, setup: SetUp, needs: Needs, workspace: Workspace) -> None:
        super().__init__(name, setup, needs, workspace)
        self.machine = LOCAL
        self._server = workspace.reachable(resolve(setup.postgres or "18"))
        initdb = " ".join(["initdb", *(setup.initdb or [])])
        self.kind = f"PostgreSQL {self._server.version} {self._server.digest[:16]} {initdb}"

    @property
    def targets(self) -> None:
        """A new one for each trial, here."""
        return

    def close(self) -> None:
        """Remove the kept copies, those that it shares with other arms as well."""
        kept = self._workspace.kept
        for copy in [copy for copy in kept if copy.owner in (None, self.name) and copy.template.kind == self.kind]:
            shutil.rmtree(kept.pop(copy), ignore_errors=True)

    @cached_property
    def _site(self) -> Site:
        workspace, setup, changes = self._workspace, self.setup, self._workspace.changes()
        return Site(
            LOCAL,
            self._server.version,
            workspace.directory,
            workspace.templates,
            workspace.kept,
            MachineState(self.name, setup, changes),
            Volumes(self.name, setup.storage, changes) if setup.storage is not None else None,
            (workspace.state, str(workspace.state), "set PGTRIAL_STATE to a directory on a larger disk"),
        )

    def _cluster(self, data: Path, loading: dict[str, str] | None = None) -> Cluster:
        workspace, setup = self._workspace, self.setup
        cluster = Cluster(self._server, workspace.account, data, workspace.socket_directory(), loading or {})
        if loading is None:
            cluster.settings, cluster.cpus = self._settings(), setup.cpus
            cluster.environment, cluster.tcp = setup.environment, setup.connect == "tcp"
        return cluster

    @property
    def _called(self) -> str:
        return f"PostgreSQL {self._server.version}"

    def _initdb(self, data: Path, on_progress: Callable[[str], None]) -> None:
        on_progress(f"{self._called}: initdb")
        create_cluster(self._server, self._workspace.account, data, self.setup.initdb or [])

    def _copy_tree(self, source: Path, to: DataDirectories, *, flush: bool) -> None:
        copy_directory(source, to.data, flush=flush and to.wal is None)
        if to.wal is not None:
            move_wal(to.data, to.wal)

    def _hurry(self) -> None:
        """Nothing here takes its time."""
