"""buildah with a storage of its own, which is removed at the end. It needs neither a daemon nor a registry."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from distribution.running import run

_ENVIRONMENT = {"BUILDAH_ISOLATION": "chroot"}
"""The environment of buildah: isolation by chroot needs no other program, and works inside a container too."""


class Buildah:
    """Calls of buildah on one storage. The driver vfs copies layers, so that no mount can stay."""

    def __init__(self, storage: Path) -> None:
        self._options = ["--root", storage / "layers", "--runroot", storage / "run", "--storage-driver", "vfs"]
        # buildah's own default is /var/tmp
        self._environment = {**_ENVIRONMENT, "TMPDIR": str(storage)}

    def __call__(self, *arguments: str | Path) -> str:
        """Runs buildah and returns its output. Raises DistributionError."""
        return run(self.command(*arguments), env=self._environment).strip()

    def command(self, *arguments: str | Path) -> list[str]:
        """Returns the command line of buildah with these arguments."""
        return list(map(str, ["buildah", *self._options, *arguments]))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that a call of buildah gets."""
        return {**os.environ, **self._environment}


@contextmanager
def buildah_in(storage: Path) -> Iterator[Buildah]:
    """Yields buildah with its containers and images below `storage`, a directory that does not exist yet and is removed
    at the end."""
    storage.mkdir(parents=True)
    try:
        yield Buildah(storage)
    finally:
        # a killed build can leave some; what they show must not be removed
        for mount in reversed(mounts_below(storage)):
            run(["umount", "--lazy", mount])
        shutil.rmtree(storage)


def mounts_below(directory: Path) -> list[str]:
    """Returns the mount points below a directory, in the order in which they were mounted."""
    points = (partition.mountpoint for partition in psutil.disk_partitions(all=True))
    return [point for point in points if Path(point).is_relative_to(directory)]
