"""Finds out the format, the files and the digest of a dump."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NoReturn

from pgtrial.files.reading import open_file
from pgtrial.model.errors import StudyError
from pgtrial.model.study.packs import ROWS

DumpKind = Literal["plain", "archive"]
"""The kind of a dump: `plain` is SQL, which pgtrial runs itself; `archive` is the custom, tar or directory format of
pg_dump, which pg_restore reads."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_ARCHIVES = ((0, b"PGDMP"), (257, b"ustar"))
"""The offset and the bytes by which pgtrial recognises a dump in custom or tar format."""
_SHOWN = 3
"""The largest number of files of a folder that a message lists."""
_CONTENTS = "toc.dat"
"""The file by which a dump in directory format is recognised."""


def check_present(paths: Iterable[Path]) -> None:
    """Raises StudyError if a file or directory of a planned study, such as its data, does not exist on this machine."""
    for path in paths:
        if not path.exists():
            raise StudyError(
                f"{path}, which the study needs, does not exist on this machine, and a bundle does not contain it; put "
                "it there, or copy study.toml with its scripts to a directory of your own (tar -xf unpacks a bundle), "
                "write the path on this machine into the copy, and run the copy"
            )


def kind_of_dump(path: Path) -> DumpKind:
    """Returns the kind of a dump, `plain` or `archive`, which decides how it is restored. Raises StudyError if the path
    is not a dump that pgtrial can restore."""
    if path.is_fifo():
        raise StudyError(
            f"{path} is a pipe, but pgtrial reads data several times, also when a study is continued; write the data "
            "to a file, and name the file"
        )
    if path.is_dir():
        if (path / "PG_VERSION").is_file():
            raise StudyError(
                f"{path} is a data directory, which only servers of one version can read; start a server on it, and "
                "make a dump with pg_dump"
            )
        if (files := sorted(file.name for file in path.glob("*.sql"))) and not (path / _CONTENTS).is_file():
            named = ", ".join(f'"{path.name}/{name}"' for name in files[:_SHOWN])
            more = ", ..." if len(files) > _SHOWN else ""
            raise StudyError(
                f"{path} is a folder of SQL files, but not in which order to run them; name the files in their order: "
                f"data = [{named}{more}]"
            )
        if not (path / _CONTENTS).is_file():
            raise StudyError(
                f"{path} is not a dump: a directory that pg_dump wrote has a file {_CONTENTS}; name such a "
                "directory, or a file that pg_dump wrote"
            )
        return "archive"
    if path.suffix.lower() in ROWS:
        raise StudyError(
            f"{path} has only the rows of a table and no SQL; name a file of SQL that creates the table and has the "
            "rows behind COPY ... FROM stdin WITH (FORMAT csv), and \\. as its last line"
        )
    with open_file(path) as file:
        begin = file.read(512)
    if any(begin[offset:].startswith(mark) for offset, mark in _ARCHIVES):
        return "archive"
    if b"\0" in begin or begin.startswith(b"\x1f\x8b"):
        cure = "save it in UTF-8" if begin.startswith(_UTF_16) else "decompress it if it is compressed"
        raise StudyError(f"{path} is not a dump in a format of pg_dump; {cure}")
    return "plain"


def parts_of_dump(path: Path) -> list[Path]:
    """Returns the files of a dump, in the order of their names. Pipes and devices in a directory are returned too, so
    that reading the dump fails on them. Raises OSError if a directory cannot be listed."""
    if not path.is_dir():
        return [path]
    return sorted(Path(folder, name) for folder, _, names in os.walk(path, onerror=_raise) for name in names)


def _raise(error: OSError) -> NoReturn:
    raise error


def from_root(named: str, folder: Path) -> str:
    """Returns the absolute path for a path in a study file, so that the study can be continued from any directory."""
    return str((folder / Path(named).expanduser()).absolute())


def digest_of(root: Path, parts: list[Path]) -> str:
    """Returns a SHA-256 over the contents of files and their paths below `root`."""
    whole = hashlib.sha256()
    for path in parts:
        with open_file(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()} {digest}\n".encode())
    return whole.hexdigest()
