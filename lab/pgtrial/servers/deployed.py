"""An arm of several given servers of one product: each trial runs on the one that the plan drew for its block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from pgtrial.loads.data.data import Data
from pgtrial.loads.target import Target
from pgtrial.machines.machine import Machine
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.given import GivenArm
from pgtrial.servers.workspace import Workspace


class DeployedArm:
    """Its deployments, each a given server of its own, with the same settings."""

    def __init__(self, name: str, setup: Given, needs: Needs, workspace: Workspace) -> None:
        self.name = name
        self.setup = setup
        self.host_seen: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []
        self.machine: Machine | None = None
        self.data_directory: Path | None = None
        self._servers = [GivenArm(name, own, needs, workspace) for own in setup.deployments]

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
        self, tables: Data, log: Path, timings: dict[str, float], place: int | None = None
    ) -> AbstractContextManager[Target]:
        """The deployment of this number."""
        return self._servers[place or 0].serve(tables, log, timings)

    def fetch_log(self, log: Path) -> None:
        """It stays there."""

    def close(self) -> None:
        """Nothing outlives a trial."""


def given_arm(name: str, setup: Given, needs: Needs, workspace: Workspace) -> Arm:
    """The arm of one given server, or of several."""
    return (GivenArm if len(setup.dsn) == 1 else DeployedArm)(name, setup, needs, workspace)
