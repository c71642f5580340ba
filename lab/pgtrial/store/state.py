"""The state directory: its path, and the records in it that all studies of a machine share.

noise.json has the noise of the machine's studies. certificates.json has the certificates of its self-tests, of which
each study keeps a copy (`certificates.py`). Neither has passwords.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic_core import from_json

from pgtrial.files.reading import read_bytes
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records import Record
from pgtrial.model.records.machine import Certificate, Certificates, Conditions, Noise, NoiseRecord
from pgtrial.model.units import parse_size
from pgtrial.store.files import first_line, write_atomically

CERTIFICATES = "certificates.json"
NOISE = "noise.json"

_Shared = TypeVar("_Shared", NoiseRecord, Certificates)


def state_root() -> Path:
    """Returns the state directory: $PGTRIAL_STATE, else /var/lib/pgtrial for root, else the user's XDG state
    directory."""
    if chosen := os.environ.get("PGTRIAL_STATE"):
        return Path(chosen).expanduser()
    if os.geteuid() == 0:
        return Path("/var/lib/pgtrial")
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "pgtrial"


_LIMIT_SHARE = 0.1
"""The share of its file system that the templates in a state directory may take, unless the user sets a limit."""


def state_limit(state: Path) -> int:
    """Returns how much the templates in a state directory may take on the disk together, bytes.

    The limit is $PGTRIAL_STATE_LIMIT, else a tenth of the file system. Raises StudyError.
    """
    if chosen := os.environ.get("PGTRIAL_STATE_LIMIT"):
        try:
            return parse_size(chosen)
        except ValueError as error:
            raise StudyError(f"PGTRIAL_STATE_LIMIT: {error}") from None
    present = next(path for path in (state.absolute(), *state.absolute().parents) if path.exists())
    return int(_LIMIT_SHARE * shutil.disk_usage(present).total)


_OWN_ENTRIES = frozenset(
    {
        "runs",
        "templates",
        "dumps",
        "installs",
        "kept",
        "wheels",
        "given-data",
        "builds",
        "sources",
        "temporary",
        "lock",
        "noise.json",
        "certificates.json",
        "machine.key",
    }
)
"""The names of the files and directories that pgtrial makes in the state directory."""
_RUNS = "runs"


def own_directory(path: Path) -> None:
    """Makes a directory, and those missing above it, that no other account can list, whatever the umask is.

    Other accounts can pass through the directories of root, so that the account of root's servers reaches what it owns
    below them. Raises OSError.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            own_directory(path.parent)
        mode = 0o711 if os.geteuid() == 0 else 0o700
        path.mkdir(mode=mode, exist_ok=True)
        path.chmod(mode)


def check_state(root: Path) -> None:
    """Checks that no other account can write what pgtrial reads, obeys and removes in a state directory.

    Wrong modes of what this account owns are corrected. Raises StoreError, whose message is one sentence, and OSError.
    """
    _check_own(root, mend=not os.listdir(root) or (root / _RUNS).is_dir())
    for path in sorted(root.iterdir()):
        if path.name in _OWN_ENTRIES:
            _check_own(path)
            if path.is_dir() and path.name != _RUNS:  # runs are looked at one by one
                for inner in sorted(path.iterdir()):
                    _check_own(inner)


def is_own(path: Path) -> bool:
    """True if the path exists, is no link, belongs to this account or root, and cannot be written by other accounts."""
    with suppress(FileNotFoundError):
        there = path.lstat()
        return not stat.S_ISLNK(there.st_mode) and not _is_others(there) and not _is_loose(there)
    return False


def _check_own(path: Path, *, mend: bool = True) -> None:
    try:
        link, there = path.lstat(), path.stat()
    except FileNotFoundError:
        if not path.is_symlink():
            return  # somebody has removed it
        link = there = path.lstat()
    if _is_others(link) or _is_others(there):
        raise StoreError(
            f"{path} belongs to another account (number {there.st_uid}), so pgtrial does not use it; remove it, or set "
            "PGTRIAL_STATE to a directory that you own"
        )
    if not _is_loose(there):
        return
    if there.st_uid != os.geteuid() or there.st_mode & stat.S_ISVTX or not mend:
        raise StoreError(
            f"{path} can be written by other accounts, so pgtrial does not use it; take that right away (chmod go-w), "
            "or set PGTRIAL_STATE to a directory of your own"
        )
    path.chmod(stat.S_IMODE(there.st_mode) & ~0o022)


def _is_others(there: os.stat_result) -> bool:
    return there.st_uid not in (0, os.geteuid())


def _is_loose(there: os.stat_result) -> bool:
    return bool(there.st_mode & stat.S_IWOTH or (there.st_mode & stat.S_IWGRP and there.st_gid != 0))


def kept(name: str, make: Callable[[], str]) -> str:
    """Returns the text that `make` makes, which takes long and always gives the same text. The text is made once and
    kept in the state directory under `name`; without a state directory it is made again at each call.

    If the text depends on a version, `name` must contain the version.
    """
    path = state_root() / "kept" / name
    with suppress(OSError, UnicodeDecodeError):
        if is_own(path) and is_own(path.parent.resolve()):
            return read_bytes(path).decode()
    text = make()
    if state_root().is_dir():
        with suppress(OSError, StoreError):
            own_directory(path.parent)
            temporary = path.with_name(f"{name}.{secrets.token_hex(4)}")  # several labs may make it at the same time
            write_atomically(temporary, text)
            temporary.chmod(0o644)
            temporary.replace(path)
    return text


def certificate_for(path: Path, servers: list[str]) -> Certificate | None:
    """Returns the latest certificate in the record for servers on these hosts; None if there is none. Raises
    StoreError."""
    kept = _read_shared(path, Certificates, "`pgtrial selftest`").certificates
    return next((certificate for certificate in kept if certificate.servers == servers), None)


def keep_certificate(path: Path, certificate: Certificate) -> None:
    """Puts a certificate into the record, in place of the one for the same servers. A damaged record is replaced by a
    new one.

    Raises StoreError if the record is newer or cannot be written. The caller makes sure that no other lab writes.
    """
    others = [other for other in _to_change(path, Certificates).certificates if other.servers != certificate.servers]
    _replace(path, Certificates(certificates=[certificate, *others]))


_KEPT = 100
"""The number of studies in the noise record. Older ones are dropped."""
_ENOUGH_BLOCKS = 8
_LIKE = 2.0
"""The factor up to which two lengths of trials count as alike. Longer trials are less noisy. How much less can be
computed only for studies that recorded the noise within trials apart from the noise between blocks."""


def read_noise(path: Path) -> list[Noise]:
    """Returns the studies of the record; none if there is no record. Raises StoreError if it is damaged or newer."""
    return _read_shared(path, NoiseRecord, "the next study").studies


def keep_noise(path: Path, noise: Noise) -> None:
    """Puts a study's noise into the record, in place of its earlier entry. A damaged record is replaced by a new one.

    Raises StoreError if the record is newer or cannot be written. The caller makes sure that no other lab writes.
    """
    studies = _to_change(path, NoiseRecord).studies
    others = [study for study in studies if (study.study, study.created) != (noise.study, noise.created)]
    _replace(path, NoiseRecord(studies=[*others, noise][-_KEPT:]))


def noise_under(conditions: Conditions, studies: list[Noise]) -> Noise | None:
    """Returns the latest study under these conditions with eight blocks or more, else the one with the most blocks.

    A study whose trials have another length is considered only if it recorded the noise within its trials apart, and is
    returned only if no study with trials of like length has as many blocks (more than eight count as eight).
    """
    same = [
        study
        for study in reversed(studies)
        if study.conditions.model_copy(update={"duration_s": conditions.duration_s}) == conditions
    ]

    def is_alike(noise: Noise) -> bool:
        shorter, longer = sorted((noise.conditions.duration_s, conditions.duration_s))
        return longer <= _LIKE * shorter

    known = [noise for noise in same if noise.within is not None or is_alike(noise)]
    return max(known, key=lambda noise: (min(noise.blocks, _ENOUGH_BLOCKS), is_alike(noise)), default=None)


def overhead_under(conditions: Conditions, studies: list[Noise]) -> float | None:
    """Returns the wall time, in seconds, that a block takes for everything but running its loads. It is taken from the
    latest study under these conditions, whatever the length of its trials; None if none has recorded it."""
    return next(
        (
            study.overhead_s
            for study in reversed(studies)
            if study.overhead_s is not None
            and study.conditions.model_copy(update={"duration_s": conditions.duration_s}) == conditions
        ),
        None,
    )


class _Damaged(StoreError):
    """The error for a record that cannot be read, and may be replaced."""


def _read_shared(path: Path, kind: type[_Shared], writer: str) -> _Shared:
    """Returns the record; an empty one if there is none. Raises StoreError if it is damaged or newer. `writer` names,
    for the message, the command or study that replaces a damaged record."""
    try:
        data = from_json(read_bytes(path))
        version = data.get("format") if isinstance(data, dict) else None
        if isinstance(version, int) and version > kind().format:
            raise StoreError(f"{path} is ignored: a newer pgtrial wrote it (format {version}); upgrade to use it")
        return kind.model_validate(data)
    except FileNotFoundError:
        return kind()
    except OSError as error:
        raise _Damaged(f"{path} is ignored: it cannot be read ({error.strerror})") from error
    except ValueError as error:
        why = first_line(error)
        raise _Damaged(f"{path} is ignored: it is damaged ({why}); {writer} begins a new one") from error


def _to_change(path: Path, kind: type[_Shared]) -> _Shared:
    """Returns the record for a change, or an empty one in place of a damaged one. Raises StoreError if it is newer."""
    try:
        return _read_shared(path, kind, "this")
    except _Damaged:
        return kind()


def _replace(path: Path, record: Record) -> None:
    """Writes a record. Raises StoreError."""
    try:
        write_atomically(path, record.model_dump_json(indent=1))
    except StoreError as error:
        raise StoreError(f"{path} cannot be written ({getattr(error.__cause__, 'strerror', error)})") from error
