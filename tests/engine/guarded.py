"""Servers that ask who is there, and programs that are run against them with nothing but the variables of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pgtrial.servers.access import reserved_port
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.workspace import Workspace
from tests.conftest import require_server
from tests.engine.programs import TIMEOUT_S, Ended, Program

ADDRESS = "127.0.0.1"
PASSWORD = "correct horse"


@contextmanager
def serving(
    workspace: Workspace,
    major: int,
    hba: str,
    settings: Mapping[str, str],
    prepare: Callable[[Cluster], None] = lambda cluster: None,
) -> Iterator[Cluster]:
    """Yields a running new cluster, on a free port of the loopback address and on a socket. `prepare` is called before
    it starts.
    """
    server = workspace.reachable(require_server(major))
    data = workspace.directory(f"guarded-{major}")
    create_cluster(workspace, server, data)
    log = data.with_suffix(".log")
    try:
        with reserved_port() as port:
            everything = {"listen_addresses": ADDRESS, "port": str(port), "fsync": "off", **settings}
            cluster = Cluster(workspace, server, data, workspace.socket_directory(), everything)
            (data / "pg_hba.conf").write_text(f"local all postgres trust\n{hba}")
            prepare(cluster)
            with cluster.running(log, immediate=True):
                yield cluster
    finally:
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)


def run(program: Program, *args: str, **env: str) -> Ended:
    """Run a program away from any terminal, with these variables and a search path only."""
    done = subprocess.run(
        [*program.command, *args],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        start_new_session=True,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def variables(cluster: Cluster, user: str, **more: str) -> dict[str, str]:
    """Returns the PG* variables with which a user connects to a cluster over TCP."""
    return {"PGHOST": ADDRESS, "PGPORT": str(cluster.port), "PGUSER": user, "PGDATABASE": "postgres", **more}


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner can read."""
    path.write_text(text)
    path.chmod(0o600)
    return path
