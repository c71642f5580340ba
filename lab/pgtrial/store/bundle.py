"""Writes and reads bundles. A bundle is one compressed file that contains a whole study, with the digest of each of the
study's files.

The file is a tar archive (POSIX ustar), compressed by xz, which any tar program unpacks. Its first member is the
manifest; the files of the study ("parts") follow in the manifest's order. Owner, time and mode of the members are
constants, so that the same study always gives the same bytes. The reader accepts a part only if its tar header has
exactly the bytes that pgtrial writes for its name and size; links, devices and extended headers are rejected without
being interpreted.
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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Annotated, BinaryIO, NoReturn

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from pgtrial.files.reading import open_file, read_bytes
from pgtrial.model.errors import StoreError
from pgtrial.model.paths import stays_below
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import reading
from pgtrial.store.tables import SCHEMAS, refuse_hostile
from pgtrial.store.temporary import temporary_folder

SUFFIX = ".tar.xz"
FORMAT = 1
"""The version of the format of bundles. pgtrial rejects bundles with a higher version."""

MANIFEST = "bundle.json"
_FOLDER = "study"
"""The folder in the archive that contains the study, whatever the name of the study's directory is."""

_MAGIC = b"\xfd7zXZ\0"
_END = b"YZ"
"""The last bytes of every xz file, by which pgtrial notices that a bundle was cut off. `_MAGIC` has the first bytes of
such a file."""

_TABLES = (".csv", ".tsv")
"""The endings of files with numbers that were measured without pgtrial, which `pgtrial judge` reads."""

_BLOCK = 512
_CHUNK = 1 << 20
_MEMORY = 1 << 27
"""The largest memory for decompression, in bytes. A bundle that pgtrial wrote needs 9 MB."""
_LARGEST_MANIFEST = 1 << 26
_LARGEST_PART = (1 << 33) - 1
_LARGEST_STUDY = 1 << 32
"""The largest number of bytes that unpacking a bundle may write to the disk."""
_LARGEST_BUNDLE = 1 << 34
"""The largest total size in bytes that all parts of a bundle may have when they are decompressed. It includes the raw
record of trials, which is decompressed only to check its digest."""
_MOST_PARTS = 1 << 17

Patterns = Sequence[tuple[re.Pattern[str], int]]
"""The patterns of the files that pgtrial unpacks from a bundle, each with the largest size in bytes that such a file
may have."""

_TRIAL = r"(trials|voided/[^/]+)/\d[^/]*"
_MB = 1 << 20
_STUDY: Patterns = tuple(
    (re.compile(pattern), largest)
    for pattern, largest in (
        (
            r"(study\.toml|plan\.json|verdict\.json|gate\.json|published\.json|certificate\.json|selftest\.json|report\.md"
            r"|report\.html|statement_plans\.json|studies\.json|instructions\.json)",
            256 * _MB,
        ),
        (r"scripts/[^/]+(/[^/]+)?", 256 * _MB),
        (r"facts/[^/]+(/\d+)?\.json", 16 * _MB),
        (r"canaries/\d+\.json", 16 * _MB),  # earlier versions timed a machine check before each block
        (r"interruptions/\d+\.json", 16 * _MB),
        (r"voided/[^/]+/void\.json", 16 * _MB),
        (rf"{_TRIAL}/trial\.json", 64 * _MB),
        *((rf"{_TRIAL}/{table}\.parquet", 256 * _MB) for table in SCHEMAS),
        (rf"{_TRIAL}/latency\.hdr", _MB),
    )
)
"""The patterns of the files that reports and verdicts need, each with the largest size, in bytes, that pgtrial unpacks
for such a file. In a bundle, files of one pattern are adjacent, since this compresses better."""

_HEAD = 2
"""The number of patterns at the beginning of _STUDY whose files are enough to open a study without its trials. These
files come first in a bundle."""


def _safe(name: str) -> str:
    """Returns the name if it is a relative path below the study on every operating system. Raises ValueError if not."""
    windows = PureWindowsPath(name)
    plain = name.isprintable() and "\\" not in name and not windows.drive
    if not plain or not stays_below(name):
        raise ValueError(f"{quoted(name)} is not a path that a file in a bundle can have")
    _header(name, 0)
    return name


class Part(Record):
    """The entry for one file of the study in the manifest, with its path, its size and its SHA-256."""

    name: Annotated[str, AfterValidator(_safe)] = Field(
        description="The path below the directory of the study, with slashes."
    )
    size: int = Field(ge=0, le=_LARGEST_PART, description="The size in bytes.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(Record):
    """The content of bundle.json, the first file in a bundle, which lists all other files in their order."""

    format: int = Field(FORMAT, ge=1)
    parts: list[Part]


class _AnyFormat(BaseModel):
    """The version of the format, the one key that the manifests of all versions have. It is read first, so that pgtrial
    can reject a newer bundle with a clear message."""

    format: int


# ---- writing


def write_bundle(study: StudyDirectory, target: BinaryIO, *, everything: bool) -> Manifest:
    """Writes a study into a bundle. Without `everything`, the bundle has only the files that reports and verdicts need.

    Values in the study file that may be secrets are replaced by placeholders in the bundle. Raises StoreError for a
    file that a bundle cannot contain, and OSError if `target` cannot be written.
    """
    names = sorted(name for name in files_of(study.path) if everything or _kind(name, _STUDY) < len(_STUDY))
    cut = {name: text.encode() for name, text in study.without_secrets().items()}
    return write_parts(study.path, sorted(names, key=lambda name: _kind(name, _STUDY)), target, cut)


def write_parts(directory: Path, names: Sequence[str], target: BinaryIO, cut: Mapping[str, bytes]) -> Manifest:
    """Writes files of a directory into a bundle, in this order, and returns its manifest. `cut` has the content that
    some files have in the bundle; the directory may lack them or have another content. Raises the same errors as
    `write_bundle`."""
    parts = [_part(directory / name, name, cut.get(name)) for name in names]
    manifest = Manifest(parts=parts)
    text = manifest.model_dump_json(indent=1).encode()
    with lzma.open(target, "wb") as file:
        _add(file, MANIFEST, len(text), io.BytesIO(text))
        for part in parts:
            other = cut.get(part.name)
            with open_file(directory / part.name) if other is None else io.BytesIO(other) as source:
                _add(file, part.name, part.size, source)
        file.write(bytes(2 * _BLOCK))
    return manifest


def files_of(directory: Path) -> list[str]:
    """Returns the names of the files of a study that go into a bundle. Hidden files are left out, since they belong to
    a run of pgtrial that is under way, and not to the study."""
    names = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [Path(folder, name).relative_to(directory).as_posix() for name in files if not name.startswith(".")]
    return [name for name in names if name != MANIFEST]


def _kind(name: str, patterns: Patterns) -> int:
    """Returns the index of the pattern that a file's name matches. If it matches none, returns the number of
    patterns."""
    return next((i for i, (pattern, _) in enumerate(patterns) if pattern.fullmatch(name)), len(patterns))


def _part(path: Path, name: str, text: bytes | None) -> Part:
    """Returns the entry of the manifest for a file of the study. If `text` is given, the bundle contains this text in
    place of the file's content. Raises StoreError if the file cannot be read, or if a bundle cannot contain it.

    Links are refused: in the folder of a study that somebody else has packed, a link may lead to any file of the user.
    """
    if path.is_symlink():
        raise StoreError(
            f"{path} is a link, which a bundle does not follow; remove it, or replace it by the file that it leads to"
        )
    size, sha256 = _measure(path) if text is None else (len(text), hashlib.sha256(text).hexdigest())
    try:
        return Part(name=name, size=size, sha256=sha256)
    except ValidationError as error:
        raise StoreError(
            f"{quoted(str(path))} cannot be bundled: its name is too long or not portable, or it has 8 GB or more; "
            "move it out of the study's directory"
        ) from error


def _measure(path: Path) -> tuple[int, str]:
    """Returns the size and the SHA-256 of a file. Raises StoreError if the file cannot be read."""
    with reading(path), open_file(path) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), sha256


def _add(file: BinaryIO | lzma.LZMAFile, name: str, size: int, source: BinaryIO) -> None:
    file.write(_header(name, size))
    shutil.copyfileobj(source, file, _CHUNK)
    file.write(_padding(size))


def _header(name: str, size: int) -> bytes:
    """Returns the tar header of a file in a bundle. A reader rejects files with any other header. Raises ValueError for
    a name that is too long."""
    info = tarfile.TarInfo(f"{_FOLDER}/{name}")
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


# ---- reading


def is_bundle(path: Path) -> bool:
    """True if the file begins like a bundle; whether the whole file is a valid bundle is not checked. A pipe is not
    read, and counts as no bundle."""
    if path.is_fifo():
        return False
    with contextlib.suppress(OSError), open_file(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


@contextlib.contextmanager
def open_study(path: Path, *, head: bool = False) -> Iterator[StudyDirectory]:
    """Yields the study of a directory or of a bundle. Raises StoreError if the study or the bundle cannot be read or is
    damaged.

    All digests of a bundle are checked, and its tables are first read in a separate process, since a crafted table
    could crash the process that reads it. The study is unpacked into a private directory, which is removed at the end;
    files that reports do not need are not unpacked. With `head`, only the first parts are read and unpacked: study
    file, plan, verdict and scripts.
    """
    if path.is_fifo():
        raise StoreError(
            f"{path} is a pipe, and pgtrial has to read a bundle several times; write the bundle to a file, and name "
            "the file"
        )
    if not path.is_file():
        yield StudyDirectory.open(path)
        return
    if head:
        _check_end(path)
    with unpacked(path) as folder:
        unpack_study(path, folder, head=head)
        yield StudyDirectory.open(folder)


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yields a private directory for the files of a bundle, which is removed at the end. In messages of a StoreError,
    the path of the bundle takes the place of this directory's path."""
    with temporary_folder() as folder:
        try:
            yield folder
        except StoreError as error:
            raise StoreError(str(error).replace(str(folder), str(path))) from error


def unpack_study(path: Path, folder: Path, *, head: bool = False) -> None:
    """Checks the bundle of a study and unpacks the files that reports need into `folder`, with `head` only those that
    say what the study is. Raises StoreError if the bundle is damaged or too large."""
    unpack(path, folder, _STUDY, _HEAD if head else None)
    # correct digests do not make a bundle trustworthy, since its author computed them too
    refuse_hostile(sorted(folder.rglob("*.parquet")))


def _check_end(path: Path) -> None:
    """Raises StoreError if a bundle is truncated, which is seen by its last bytes, without reading its parts."""
    with reading(path), open_file(path) as file:
        file.seek(-min(len(_END), path.stat().st_size), os.SEEK_END)
        whole = file.read() == _END
    if is_bundle(path) and not whole:
        raise StoreError(f"{path} is truncated; copy or download it again")


def manifest_of(study: StudyDirectory) -> Manifest | None:
    """Returns the manifest of a study that was unpacked from a bundle; None for a study that does not come from a
    bundle. Raises StoreError if the manifest is damaged."""
    path = study.path / MANIFEST
    with reading(path):
        return _manifest(read_bytes(path), path) if path.exists() else None


def check_parts(directory: Path, manifest: Manifest) -> None:
    """Compares the files of an unpacked bundle with the manifest. Raises StoreError for the first file that differs."""
    for part in manifest.parts:
        path = directory / part.name
        if not path.exists():
            raise StoreError(f"{path} is missing; unpack the bundle again")
        if _measure(path) != (part.size, part.sha256):
            raise StoreError(
                f"{path} has changed since it was unpacked: its SHA-256 differs from the one in the manifest; unpack "
                "the bundle again"
            )


def unpack(path: Path, folder: Path, patterns: Patterns, kinds: int | None = None) -> None:
    """Checks a bundle and unpacks its files that match one of the patterns into `folder`: all of them, or only those
    that match the first `kinds` patterns. Raises StoreError if the bundle is damaged or too large."""
    try:
        with open_file(path) as file:
            reader = _Reader(path, file)
            manifest = reader.manifest()
            _check_sizes(path, manifest, patterns)
            for part in manifest.parts:
                kind = _kind(part.name, patterns)
                if kinds is not None and kind >= kinds:
                    break
                reader.copy(part, folder / part.name if kind < len(patterns) else None)
            else:
                reader.finish()
            (folder / MANIFEST).write_text(manifest.model_dump_json())
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read or unpacked: {error.strerror or error}; pgtrial unpacks bundles in its state "
            "directory; set PGTRIAL_STATE to use another directory"
        ) from error


def _check_sizes(path: Path, manifest: Manifest, patterns: Patterns) -> None:
    """Raises StoreError if the sizes in the manifest exceed the limits for unpacking. Nothing has been unpacked yet."""
    study = 0
    for part in manifest.parts:
        kind = _kind(part.name, patterns)
        if kind == len(patterns):
            continue
        study += part.size
        largest = patterns[kind][1]
        if part.size > largest:
            raise StoreError(
                f"{path}: the file {part.name} in it has {part.size >> 20:,} MB, but pgtrial reads at most "
                f"{largest >> 20:,} MB; unpack the bundle with tar -xf, and name the directory"
            )
    if study > _LARGEST_STUDY:
        raise StoreError(
            f"the study in {path} has more than {_LARGEST_STUDY >> 30} GB, which pgtrial does not unpack; unpack it "
            "with tar -xf, and name the directory"
        )
    if sum(part.size for part in manifest.parts) > _LARGEST_BUNDLE:
        raise StoreError(
            f"{path} has more than {_LARGEST_BUNDLE >> 30} GB in total, which pgtrial does not read; unpack it with "
            "tar -xf, and name the directory"
        )


def _manifest(text: bytes, path: Path) -> Manifest:
    # each part is a JSON object; parsing half a million of them would take half a gigabyte of memory and half a minute
    if text.count(b"{") > _MOST_PARTS + 1:
        raise StoreError(
            f"{path} has more than {_MOST_PARTS:,} files, which pgtrial does not read; unpack it with tar -xf, and "
            "name the directory"
        )
    try:
        version = _AnyFormat.model_validate_json(text).format
        if version > FORMAT:
            raise StoreError(f"{path} was written by a newer pgtrial (format {version} of bundles); upgrade pgtrial")
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise StoreError(f"{path} is damaged: its manifest is invalid ({what}); copy or download it again") from error
    if len({part.name for part in manifest.parts}) < len(manifest.parts):
        raise StoreError(f"{path} is damaged: its manifest lists a file twice; copy or download it again")
    return manifest


class _Reader:
    """Reads a bundle sequentially, from its beginning to its end. Methods raise StoreError if the bundle is damaged."""

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
        """Checks the header and the digest of the next file in the bundle, and writes the file to `target` if that is
        given."""
        self._at = f"part {part.name}"
        header = self._read(_BLOCK)
        if header != _header(part.name, part.size):
            try:
                there = tarfile.TarInfo.frombuf(header, "utf-8", "replace").name == f"{_FOLDER}/{part.name}"
            except tarfile.TarError:
                there = False
            self._fail(f"{self._at} is {'altered: its header differs' if there else 'missing'}")
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
        """Checks that the bundle ends after its last file."""
        self._at = "its end"
        more = any(self._read(2 * _BLOCK))
        while not more and not self._xz.eof:
            more = bool(self._decompress(1))
        if more or self._xz.unused_data or self._file.read(1):
            self._fail("there is more data after its last part")

    def _read(self, size: int) -> bytes:
        return b"".join(self._pieces(size))

    def _pad(self, size: int) -> None:
        padding = _padding(size)
        if self._read(len(padding)) != padding:
            self._fail(f"{self._at} is altered: it is longer than the manifest says")

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            if self._xz.eof:
                self._fail(f"it ends before {self._at}, so parts are missing")
            piece = self._decompress(min(size, _CHUNK))
            size -= len(piece)
            yield piece

    def _decompress(self, most: int) -> bytes:
        """Returns further decompressed bytes, at most `most`. The result is empty if the decompressor first needs more
        bytes of the file."""
        compressed = b""
        if self._xz.needs_input and not (compressed := self._file.read(_CHUNK)):
            raise StoreError(f"{self._path} is truncated, at {self._at}; copy or download it again")
        try:
            return self._xz.decompress(compressed, most)
        except lzma.LZMAError as error:
            raise StoreError(f"{self._path} is damaged, at {self._at} ({error}); copy or download it again") from error

    def _fail(self, what: str) -> NoReturn:
        raise StoreError(f"{self._path} was changed after it was bundled: {what}; copy or download it again")

    def _not_a_bundle(self) -> NoReturn:
        cure = "`pgtrial bundle DIRECTORY` makes a bundle of a study"
        if self._path.suffix in _TABLES:
            cure = f"`pgtrial judge {self._path}` compares numbers of your own"
        raise StoreError(f"{self._path} is not a bundle; {cure}")
