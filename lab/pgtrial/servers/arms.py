"""The arms of a study: every kind of arm, listed here by the kind of server that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pgtrial.model.study.servers import Given, MadeBySsh, MadeHere, Server
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.deployed import given_arm
from pgtrial.servers.made import MadeArm
from pgtrial.servers.sessions import SessionArm, SharedServer
from pgtrial.servers.workspace import Workspace

_KINDS: dict[type[Server], Callable[[str, Any, Needs, Workspace], Arm]] = {
    Given: given_arm,
    MadeHere: MadeArm,
    MadeBySsh: MadeArm,
}


def make_arms(
    spec: StudySpec, workspace: Workspace, sessions: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Arm]:
    """The study's arms by name, in its order; nothing is started yet. Raises StudyError.

    `sessions`, by arm: the settings of its sessions, where all arms share one server.
    """
    needs = Needs.of(spec)
    servers = {name: spec.resolved(name) for name in spec.arms}
    if sessions:
        own = servers[spec.baseline]
        kept = {name: value for name, value in own.settings.items() if name not in sessions[spec.baseline]}
        server = SharedServer(_KINDS[type(own)](spec.baseline, replace(own, settings=kept), needs, workspace))
        return {name: SessionArm(name, servers[name], sessions[name], server) for name in spec.arms}
    return {name: _KINDS[type(server)](name, server, needs, workspace) for name, server in servers.items()}
