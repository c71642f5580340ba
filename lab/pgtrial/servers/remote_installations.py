"""Which PostgreSQL servers another host can run, and the one that a study means."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pgtrial.model.errors import StudyError

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine

_USUAL = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/opt/local/lib/postgresql*/bin",
    "/usr/pkg/bin",
)
"""Debian, PGDG's RPMs, built from source, FreeBSD and DragonFly, Arch and others, Homebrew, MacPorts, NetBSD."""

_NEEDED = ("postgres", "initdb", "pg_ctl", "psql")
_LOOK = (
    'for bin in {places}; do [ -x "$bin/postgres" ] || continue; missing=; '
    f'for name in {" ".join(_NEEDED)}; do [ -x "$bin/$name" ] || missing="$missing $name"; done; '
    'echo "$bin|$missing|$("$bin/postgres" --version 2>&1)|$(cksum < "$bin/postgres")"; done'
)
_VERSION = re.compile(r"PostgreSQL\) (\S+)")


@dataclass(frozen=True)
class RemoteBinaries:
    """One installation there: version as PostgreSQL prints it, bin directory, and a checksum of the postgres program.

    The checksum tells a rebuilt server of one version from another on the same host (cksum of POSIX).
    """

    version: str
    major: int
    bin: Path
    checksum: str


def find_server(machine: RemoteMachine, wanted: str, account: str | None) -> RemoteBinaries:
    """The server for a major version or a bin directory there. Raises StudyError naming what there is instead."""
    where = f"postgres = {wanted!r} on {machine.label}"
    if "/" not in wanted:
        complete = [server for server, missing in _look(machine, " ".join(_USUAL), account) if not missing]
        for server in complete:
            if wanted in (server.version, str(server.major)):
                return server
        raise StudyError(
            f"{where}: there is no PostgreSQL {wanted}; {_listed(complete)}; install it there, or give its "
            "bin directory"
        )
    directory = Path(wanted)
    if not directory.is_absolute():
        raise StudyError(f"{where}: a bin directory there is written from / on, such as /usr/local/bin")
    for server, missing in _look(machine, shlex.quote(str(directory)), account):
        if missing:
            raise StudyError(
                f"{where}: {' and '.join(missing)} not found there; give the directory that holds "
                f"{', '.join(_NEEDED[:-1])} and {_NEEDED[-1]}"
            )
        return server
    there = [server for server, missing in _look(machine, " ".join(_USUAL), account) if not missing]
    raise StudyError(
        f"{where}: the user {account or 'of the login'} finds no program postgres there that can be run; "
        f"{_listed(there)}"
    )


def _look(machine: RemoteMachine, places: str, account: str | None) -> list[tuple[RemoteBinaries, list[str]]]:
    """The installations at these places, and the programs that each lacks."""
    found = []
    printed = machine.looked(["sh", "-c", _LOOK.format(places=places)], user=account).stdout
    for line in printed.splitlines():
        bin_directory, missing, said, checksum = (line.split("|") + [""] * 3)[:4]
        version = _VERSION.search(said)
        if version is not None:
            major = int(re.split(r"\D", version[1])[0])
            server = RemoteBinaries(version[1], major, Path(bin_directory), "-".join(checksum.split()[:2]))
            found.append((server, missing.split()))
    return found


def _listed(servers: list[RemoteBinaries]) -> str:
    return "there are " + ", ".join(f"{one.version} ({one.bin})" for one in servers) if servers else "none was found"
