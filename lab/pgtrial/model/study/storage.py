"""The keys for the place of an arm's data: a file system that pgtrial makes, or a directory that exists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.units import Bytes, as_list

Filesystem = Literal["ext4", "xfs", "btrfs", "zfs", "tmpfs"]

_GIB = 1024**3


class Volume(Record):
    """A volume for data, which pgtrial makes for each trial and destroys after it."""

    fs: Filesystem | None = Field(
        None, description="The file system that pgtrial makes. Leave the key out if `on` is a directory that exists."
    )
    size: Bytes = Field(8 * _GIB, gt=0, description="The size of a loop volume or of a tmpfs, such as `8GB`.")
    mkfs: Annotated[list[str], BeforeValidator(as_list)] = Field(
        [], description="Options of mkfs. For zfs, properties of the ZFS pool, such as `ashift=12`."
    )
    mount: Annotated[list[str], BeforeValidator(as_list)] = Field(
        [],
        description="Mount options; pgtrial checks that they are in force. For zfs, properties of the file system, "
        "such as `recordsize=8K`.",
    )
    on: Annotated[list[str], BeforeValidator(as_list)] = Field(
        ["loop"],
        min_length=1,
        description="Where pgtrial makes the volume. `loop`: in a file of the state directory. `/dev/...`: on an "
        "empty device. Any other path: a directory that exists, in which pgtrial makes no volume. If it is a list, "
        "each trial gets one of the devices or directories at random.",
    )
    preallocate: bool = Field(
        True, description="True to reserve the disk space of the file for a loop volume when the file is made."
    )
    overwrite: bool = Field(
        False,
        description="True to overwrite a device that already has a file system. Otherwise pgtrial refuses such a "
        "device.",
    )

    @property
    def device(self) -> Path | None:
        """Returns the device on which pgtrial makes the volume, or the first one if the key `on` has a list of devices.
        None if the volume is not on a device."""
        return Path(self.on[0]) if self.on[0].startswith("/dev/") else None

    @property
    def directory(self) -> Path | None:
        """Returns the existing directory that holds the data, or the first one if the key `on` has a list of
        directories. None if the data are on a volume that pgtrial makes."""
        return Path(self.on[0]) if self.on[0].startswith("/") and self.device is None else None

    def at(self, index: int | None) -> Self:
        """Returns the same volume on one of the devices or directories that its list names. `index` is the index in the
        list; if it is None, the volume is returned unchanged."""
        return self if index is None else self.model_copy(update={"on": [self.on[index]]})

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        named = ", ".join(self.on)
        for path in self.on:
            if path != "loop" and not path.startswith("/"):
                raise ValueError(
                    f"on = {quoted(path)} is not a place for a volume; write loop, a device (/dev/...) or a directory "
                    "(/...)"
                )
        if len({path.startswith("/dev/") for path in self.on}) > 1 or (len(self.on) > 1 and "loop" in self.on):
            raise ValueError(f"on lists places of different kinds ({named}); list devices only, or directories only")
        if len(set(self.on)) < len(self.on):
            raise ValueError(f"on lists a place more than once ({named}); name each place once")
        if self.directory is None and self.fs is None:
            raise ValueError("a volume needs fs, the file system to make; write ext4, xfs, btrfs, zfs or tmpfs")
        if self.directory is not None and (self.mkfs or self.overwrite):
            raise ValueError(
                f"pgtrial makes nothing in the directory {named}; leave out mkfs and overwrite, or name a device"
            )
        if self.fs == "tmpfs" and self.on != ["loop"]:
            raise ValueError("a tmpfs is in memory and needs no device or directory; leave out the key on")
        return self


class Storage(Volume):
    """The volume for the data, `storage = { fs = "ext4", size = "8GB", mount = ["noatime"] }`. pgtrial makes it for
    each trial and destroys it after the trial."""

    wal: Volume | None = Field(None, description="A volume of its own for the WAL, with the same keys.")

    def at(self, index: int | None) -> Self:
        """Returns the same storage on one of the devices or directories that its list names; `index` is the index in
        the list. If the WAL volume has a list too, the entry with the same index is used."""
        placed = super().at(index)
        wal = self.wal
        return placed if wal is None or len(wal.on) == 1 else placed.model_copy(update={"wal": wal.at(index)})

    @model_validator(mode="after")
    def _wal_goes_along(self) -> Self:
        if self.wal is not None and len(self.wal.on) not in (1, len(self.on)):
            raise ValueError(
                f"wal.on lists {len(self.wal.on)} places and on lists {len(self.on)}, and pgtrial uses the "
                "places of the two lists in pairs; list as many in each, or give the WAL one place for all"
            )
        return self


def facts_of_storage(storage: Storage | None, base: Storage | None) -> list[str]:
    """Returns the names of the facts that differ between arms with these storages, as far as the study file tells."""
    return [*_facts("", storage, base), *_facts("wal_", storage and storage.wal, base and base.wal)]


def _facts(prefix: str, volume: Volume | None, base: Volume | None) -> list[str]:
    """Returns the names of the facts that differ between arms with these volumes. If the file systems differ, all facts
    about the file system count as different; otherwise only the facts about options that differ."""
    if volume == base:
        return []
    if volume is None or base is None or (volume.fs, volume.on) != (base.fs, base.on):
        facts = ["filesystem", "filesystem_parameters", "mount_options", "source", "device"]
    else:
        facts = ["mount_options"] if volume.mount != base.mount else []
        facts += ["filesystem_parameters"] if volume.mkfs != base.mkfs or volume.fs == "zfs" else []
        facts += ["size"] if volume.size != base.size else []
    return [f"storage.{prefix}{name}" for name in facts]
