"""Finds the files of the user's own data that a study names (the key `data`), records their digests, and checks whether
they have changed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.study.own_data import DataFiles
from pgtrial.model.study.servers import Given, MadeBySsh
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.dumps import check_present, digest_of, from_root, kind_of_dump, parts_of_dump
from pgtrial.store.files import write_atomically
from pgtrial.store.state import state_root

_DUMPS = "dumps"
"""The folder in the state directory that keeps dumps of databases until the templates with their data are made."""
DUMP_ENDINGS = (".dump", ".part")
"""The file endings of a complete dump, and of a dump that is being written."""
_SIZE = ".size"
"""The ending of the file that records the size of a dumped database. This file is kept when the dump is removed."""


def with_data(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec with the absolute paths of the study's data, and with their digest and size. In the study file,
    the paths are relative to `folder`. Raises StudyError if the data cannot be read, or if pgtrial cannot load them
    into the server of an arm, such as a server of the user."""
    data = spec.load.data
    if not data:
        return spec
    for arm in spec.arms:
        server = spec.resolved(arm)
        if isinstance(server, Given):
            raise StudyError(
                f"{source}: {marks.at_arm(arm)}pgtrial loads data only into servers that it starts itself, and this "
                f"server is yours; load the data there once ({_by_hand(data, folder)}) and remove "
                f"{marks.key('load', 'data')}, or let pgtrial start a server (postgres=18 in place of the connection "
                "string)"
            )
        if isinstance(server, MadeBySsh) and names_server(data[0]):
            raise StudyError(
                f"{source}: {marks.at_arm(arm)}pgtrial can dump a database only with the pg_dump of a server on this "
                "machine; make a plain dump (pg_dump --format=plain), and name it as data"
            )
    if names_server(data[0]):
        return spec
    paths = [from_root(named, folder) for named in data]
    update = {"data": paths, "data_files": files_of(paths, f"{source}: {marks.key('load', 'data')}")}
    return spec.model_copy(update={"load": spec.load.model_copy(update=update)})


def _by_hand(data: Sequence[str], folder: Path) -> str:
    """Returns the commands with which users load the data into servers of their own."""
    if names_server(data[0]):
        return "pg_dump SOURCE | psql CONNECTION"
    return "; ".join(
        f"pg_restore -d CONNECTION {named}" if _is_archive(from_root(named, folder)) else f"psql -f {named} CONNECTION"
        for named in data
    )


def _is_archive(named: str) -> bool:
    with suppress(OSError, StudyError):  # files that cannot be read are reported elsewhere
        return kind_of_dump(Path(named)) == "archive"
    return False


def check_data_unchanged(spec: StudySpec) -> None:
    """Raises StudyError if a file of the study's data is missing or has changed since the study was planned."""
    for arm in spec.arms if spec.has_arm_data else [spec.baseline]:
        load = spec.for_arm(arm).load
        files, data = load.data_files, load.data
        if files is None or not data or names_server(data[0]):
            continue
        check_present(map(Path, data))
        if files_of(data, marks.key("load", "data")).sha256 != files.sha256:
            names = " or ".join(data)
            raise StudyError(f"{names} has changed since the study was planned; restore it, or start a new study")


def data_paths(spec: StudySpec) -> list[Path]:
    """Returns the paths of the files and directories with the study's data. If the study names a database as its data,
    this is the path of the dump that pgtrial makes of it."""
    data, files = spec.load.data, spec.load.data_files
    if files is not None and data and names_server(data[0]):
        return [dumps_of(state_root()) / f"{files.sha256}{DUMP_ENDINGS[0]}"]
    return [Path(named) for named in data]


def size_of_dumped(spec: StudySpec) -> int | None:
    """Returns the size, in bytes, of the database that was dumped for the study; None if it was not dumped yet."""
    (path,) = data_paths(spec)
    noted = path.with_suffix(_SIZE)
    return int(noted.read_text()) if noted.exists() else None


def note_size(path: Path, size: int) -> None:
    """Records that the dump at a path is complete, with the size of its database in bytes. Raises StoreError if the
    record cannot be written."""
    write_atomically(path.with_suffix(_SIZE), str(size))


def forget_dump(spec: StudySpec) -> None:
    """Removes the dump of the study's database, which is not needed any more once the templates (data directories that
    trials copy) have been loaded from it."""
    if is_to_be_dumped(spec):
        data_paths(spec)[0].unlink(missing_ok=True)


def dumps_of(state: Path) -> Path:
    """Returns the folder in a state directory that keeps dumps of databases."""
    return state / _DUMPS


def is_to_be_dumped(spec: StudySpec) -> bool:
    """True if the study names a database as its data, which pgtrial has to dump."""
    return bool(spec.load.data) and names_server(spec.load.data[0])


def dump_to_be_taken(spec: StudySpec) -> StudySpec:
    """Returns the spec with a new random name for the dump of its database. The spec is unchanged if its data is not a
    database, or if the dump already has a name."""
    if not is_to_be_dumped(spec) or spec.load.data_files is not None:
        return spec
    return with_dump(spec, DataFiles(sha256=hashlib.sha256(secrets.token_bytes(32)).hexdigest(), size=0))


def with_dump(spec: StudySpec, files: DataFiles | None) -> StudySpec:
    """Returns the spec in which `files` is the dump of the study's database, or which has no dump yet if `files` is
    None. The spec is unchanged if its data is not a database."""
    if not is_to_be_dumped(spec):
        return spec
    return spec.model_copy(update={"load": spec.load.model_copy(update={"data_files": files})})


def files_of(paths: list[str], source: str) -> DataFiles:
    """Returns the digest and the total size of data in files. Raises StudyError, whose message begins with `source`, if
    a file cannot be read or is not a dump, or if all files are empty."""
    digest, size = hashlib.sha256(), 0
    try:
        for file in map(Path, paths):
            kind_of_dump(file)
            parts = parts_of_dump(file)
            digest.update(digest_of(file, parts).encode())
            size += sum(path.stat().st_size for path in parts)
    except StudyError as error:
        raise StudyError(f"{source}: {error}") from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read {error.filename}: {error.strerror or 'unreadable'}") from None
    if size == 0:
        raise StudyError(f"{source}: {' and '.join(paths)} is empty; name a dump, or a file of SQL, that has data")
    return DataFiles(sha256=digest.hexdigest(), size=size)
