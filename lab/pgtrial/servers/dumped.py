"""The dump of a database that is the data of a study: taken once, by the pg_dump of the oldest server of its arms.

Newer servers restore what an older pg_dump has written, so that all arms have the same data. The dump lies in the state
directory until the templates are made.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pgtrial.loads.process import finished
from pgtrial.loads.target import CONNECT_TIMEOUT_S, open_session, value
from pgtrial.machines.machine import HostError
from pgtrial.machines.trust import check_program
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.servers import MadeHere, conninfo_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_size
from pgtrial.servers.connection_errors import cure_of, reason_of
from pgtrial.servers.given import target_of, without_password
from pgtrial.servers.installations import ServerBinaries, resolve
from pgtrial.store.own_data import DUMP_ENDINGS, data_places, is_to_be_dumped, note_size, size_of_dumped
from pgtrial.store.state import own_directory


def take_dump(spec: StudySpec) -> str | None:
    """Dump the database of a study, unless that is done; what was done, one sentence, or None.

    `spec` has the password, if the user has given one in the connection string; it travels in the environment of
    pg_dump alone. Raises StudyError and ArmError.
    """
    if not is_to_be_dumped(spec) or size_of_dumped(spec) is not None:
        return None
    (path,) = data_places(spec)
    conninfo = conninfo_of(spec.load.data[0])
    shown = without_password(conninfo)
    try:
        with open_session(conninfo, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as session:
            source, major = target_of(session), session.info.server_version // 10000
            size = int(value(session, "SELECT pg_database_size(current_database())"))
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        reason = reason_of(error)
        cure = cure_of(reason, conninfo_to_dict(conninfo)) or "check that the server runs, and the host and port"
        raise StudyError(f"[load] data: cannot connect to {shown}: {reason}; {cure}") from None
    server = _oldest([resolve(made.postgres) for arm in spec.arms if isinstance(made := spec.resolved(arm), MadeHere)])
    if server.major < major:
        raise StudyError(
            f"[load] data: {shown} is PostgreSQL {major}, and the pg_dump of the oldest arm is {server.version}, which "
            "cannot dump it; take no older server as an arm, or name a dump or files of SQL that it can load"
        )
    own_directory(path.parent)
    path.parent.chmod(0o700)
    free = shutil.disk_usage(path.parent).free
    if free < size:
        raise StudyError(
            f"[load] data: {shown} has {format_size(size)}, and {format_size(free)} are free in {path.parent}; set "
            "PGTRIAL_STATE to a directory on a larger disk"
        )
    _dump(server.bin / "pg_dump", path, source.environment(), shown)
    note_size(path, size)
    return f"dumped {shown} ({format_size(size)}) by pg_dump {server.version}; later changes there are not in the data"


def _oldest(servers: Sequence[ServerBinaries]) -> ServerBinaries:
    return min(servers, key=lambda server: server.major)


def _dump(program: Path, path: Path, environment: dict[str, str], shown: str) -> None:
    """Raises ArmError in pg_dump's words."""
    if not program.is_file():
        raise ArmError(f"{program.parent} has no pg_dump to dump {shown}; name an installation that has it, or a dump")
    try:
        check_program(program)
    except HostError as error:
        raise ArmError(
            f"root does not run {program} to dump {shown}: {error}; name an installation of root's"
        ) from None
    part = path.with_suffix(DUMP_ENDINGS[1])
    part.touch(mode=0o600)
    # a subscription has a connection string with its password, and no place in a copy
    options = ["--format=custom", "--no-owner", "--no-privileges", "--no-subscriptions", f"--file={part}"]
    done = finished([program, *options], environment)
    if done.returncode != 0:
        part.unlink()
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
        words = errors[0].removeprefix("pg_dump: error: ") if errors else f"it ended with status {done.returncode}"
        raise ArmError(f"pg_dump cannot dump {shown}: {words}")
    part.rename(path)
