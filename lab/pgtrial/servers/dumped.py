"""Dumps an existing database that a study uses as its data. The dump is taken once, by the pg_dump that fits best.

The best is a pg_dump of the database server's own major version, or of the nearest later version. It must not be later
than the version of the oldest arm, whose pg_restore has to read the dump. Newer servers can restore what an older
pg_dump has written, so that all arms get the same data. The dump stays in the state directory until the templates are
made from it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pgtrial.loads.process import finished
from pgtrial.loads.target import CONNECT_TIMEOUT_S, open_session, value
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.machines.trust import check_program
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import MadeHere, conninfo_of
from pgtrial.model.units import format_size
from pgtrial.servers.connection_errors import cure_of, reason_of, what_to_check, where_tried
from pgtrial.servers.given import target_of, without_password
from pgtrial.servers.installations import ServerBinaries, client_directories, find_servers, resolve
from pgtrial.store.files import take_name
from pgtrial.store.own_data import DUMP_ENDINGS, data_paths, is_to_be_dumped, note_size, size_of_dumped
from pgtrial.store.state import own_directory

_VERSION = re.compile(r"\(PostgreSQL\) (\d[\d.]*)")


def take_dump(design: Design) -> str | None:
    """Dumps the database that the study names as its data. Returns a sentence on the dump for the user. Returns None if
    the study names no database, or if the dump exists already.

    `design` contains the password if the user has given one in the connection string; pg_dump gets it in its
    environment only. Raises StudyError and ArmError.
    """
    spec = design.spec
    if not is_to_be_dumped(spec) or size_of_dumped(spec) is not None:
        return None
    (path,) = data_paths(spec)
    conninfo = conninfo_of(spec.load.data[0])
    shown = without_password(conninfo)
    try:
        with open_session(conninfo, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as session:
            source, major = target_of(session), session.info.server_version // 10000
            size = int(value(session, "SELECT pg_database_size(current_database())"))
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise not_connected(marks.key("load", "data"), conninfo, error) from None
    server = _oldest([resolve(made.postgres) for made in design.made.values() if isinstance(made, MadeHere)])
    if server.major < major:
        raise StudyError(
            f"{marks.key('load', 'data')}: {shown} is PostgreSQL {major}, and the oldest arm is PostgreSQL "
            f"{server.version}, whose pg_dump cannot dump it; name no arm that is older than the database, or name as "
            "data a dump or SQL files that the oldest arm can load"
        )
    candidates = [program for program in _pg_dumps() if major <= program.major <= server.major]
    if not candidates:
        raise StudyError(
            f"{marks.key('load', 'data')}: {shown} is PostgreSQL {major}, and this machine has no pg_dump of "
            f"{_range(major, server.major)} that could dump it; install your system's package "
            f"postgresql-client-{major}, or name a dump of it"
        )
    own_directory(path.parent)
    path.parent.chmod(0o700)
    free = shutil.disk_usage(path.parent).free
    if free < size:
        raise StudyError(
            f"{marks.key('load', 'data')}: {shown} has {format_size(size)}, but only {format_size(free)} are free in "
            f"{path.parent}; set PGTRIAL_STATE to a directory on a larger disk"
        )
    by = _first_that_works(candidates, path, source.environment(), shown)
    note_size(path, size)
    return (
        f"dumped {shown} ({format_size(size)}) by pg_dump {by.version}; the study's data does not have later changes "
        "of that database"
    )


def not_connected(named_by: str, conninfo: str, error: psycopg.Error) -> StudyError:
    """Returns the error for a database to which pgtrial cannot connect, with the server's reason and the advice.
    `named_by` is the option or the key that names the database."""
    reason = reason_of(error)
    parts = conninfo_to_dict(conninfo)
    cure = cure_of(reason, parts) or what_to_check(parts)
    shown = without_password(conninfo)
    return StudyError(f"{named_by}: cannot connect to {shown}{where_tried(error, parts)}: {reason}; {cure}")


@dataclass(frozen=True)
class _PgDump:
    """A pg_dump program of this machine, and its version."""

    program: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version)[0])


def _pg_dumps() -> list[_PgDump]:
    """Returns every pg_dump of this machine: the oldest major version first, and within a major version the latest
    minor release first.

    Also looks at directories that have client programs but no server.
    """
    found: dict[Path, _PgDump] = {}
    for directory in [*(server.bin for server in find_servers()), *map(Path, client_directories())]:
        program = directory / "pg_dump"
        if program.is_file() and (real := program.resolve()) not in found:
            with suppress(HostError):  # skip a pg_dump that root must not run, or that does not run on this machine
                check_program(program)
                version = _VERSION.search(LOCAL.run([program, "--version"]).stdout)
                if version is not None:
                    found[real] = _PgDump(program, version[1])
    newest = sorted(found.values(), key=lambda one: [int(part) for part in one.version.split(".")], reverse=True)
    return sorted(newest, key=lambda one: one.major)


def _range(oldest: int, newest: int) -> str:
    return f"version {oldest}" if oldest == newest else f"the versions {oldest} to {newest}"


def _first_that_works(candidates: Sequence[_PgDump], path: Path, environment: dict[str, str], shown: str) -> _PgDump:
    """Dumps the database by the first of these pg_dump programs that succeeds, and returns that program. If all fail,
    raises ArmError with the message of the first program."""
    first: ArmError | None = None
    for candidate in candidates:
        try:
            _dump(candidate.program, path, environment, shown)
        except ArmError as error:
            first = first or error
        else:
            return candidate
    raise first or ArmError(f"this machine has no pg_dump that can dump {shown}")


def _oldest(servers: Sequence[ServerBinaries]) -> ServerBinaries:
    return min(servers, key=lambda server: server.major)


def _dump(program: Path, path: Path, environment: dict[str, str], shown: str) -> None:
    """Dumps the database to a file. Raises ArmError with the message of pg_dump."""
    part = path.with_suffix(DUMP_ENDINGS[1])
    part.touch(mode=0o600)
    # a subscription has a connection string with its password, and must not be active in a copy
    options = ["--format=custom", "--no-owner", "--no-subscriptions", f"--file={part}"]
    done = finished([program, *options], environment)
    if done.returncode != 0:
        part.unlink()
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
        words = errors[0].removeprefix("pg_dump: error: ") if errors else f"it ended with status {done.returncode}"
        raise ArmError(f"{program} cannot dump {shown}: {words}")
    take_name(part, path)
