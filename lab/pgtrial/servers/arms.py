"""The arms of a study: every kind of arm, listed here, and which of them serves a set-up."""

from __future__ import annotations

from collections.abc import Callable

from pgtrial.model.study.spec import SetUp, StudySpec
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.deployed import DeployedArm
from pgtrial.servers.given import GivenArm
from pgtrial.servers.made import MadeArm
from pgtrial.servers.workspace import Workspace

_Maker = Callable[[str, SetUp, Needs, Workspace], Arm]


def make_arms(spec: StudySpec, workspace: Workspace) -> dict[str, Arm]:
    """The study's arms by name, in its order; nothing is started yet. Raises StudyError."""
    needs = Needs.of(spec)
    return {name: _kind(spec.resolved(name))(name, spec.resolved(name), needs, workspace) for name in spec.arms}


def _kind(setup: SetUp) -> _Maker:
    if setup.dsn is not None:
        return GivenArm if len(setup.dsn) == 1 else DeployedArm
    return MadeArm
