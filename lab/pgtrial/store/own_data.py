"""The user's own data: finds the files that a study means, records their digests, and checks whether they changed."""

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
from pgtrial.store.dumps import digest_of, from_root, kind_of_dump, parts_of_dump
from pgtrial.store.files import write_atomically
from pgtrial.store.state import state_root

_DUMPS = "dumps"
"""The folder of the state directory that has the dumps of databases until their templates are made."""
DUMP_ENDINGS = (".dump", ".part")
"""The endings of a dump, and of a dump that is being written."""
_SIZE = ".size"
"""The ending of the file with the size of a dumped database. This file is kept when the dump is removed."""


def with_data(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec with the absolute paths of its own data, which are named relative to `folder`, and with their
    digest and size. Raises StudyError."""
    data = spec.load.data
    if not data:
        return spec
    for arm in spec.arms:
        server = spec.resolved(arm)
        if isinstance(server, Given):
            raise StudyError(
                f"{source}: {marks.at_arm(arm)}data is loaded only into servers that pgtrial makes, and this one is "
                f"given; load it there once ({_by_hand(data, folder)}) and leave {marks.key('load', 'data')} out, or "
                "have pgtrial make the server (postgres=18 in place of its connection string)"
            )
        if isinstance(server, MadeBySsh) and names_server(data[0]):
            raise StudyError(
                f"{source}: {marks.at_arm(arm)}a database is dumped by the pg_dump of a server on this machine; make a "
                "plain dump (pg_dump --format=plain), and name that as data"
            )
    if names_server(data[0]):
        return spec
    places = [from_root(named, folder) for named in data]
    update = {"data": places, "data_files": files_of(places, f"{source}: {marks.key('load', 'data')}")}
    return spec.model_copy(update={"load": spec.load.model_copy(update=update)})


def _by_hand(data: Sequence[str], folder: Path) -> str:
    """Returns the commands with which the user loads the data into a server of their own."""
    if names_server(data[0]):
        return "pg_dump SOURCE | psql CONNECTION"
    return "; ".join(
        f"pg_restore -d CONNECTION {named}" if _is_archive(from_root(named, folder)) else f"psql -f {named} CONNECTION"
        for named in data
    )


def _is_archive(place: str) -> bool:
    with suppress(OSError, StudyError):  # what cannot be read is refused elsewhere
        return kind_of_dump(Path(place)) == "archive"
    return False


def check_data_unchanged(spec: StudySpec) -> None:
    """Raises StudyError if a file of the study's own data is no longer what it was when the study was planned."""
    for arm in spec.arms if spec.has_arm_data else [spec.baseline]:
        load = spec.for_arm(arm).load
        files, data = load.data_files, load.data
        if files is None or not data or names_server(data[0]):
            continue
        if files_of(data, marks.key("load", "data")).sha256 != files.sha256:
            names = " or ".join(data)
            raise StudyError(f"{names} has changed since the study was planned; restore it, or run a study of its own")


def data_places(spec: StudySpec) -> list[Path]:
    """Returns the files or directories of the study's own data; for a database the path of its dump."""
    data, files = spec.load.data, spec.load.data_files
    if files is not None and data and names_server(data[0]):
        return [dumps_of(state_root()) / f"{files.sha256}{DUMP_ENDINGS[0]}"]
    return [Path(place) for place in data]


def size_of_dumped(spec: StudySpec) -> int | None:
    """Returns the size of the database from which the study's dump was taken, bytes; None if there is no dump yet."""
    (path,) = data_places(spec)
    noted = path.with_suffix(_SIZE)
    return int(noted.read_text()) if noted.exists() else None


def note_size(path: Path, size: int) -> None:
    """Records that the dump at a path is complete, and the size of its database in bytes. Raises StoreError."""
    write_atomically(path.with_suffix(_SIZE), str(size))


def forget_dump(spec: StudySpec) -> None:
    """Removes the dump of the study's database, whose templates are made."""
    if is_to_be_dumped(spec):
        data_places(spec)[0].unlink(missing_ok=True)


def dumps_of(state: Path) -> Path:
    """Returns the folder with dumps of databases in a state directory."""
    return state / _DUMPS


def is_to_be_dumped(spec: StudySpec) -> bool:
    """True if the study's own data is a database, which is dumped."""
    return bool(spec.load.data) and names_server(spec.load.data[0])


def dump_to_be_taken(spec: StudySpec) -> StudySpec:
    """Returns the spec with a random name for the dump of its database; unchanged if there is no database, or its dump
    has a name."""
    if not is_to_be_dumped(spec) or spec.load.data_files is not None:
        return spec
    return with_dump(spec, DataFiles(sha256=hashlib.sha256(secrets.token_bytes(32)).hexdigest(), size=0))


def with_dump(spec: StudySpec, files: DataFiles | None) -> StudySpec:
    """Returns the spec with this dump of its database, or with none yet; unchanged if its data is no database."""
    if not is_to_be_dumped(spec):
        return spec
    return spec.model_copy(update={"load": spec.load.model_copy(update={"data_files": files})})


def files_of(places: list[str], source: str) -> DataFiles:
    """Returns the digest and the size of data in files. Raises StudyError, which begins with `source`."""
    digest, size = hashlib.sha256(), 0
    try:
        for place in map(Path, places):
            kind_of_dump(place)
            parts = parts_of_dump(place)
            digest.update(digest_of(place, parts).encode())
            size += sum(path.stat().st_size for path in parts)
    except StudyError as error:
        raise StudyError(f"{source}: {error}") from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read {error.filename}: {error.strerror or 'unreadable'}") from None
    if size == 0:
        raise StudyError(f"{source}: {' and '.join(places)} is empty; name a dump, or a file of SQL")
    return DataFiles(sha256=digest.hexdigest(), size=size)
