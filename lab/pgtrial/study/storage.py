"""The place of an arm's data as a study file describes it: a filesystem made for it, or a directory that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pgtrial.study.units import Bytes

Filesystem = Literal["ext4", "xfs", "btrfs", "zfs", "tmpfs"]

_GIB = 1024**3


class Volume(BaseModel):
    """One volume, made anew for each trial and destroyed after it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fs: Filesystem | None = Field(None, description="ext4, xfs, btrfs, zfs or tmpfs; not needed for a directory.")
    size: Bytes = Field(8 * _GIB, gt=0, description="Size of a loop volume or a tmpfs: `8GB`, `512MiB`.")
    mkfs: list[str] = Field([], description="Further options of mkfs; for zfs properties of the pool: `ashift=12`.")
    mount: list[str] = Field(
        [],
        description="Mount options, each verified to be in force; for zfs properties: `recordsize=8K`.",
    )
    on: str = Field(
        "loop",
        description="`loop`: a file below the state directory, the same blocks for every arm; a device `/dev/...`, "
        "which has to be empty; or a directory, in which the data gets one of its own and nothing is made.",
    )
    preallocate: bool = Field(True, description="Whether the file of a loop volume has its blocks from the beginning.")
    overwrite: bool = Field(False, description="Whether a device may be used although it holds a filesystem.")

    @property
    def device(self) -> Path | None:
        """The device that is given over, if it is one."""
        return Path(self.on) if self.on.startswith("/dev/") else None

    @property
    def directory(self) -> Path | None:
        """The directory that is there already, if it is one."""
        return Path(self.on) if self.on.startswith("/") and self.device is None else None

    @model_validator(mode="after")
    def _fits_together(self) -> Volume:
        if self.on != "loop" and not self.on.startswith("/"):
            raise ValueError(f"on = {self.on!r} is no place; write loop, a device (/dev/...) or a directory (/...)")
        if self.directory is None and self.fs is None:
            raise ValueError("a volume needs fs: ext4, xfs, btrfs, zfs or tmpfs")
        if self.directory is not None and (self.mkfs or self.overwrite):
            raise ValueError(
                f"nothing is made in the directory {self.on}; leave out mkfs and overwrite, or name a device"
            )
        if self.fs == "tmpfs" and self.on != "loop":
            raise ValueError("a tmpfs is in memory; leave out on")
        return self


class Storage(Volume):
    """The place of the data directory, and of the WAL if it has one of its own."""

    wal: Volume | None = Field(None, description="A volume of its own for the WAL, with the same keys.")
