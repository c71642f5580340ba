"""Finds and checks the state directory, and reads and writes the records in it that all studies on a machine share.

noise.json records the noise (the spread of the differences between blocks) of the studies that ran on the machine.
certificates.json has the results of the self-tests on the machine (certificates), which say what differences can be
found there; each study stores a copy of its certificate (`certificates.py`). Neither file contains passwords.
"""

from __future__ import annotations

import os
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
    """Returns the path of the state directory: $PGTRIAL_STATE, or else /var/lib/pgtrial for root, or else `pgtrial` in
    the user's XDG state directory."""
    if chosen := os.environ.get("PGTRIAL_STATE"):
        return Path(chosen).expanduser()
    if os.geteuid() == 0:
        return Path("/var/lib/pgtrial")
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "pgtrial"


_LIMIT_SHARE = 0.1
"""The share of the file system of a state directory that all templates (loaded data that trials get as a copy) in it
may use together, unless the user sets a limit."""


def state_limit(state: Path) -> int:
    """Returns how many bytes of disk space all templates (loaded data that trials get as a copy) in a state directory
    may use together.

    The limit is $PGTRIAL_STATE_LIMIT, or else a tenth of the file system. Raises StudyError if the variable is not a
    size.
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
"""The names of the files and directories that pgtrial creates in the state directory."""
_RUNS = "runs"


def own_directory(path: Path) -> None:
    """Creates a directory, with all missing directories above it, that no other account can list, whatever the umask
    (the mask of modes for new files) is.

    If pgtrial runs as root, other accounts can pass through the directories, since the account that runs the servers
    needs access to its own files below them. Raises OSError if the directory cannot be created.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            own_directory(path.parent)
        mode = 0o711 if os.geteuid() == 0 else 0o700
        path.mkdir(mode=mode, exist_ok=True)
        path.chmod(mode)


def check_state(root: Path) -> None:
    """Checks that no other account can write the files in a state directory that pgtrial reads, removes, or follows as
    instructions.

    Wrong modes of files and directories that belong to this account are corrected. Raises StoreError if another account
    can write one of them, and OSError if the directory cannot be read.
    """
    _check_own(root, mend=not os.listdir(root) or (root / _RUNS).is_dir())
    for path in sorted(root.iterdir()):
        if path.name in _OWN_ENTRIES:
            _check_own(path)
            if path.is_dir() and path.name != _RUNS:  # directories of runs are checked one by one elsewhere
                for inner in sorted(path.iterdir()):
                    _check_own(inner)


def is_own(path: Path) -> bool:
    """True if the path exists, is not a link, belongs to this account or root, and cannot be written by other
    accounts."""
    with suppress(FileNotFoundError):
        there = path.lstat()
        return not stat.S_ISLNK(there.st_mode) and not _is_others(there) and not _is_loose(there)
    return False


def _check_own(path: Path, *, mend: bool = True) -> None:
    try:
        link, there = path.lstat(), path.stat()
    except FileNotFoundError:
        if not path.is_symlink():
            return  # somebody has removed the path meanwhile
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
            f"{path} can be written by other accounts, so pgtrial does not use it; remove that right (chmod go-w), or "
            "set PGTRIAL_STATE to a directory that you own"
        )
    path.chmod(stat.S_IMODE(there.st_mode) & ~0o022)


def _is_others(there: os.stat_result) -> bool:
    return there.st_uid not in (0, os.geteuid())


def _is_loose(there: os.stat_result) -> bool:
    return bool(there.st_mode & stat.S_IWOTH or (there.st_mode & stat.S_IWGRP and there.st_gid != 0))


def kept(name: str, make: Callable[[], str]) -> str:
    """Returns the text that `make` returns, which takes long to compute and is the same at each call. It is computed
    once and kept in the state directory under `name`; if there is no state directory, it is computed at each call.

    If the text depends on the version of a program, `name` must contain the version.
    """
    path = state_root() / "kept" / name
    with suppress(OSError, UnicodeDecodeError):
        if is_own(path) and is_own(path.parent.resolve()):
            return read_bytes(path).decode()
    text = make()
    if state_root().is_dir():
        with suppress(OSError, StoreError):
            own_directory(path.parent)
            write_atomically(path, text)
            path.chmod(0o644)
    return text


def certificate_for(path: Path, servers: list[str]) -> Certificate | None:
    """Returns the latest certificate (the result of a self-test) in the record at `path` for servers on these hosts;
    None if there is none. Raises StoreError if the record is damaged."""
    kept = _read_shared(path, Certificates, "`pgtrial selftest`").certificates
    return next((certificate for certificate in kept if certificate.servers == servers), None)


def keep_certificate(path: Path, certificate: Certificate) -> None:
    """Adds a certificate (the result of a self-test) to the record at `path`, and removes the earlier certificate for
    the same servers. A damaged record is replaced by a new one.

    Raises StoreError if a newer pgtrial wrote the record, or if it cannot be written. The caller must make sure that no
    other lab writes at the same time.
    """
    others = [other for other in _to_change(path, Certificates).certificates if other.servers != certificate.servers]
    _replace(path, Certificates(certificates=[certificate, *others]))


_KEPT = 100
"""The largest number of studies whose noise is recorded. When there are more, the oldest ones are dropped."""
_ENOUGH_BLOCKS = 8
_LIKE = 2.0
"""Two lengths of trials count as similar if they differ by at most this factor. Longer trials are less noisy, and
pgtrial can compute by how much only for studies that recorded the noise within trials separately from the noise between
blocks."""


def read_noise(path: Path) -> list[Noise]:
    """Returns the studies in the record at `path`, each with its noise (the spread of the differences between blocks);
    an empty list if there is no record. Raises StoreError if the record is damaged or was written by a newer
    pgtrial."""
    return _read_shared(path, NoiseRecord, "the next study").studies


def keep_noise(path: Path, noise: Noise) -> None:
    """Adds the noise of a study (the spread of the differences between its blocks) to the record at `path`, and removes
    the study's earlier entry. A damaged record is replaced by a new one.

    Raises StoreError if a newer pgtrial wrote the record, or if it cannot be written. The caller must make sure that no
    other lab writes at the same time.
    """
    studies = _to_change(path, NoiseRecord).studies
    others = [study for study in studies if (study.study, study.created) != (noise.study, noise.created)]
    _replace(path, NoiseRecord(studies=[*others, noise][-_KEPT:]))


def noise_under(conditions: Conditions, studies: list[Noise]) -> Noise | None:
    """Returns the latest of `studies` that ran under the same conditions with at least eight blocks, or else the one of
    them with the most blocks; None if none ran under the same conditions. Its noise predicts that of a new study.

    A study whose trials have a different length is considered only if it recorded the noise within its trials
    separately. Such a study is returned only if it has more blocks than each study with trials of a similar length;
    more than eight blocks count as eight in this comparison.
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
    """Returns the wall time, in seconds, that a block needs in addition to running its loads, for instance to restart
    servers. It is taken from the latest study under the same conditions, whatever the length of its trials; None if no
    study recorded it."""
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
    """The error for a record that is damaged. Unlike a record of a newer pgtrial, it may be replaced by a new one."""


def _read_shared(path: Path, kind: type[_Shared], writer: str) -> _Shared:
    """Returns the record at `path`; an empty record if there is none. Raises StoreError if it is damaged or was written
    by a newer pgtrial. In the message, `writer` names the command or study that will replace a damaged record."""
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
        raise _Damaged(f"{path} is ignored: it is damaged ({why}); {writer} will replace it") from error


def _to_change(path: Path, kind: type[_Shared]) -> _Shared:
    """Returns the record at `path`, which the caller is going to change, or an empty record if the stored one is
    missing or damaged. Raises StoreError if a newer pgtrial wrote it."""
    try:
        return _read_shared(path, kind, "this")
    except _Damaged:
        return kind()


def _replace(path: Path, record: Record) -> None:
    """Writes a record to `path`. Raises StoreError if the file cannot be written."""
    try:
        write_atomically(path, record.model_dump_json(indent=1))
    except StoreError as error:
        raise StoreError(f"{path} cannot be written ({getattr(error.__cause__, 'strerror', error)})") from error
