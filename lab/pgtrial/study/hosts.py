"""On which host each arm's server is, by the study file alone: nothing is resolved or reached. Pure functions."""

from __future__ import annotations

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from pgtrial.store.machines import ServerHost
from pgtrial.study.spec import ENVIRONMENT, SetUp, StudySpec

HERE = ServerHost(label="this machine", by="this machine")


def hosts_of(spec: StudySpec) -> dict[str, list[ServerHost]]:
    """The hosts of each arm, one for each of its deployments; empty where all servers are on the lab's machine."""
    found = {arm: _hosts(spec.resolved(arm)) for arm in spec.arms}
    return found if any(host != HERE for hosts in found.values() for host in hosts) else {}


def _hosts(setup: SetUp) -> list[ServerHost]:
    if setup.dsn is not None:
        return [_given(each) for each in setup.deployments]
    if setup.ssh is None:
        return [HERE]
    address = setup.address or setup.ssh.rpartition("@")[2]
    return [ServerHost(label=setup.ssh, by="ssh", address=address, data=setup.data)]


def _given(setup: SetUp) -> ServerHost:
    """By its host alone: a connection string may hold a password."""
    if setup.dsn == [ENVIRONMENT]:
        return ServerHost(label="as the environment says", by="dsn", looked_at=setup.ssh)
    try:
        parts = conninfo_to_dict(setup.conninfo)
    except ProgrammingError:  # refused, with a sentence, when the study is frozen
        parts = {}
    host = parts.get("host") or parts.get("hostaddr")
    if host is None:
        label = f"service {parts['service']}" if "service" in parts else "a given server"
        return ServerHost(label=label, by="dsn", looked_at=setup.ssh)
    address = parts.get("hostaddr") or host
    return ServerHost(label=str(host), by="dsn", address=str(address), looked_at=setup.ssh)
