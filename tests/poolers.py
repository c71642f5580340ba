"""A real pgbouncer before a server of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from tests.conftest import require

PATIENCE_S = 30.0
PORT = 6432


@contextmanager
def pooled(cluster: Cluster, mode: str, *, size: int = 3, dbname: str = "postgres") -> Iterator[Target]:
    """Yields a target behind PgBouncer with this pool_mode and `size` connections, or skips the test without
    PgBouncer.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    require(program, "/usr/sbin/pgbouncer (Debian's package pgbouncer)")
    assert program is not None
    folder = cluster.socket_directory
    path, log = folder / f"{mode}.ini", folder / "bouncer.log"
    path.write_text(
        f"[databases]\n* = host={folder} port={cluster.port} user=postgres\n[pgbouncer]\npool_mode = {mode}\n"
        f"listen_addr =\nunix_socket_dir = {folder}\nlisten_port = {PORT}\nauth_type = any\npidfile =\n"
        f"logfile = {log}\ndefault_pool_size = {size}\nignore_startup_parameters = extra_float_digits\n"
    )
    path.chmod(0o644)
    account = pwd.getpwuid(cluster.data_directory.stat().st_uid)
    as_it = {"user": account.pw_uid, "group": account.pw_gid} if os.geteuid() == 0 else {}
    process = subprocess.Popen([program, "-q", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_it)
    try:
        yield _once_ready(Target(str(folder), PORT, "postgres", dbname), log)
    finally:
        process.kill()
        process.wait()


def _once_ready(target: Target, log: Path) -> Target:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            target.connect_as_user().close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return target
