"""A bundle: one study in one compressed file, with the digest of every part.

The file is a tar archive (POSIX ustar) in xz, which any tar unpacks. Its first member is the manifest; the parts follow
in the manifest's order. Owner, time and mode of the members are constants: the same study gives the same bytes. The
reader accepts the one header that is possible for a part, so that links, devices and extended headers are rejected
without being interpreted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import lzma
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, BinaryIO, NoReturn

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from pgtrial.files.reading import open_file, read_bytes
from pgtrial.model.errors import StoreError
from pgtrial.model.records import Record
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import reading
from pgtrial.store.tables import SCHEMAS, refuse_hostile
from pgtrial.store.temporary import temporary_folder

SUFFIX = ".tar.xz"
FORMAT = 1
"""The version of the format of bundles. A reader refuses a higher one."""

MANIFEST = "bundle.json"
_FOLDER = "study"
"""The folder in the archive that has the study, whatever the study's own directory is called."""

_MAGIC = b"\xfd7zXZ\0"
_END = b"YZ"
"""The first and the last bytes of an xz file."""

_TABLES = (".csv", ".tsv")
"""The endings of files with numbers of another harness, which `pgtrial judge` reads."""

_BLOCK = 512
_CHUNK = 1 << 20
_MEMORY = 1 << 27
"""The most memory for decompression, bytes. A bundle that pgtrial wrote needs 9 MB."""
_LARGEST_MANIFEST = 1 << 26
_LARGEST_PART = (1 << 33) - 1
_LARGEST_STUDY = 1 << 32
"""The most bytes that are written to the disk when a bundle is unpacked."""
_LARGEST_BUNDLE = 1 << 34
"""The most bytes that all parts of a bundle may have together, decompressed. This includes the raw record, which is
decompressed only to check its digest."""
_MOST_PARTS = 1 << 17

_TRIAL = r"(trials|voided/[^/]+)/\d[^/]*"
_MB = 1 << 20
_STUDY = tuple(
    (re.compile(pattern), largest)
    for pattern, largest in (
        (
            r"(study\.toml|plan\.json|verdict\.json|gate\.json|published\.json|certificate\.json|selftest\.json|report\.md"
            r"|report\.html|statement_plans\.json)",
            256 * _MB,
        ),
        (r"scripts/[^/]+(/[^/]+)?", 256 * _MB),
        (r"facts/[^/]+(/\d+)?\.json", 16 * _MB),
        (r"canaries/\d+\.json", 16 * _MB),  # only earlier versions, which timed a canary before each block
        (r"interruptions/\d+\.json", 16 * _MB),
        (r"voided/[^/]+/void\.json", 16 * _MB),
        (rf"{_TRIAL}/trial\.json", 64 * _MB),
        *((rf"{_TRIAL}/{table}\.parquet", 256 * _MB) for table in SCHEMAS),
        (rf"{_TRIAL}/latency\.hdr", _MB),
    )
)
"""The patterns of the files that a report and a verdict need, with the most bytes of each file that are unpacked. Files
of one kind are adjacent, since they compress better."""

_HEAD = 2
"""The number of patterns in _STUDY whose files are needed to open a study. They come first in a bundle."""


def _safe(name: str) -> str:
    """Returns the name if it is a relative path below the study on every system. Raises ValueError."""
    windows = PureWindowsPath(name)
    plain = name.isprintable() and "\\" not in name and not windows.drive
    if not plain or PurePosixPath(name).is_absolute() or {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} is not the name of a part")
    _header(name, 0)
    return name


class Part(Record):
    """One file of the study."""

    name: Annotated[str, AfterValidator(_safe)] = Field(
        description="The path below the directory of the study, with slashes."
    )
    size: int = Field(ge=0, le=_LARGEST_PART, description="The size in bytes.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(Record):
    """bundle.json: the parts of the bundle in their order."""

    format: int = Field(FORMAT, ge=1)
    parts: list[Part]


class _AnyFormat(BaseModel):
    """The key that a manifest has in every version of the format."""

    format: int


# ---- writing


def write_bundle(study: StudyDirectory, target: BinaryIO, *, everything: bool) -> Manifest:
    """Writes a study's bundle; without `everything` only the files that reports and verdicts need.

    Values of the study that may be secrets are not in it: its study.toml has marks in their place.

    Raises StoreError for a file that cannot be a part, OSError where `target` cannot be written.
    """
    names = sorted(name for name in files_of(study.path) if everything or _kind(name) < len(_STUDY))
    cut = {name: text.encode() for name, text in study.without_secrets().items()}
    parts = [_part(study.path / name, name, cut.get(name)) for name in sorted(names, key=_kind)]
    manifest = Manifest(parts=parts)
    text = manifest.model_dump_json(indent=1).encode()
    with lzma.open(target, "wb") as file:
        _add(file, MANIFEST, len(text), io.BytesIO(text))
        for part in parts:
            other = cut.get(part.name)
            with open_file(study.path / part.name) if other is None else io.BytesIO(other) as source:
                _add(file, part.name, part.size, source)
        file.write(bytes(2 * _BLOCK))
    return manifest


def files_of(directory: Path) -> list[str]:
    """Returns the names of a study's files as a bundle has them. Hidden files are left out, since they belong to the
    lab and not to the study."""
    names = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [Path(folder, name).relative_to(directory).as_posix() for name in files if not name.startswith(".")]
    return [name for name in names if name != MANIFEST]


def _kind(name: str) -> int:
    """Returns the position of the name's pattern in _STUDY, or the length of _STUDY for any other file."""
    return next((i for i, (pattern, _) in enumerate(_STUDY) if pattern.fullmatch(name)), len(_STUDY))


def _part(path: Path, name: str, text: bytes | None) -> Part:
    """Returns the entry of the manifest for a file of the study. If `text` is given, the bundle has this text in place
    of the file's content. Raises StoreError."""
    size, sha256 = _measure(path) if text is None else (len(text), hashlib.sha256(text).hexdigest())
    try:
        return Part(name=name, size=size, sha256=sha256)
    except ValidationError as error:
        raise StoreError(
            f"{str(path)!r} cannot be bundled: its name is too long or not portable, or it has 8 GB or more; "
            "move it out of the study's directory"
        ) from error


def _measure(path: Path) -> tuple[int, str]:
    """Returns the size and the SHA-256 of a file. Raises StoreError."""
    with reading(path), open_file(path) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), sha256


def _add(file: BinaryIO | lzma.LZMAFile, name: str, size: int, source: BinaryIO) -> None:
    file.write(_header(name, size))
    shutil.copyfileobj(source, file, _CHUNK)
    file.write(_padding(size))


def _header(name: str, size: int) -> bytes:
    """Returns the tar header of a part. A part with any other header is refused when the bundle is read. Raises
    ValueError for a name that is too long."""
    info = tarfile.TarInfo(f"{_FOLDER}/{name}")
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


# ---- reading


def is_bundle(path: Path) -> bool:
    """True if the file begins like a bundle; only reading it shows whether it is one. A pipe counts as no bundle, and
    nothing is read from it."""
    if path.is_fifo():
        return False
    with contextlib.suppress(OSError), open_file(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


@contextlib.contextmanager
def open_study(path: Path, *, head: bool = False) -> Iterator[StudyDirectory]:
    """Yields the study of a directory or of a bundle. Raises StoreError.

    All digests of a bundle are checked, and its tables are first read by another process. Its study is unpacked into a
    private directory, which is removed at the end; files that are not needed for a report are not unpacked. With `head`
    the study has only the content of the first parts: study file, plan, verdict, scripts. The parts behind these are
    not read.
    """
    if path.is_fifo():
        raise StoreError(f"{path} is a pipe, and a bundle is read several times; write it to a file, and name that")
    if not path.is_file():
        yield StudyDirectory.open(path)
        return
    if head:
        _check_end(path)
    with temporary_folder() as folder:
        try:
            _unpack(path, folder, _HEAD if head else None)
            # right digests prove nothing about the sender, who made them too
            refuse_hostile(sorted(folder.rglob("*.parquet")))
            yield StudyDirectory.open(folder)
        except StoreError as error:
            # the user knows the bundle, and not the folder in which it is unpacked
            raise StoreError(str(error).replace(str(folder), str(path))) from error


def _check_end(path: Path) -> None:
    """Raises StoreError for a bundle that is cut short; its parts are not read."""
    with reading(path), open_file(path) as file:
        file.seek(-min(len(_END), path.stat().st_size), os.SEEK_END)
        whole = file.read() == _END
    if is_bundle(path) and not whole:
        raise StoreError(f"{path} is cut short; get it again")


def manifest_of(study: StudyDirectory) -> Manifest | None:
    """Returns the manifest of a study that was unpacked from a bundle; None for one that was never bundled. Raises
    StoreError."""
    path = study.path / MANIFEST
    with reading(path):
        return _manifest(read_bytes(path), path) if path.exists() else None


def check_parts(directory: Path, manifest: Manifest) -> None:
    """Compares the files of an unpacked bundle with the manifest. Raises StoreError for the first that differs."""
    for part in manifest.parts:
        path = directory / part.name
        if not path.exists():
            raise StoreError(f"{path} is missing; unpack the bundle again")
        if _measure(path) != (part.size, part.sha256):
            raise StoreError(f"{path} is not as it was bundled: its SHA-256 is another; unpack the bundle again")


def _unpack(path: Path, folder: Path, kinds: int | None) -> None:
    """Checks a bundle and writes the study that it holds, all of it or only the first `kinds` kinds of files. Raises
    StoreError."""
    try:
        with open_file(path) as file:
            reader = _Reader(path, file)
            manifest = reader.manifest()
            _check_sizes(path, manifest)
            for part in manifest.parts:
                if kinds is not None and _kind(part.name) >= kinds:
                    break
                reader.copy(part, folder / part.name if _kind(part.name) < len(_STUDY) else None)
            else:
                reader.finish()
            (folder / MANIFEST).write_text(manifest.model_dump_json())
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read or unpacked: {error.strerror or error}; it is unpacked in the state directory of "
            "pgtrial, and PGTRIAL_STATE names another one"
        ) from error


def _check_sizes(path: Path, manifest: Manifest) -> None:
    """Raises StoreError if the sizes in the manifest exceed the limits for unpacking. Nothing has been unpacked yet."""
    study = 0
    for part in manifest.parts:
        kind = _kind(part.name)
        if kind == len(_STUDY):
            continue
        study += part.size
        largest = _STUDY[kind][1]
        if part.size > largest:
            raise StoreError(
                f"{path}: its part {part.name} has {part.size >> 20:,} MB, and at most {largest >> 20:,} MB are read; "
                "unpack it with tar -xf"
            )
    if study > _LARGEST_STUDY:
        raise StoreError(f"{path} holds more than {_LARGEST_STUDY >> 30} GB; unpack it with tar -xf")
    if sum(part.size for part in manifest.parts) > _LARGEST_BUNDLE:
        raise StoreError(f"{path} holds more than {_LARGEST_BUNDLE >> 30} GB in all; unpack it with tar -xf")


def _manifest(text: bytes, path: Path) -> Manifest:
    # each part is an object; to read half a million of them takes half a gigabyte and half a minute
    if text.count(b"{") > _MOST_PARTS + 1:
        raise StoreError(f"{path} has more than {_MOST_PARTS:,} parts, which are not read; unpack it with tar -xf")
    try:
        version = _AnyFormat.model_validate_json(text).format
        if version > FORMAT:
            raise StoreError(f"{path} was written by a newer pgtrial (format {version} of bundles); upgrade")
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise StoreError(f"{path} is damaged: its manifest is invalid ({what}); get it again") from error
    if len({part.name for part in manifest.parts}) < len(manifest.parts):
        raise StoreError(f"{path} is damaged: its manifest names a part twice; get it again")
    return manifest


class _Reader:
    """Reads a bundle from its beginning to its end, once. Methods raise StoreError."""

    def __init__(self, path: Path, file: BinaryIO):
        self._path = path
        self._file = file
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
        self._at = "its manifest"

    def manifest(self) -> Manifest:
        head = self._file.read(len(_MAGIC))
        if not _MAGIC.startswith(head):
            self._not_a_bundle()
        self._file.seek(0)
        try:
            header = self._read(_BLOCK)
            size = tarfile.TarInfo.frombuf(header, "utf-8", "strict").size
            ours = header == _header(MANIFEST, size)
        except (tarfile.TarError, ValueError):
            ours = False
        if not ours or size > _LARGEST_MANIFEST:
            self._not_a_bundle()
        text = self._read(size)
        self._pad(size)
        return _manifest(text, self._path)

    def copy(self, part: Part, target: Path | None) -> None:
        """Checks the next part, and writes it to `target`."""
        self._at = f"part {part.name}"
        header = self._read(_BLOCK)
        if header != _header(part.name, part.size):
            try:
                there = tarfile.TarInfo.frombuf(header, "utf-8", "replace").name == f"{_FOLDER}/{part.name}"
            except tarfile.TarError:
                there = False
            self._fail(f"{self._at} is {'altered: its header is another' if there else 'missing'}")
        sha256 = hashlib.sha256()
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") if target is not None else contextlib.nullcontext() as file:
            for piece in self._pieces(part.size):
                sha256.update(piece)
                if file is not None:
                    file.write(piece)
        self._pad(part.size)
        if sha256.hexdigest() != part.sha256:
            self._fail(f"{self._at} is altered: its SHA-256 is not that of the manifest")

    def finish(self) -> None:
        """Checks that nothing follows the last part."""
        self._at = "its end"
        more = any(self._read(2 * _BLOCK))
        while not more and not self._xz.eof:
            more = bool(self._decompress(1))
        if more or self._xz.unused_data or self._file.read(1):
            self._fail("something follows its last part")

    def _read(self, size: int) -> bytes:
        return b"".join(self._pieces(size))

    def _pad(self, size: int) -> None:
        padding = _padding(size)
        if self._read(len(padding)) != padding:
            self._fail(f"{self._at} is altered: it is longer than the manifest says")

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            if self._xz.eof:
                self._fail(f"it ends before {self._at}: parts are missing")
            piece = self._decompress(min(size, _CHUNK))
            size -= len(piece)
            yield piece

    def _decompress(self, most: int) -> bytes:
        """Returns decompressed bytes that follow those returned before. The result is empty if the decompressor needs
        more of the file first."""
        compressed = b""
        if self._xz.needs_input and not (compressed := self._file.read(_CHUNK)):
            raise StoreError(f"{self._path} is cut short, at {self._at}; get it again")
        try:
            return self._xz.decompress(compressed, most)
        except lzma.LZMAError as error:
            raise StoreError(f"{self._path} is damaged, at {self._at} ({error}); get it again") from error

    def _fail(self, what: str) -> NoReturn:
        raise StoreError(f"{self._path} is not as it was bundled: {what}; get it again")

    def _not_a_bundle(self) -> NoReturn:
        cure = "`pgtrial bundle DIRECTORY` makes one of a study"
        if self._path.suffix in _TABLES:
            cure = f"numbers of your own are judged by `pgtrial judge {self._path}`"
        raise StoreError(f"{self._path} is not a bundle; {cure}")
