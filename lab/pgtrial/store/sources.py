"""Fixes the sources from which servers and extensions are built, and the commits in which client programs run, so that
all trials of a study use the same source code. When a study is planned, names of branches and tags (refs) are replaced
by commits, and for directories the digest of their files is recorded."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pgtrial.files.reading import read_bytes
from pgtrial.files.trust import refusal_to_run
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.patches import changes_files, is_text
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.sources import DirectorySource, GitSource, Source, is_source, source_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.store import repositories

_BUILD_FILES = ("meson.build", "configure", "configure.ac")
"""The files by which pgtrial recognises a directory with the source code of PostgreSQL, which has at least one of
them."""


def with_sources(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the study with all sources fixed: each names a commit, or has the digest of its files. Relative paths are
    relative to `folder`. Raises StudyError if a source cannot be read.

    In error messages, `source` is the name of the study: a file, or the command line.
    """
    # a ref that several arms name is looked up only once, since it could move in between
    known: dict[str, str] = {}
    server = _fixed_table(spec.server, folder, f"{source}: {marks.heading('server')}", known)
    arms = {
        arm: _fixed_table(table, folder, f"{source}: {marks.at_arm(arm)}", known) for arm, table in spec.arms.items()
    }
    if server == spec.server and arms == spec.arms:
        return spec
    return spec.model_copy(update={"server": server, "arms": arms})


def export(source: Source, directory: Path, report: Callable[[str], None]) -> None:
    """Writes the files of a fixed source (one with a commit, or with the digest of its files) into a new directory.
    Raises StudyError if the files cannot be read, or have changed since the study was planned."""
    if isinstance(source, GitSource):
        repositories.export(repositories.local_of(source, report), source.ref, directory)
        return
    origin = Path(source.directory)
    _check_runnable(origin)
    for name in _files_of(origin):
        copy = directory / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(origin / name, copy, follow_symlinks=False)
    if source.digest != digest_of(directory, _all_files(directory)):
        raise StudyError(
            f"{source.text}: its files have changed since the study was planned; restore them, or start a new study"
        )


def described(source: Source) -> str:
    """Returns a description of a fixed source for the facts of an arm: the subject line of its commit, or for a
    directory the state of its git work tree."""
    if isinstance(source, GitSource):
        return repositories.commit_of(repositories.local_of(source), source.ref).subject
    return repositories.state_of(Path(source.directory))


def fixed_source(source: Source, folder: Path) -> Source:
    """Returns the source with an absolute path, and with its commit or the digest of its files. Raises StudyError if
    the source cannot be read."""
    if isinstance(source, GitSource):
        if source.is_remote:
            return repositories.fixed(source)
        path = Path(folder, Path(source.repository).expanduser()).absolute()
        return repositories.fixed(GitSource(os.path.normpath(path), source.ref))
    if source.is_fixed:
        return source
    path = Path(os.path.normpath(Path(folder, Path(source.directory).expanduser()).absolute()))
    if not path.is_dir():
        raise StudyError(
            f"source:{source.directory}: there is no directory {path}; name the directory with the source code"
        )
    _check_runnable(path)
    return DirectorySource(str(path), digest_of(path, _files_of(path)))


def _check_runnable(directory: Path) -> None:
    """Raises StudyError if pgtrial runs as root and does not trust this directory with source code, since another
    account could change it. Building the code would run scripts in the directory as root."""
    if (why := refusal_to_run(directory)) is not None:
        raise StudyError(f"source:{directory}: {why}")


def absolute(text: str, folder: Path) -> str:
    """Returns a value of the key `postgres` (a version, a directory or a source) in which a path relative to `folder`
    has been made absolute.

    A text that is not a valid source is returned unchanged, because the code that parses it later reports the error
    with a better message.
    """
    if not is_source(text):
        return str(Path(folder, Path(text).expanduser()).absolute()) if "/" in text or text.startswith("~") else text
    try:
        source = source_of(text)
    except ValueError:
        return text
    if isinstance(source, GitSource):
        path = Path(folder, Path(source.repository).expanduser()).absolute()
        return text if source.is_remote else GitSource(os.path.normpath(path), source.ref).text
    path = Path(folder, Path(source.directory).expanduser()).absolute()
    return DirectorySource(os.path.normpath(path), source.digest).text


def with_repository(setup: Mapping[str, Any], repository: Path) -> dict[str, Any]:
    """Returns the set-up of an arm, which was planned on another machine, for use on this machine. If it names a git
    repository by a directory that does not exist here, the directory is replaced by `repository`, while the commit
    stays the same."""

    def moved(text: str) -> str:
        try:
            source = source_of(text)
        except ValueError:
            return text
        if not isinstance(source, GitSource) or source.is_remote or Path(source.repository).is_dir():
            return text
        return GitSource(str(repository.absolute()), source.ref).text

    changed = dict(setup)
    if isinstance(changed.get("postgres"), str):
        changed["postgres"] = moved(changed["postgres"])
    if isinstance(changed.get("command_directory"), str):
        changed["command_directory"] = moved(changed["command_directory"])
    if isinstance(changed.get("extensions"), list):
        changed["extensions"] = [moved(str(text)) for text in changed["extensions"]]
    return changed


def digest_of(directory: Path, names: list[str]) -> str:
    """Returns the first 16 hexadecimal digits of a SHA-256 over files: their names, their executable bits and their
    contents."""
    digest = hashlib.sha256()
    for name in sorted(names):
        path = directory / name
        kind = path.lstat().st_mode
        content = os.readlink(path).encode() if stat.S_ISLNK(kind) else read_bytes(path)
        digest.update(f"{name}\0{stat.S_ISLNK(kind)}\0{bool(kind & stat.S_IXUSR)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _fixed_table(table: SetUp, folder: Path, where: str, known: dict[str, str]) -> SetUp:
    changed: dict[str, Any] = {}
    try:
        if table.postgres is not None and (text := _as_source(table.postgres, folder)) is not None:
            changed["postgres"] = _fixed_text(text, folder, known)
        if table.command_directory is not None and is_source(table.command_directory):
            changed["command_directory"] = _fixed_text(table.command_directory, folder, known)
        if table.patches:
            changed["patches"] = [_patch_text(patch, folder) for patch in table.patches]
        if table.extensions:
            changed["extensions"] = [_fixed_text(text, folder, known) for text in table.extensions]
    except StudyError as error:
        raise StudyError(f"{where}{error}") from None
    except OSError as error:
        raise StudyError(f"{where}{error.filename} cannot be read: {error.strerror}") from None
    return table.model_copy(update=changed)


def _patch_text(patch: str, folder: Path) -> str:
    """Returns the text of a patch that is named by its path, or whose text is given already. Raises StudyError if the
    file cannot be read as a patch."""
    if is_text(patch):
        return patch
    path = Path(folder, Path(patch).expanduser())
    if path.exists() and (why := refusal_to_run(path)) is not None:  # a build runs what a patch writes into its source
        raise StudyError(f"patches: {why}")
    try:
        text = read_bytes(path).decode()
    except FileNotFoundError:
        raise StudyError(f"patches: there is no file {path}; name a patch, such as git format-patch writes") from None
    except OSError as error:
        raise StudyError(f"patches: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StudyError(f"patches: {path} is not UTF-8; convert it, for example by iconv") from None
    if not changes_files(text) or "\0" in text:
        raise StudyError(f"patches: {path} is not a patch; write it with git format-patch, or git diff")
    return text


def _fixed_text(text: str, folder: Path, known: dict[str, str]) -> str:
    if text not in known:
        known[text] = fixed_source(source_of(text), folder).text
    return known[text]


def _as_source(postgres: str, folder: Path) -> str | None:
    """Returns the source that a value of the key `postgres` names; None if it does not name a source. A directory with
    source code may be named without `source:`."""
    if is_source(postgres):
        return postgres
    if "/" not in postgres and not postgres.startswith("~"):
        return None
    directory = Path(folder, Path(postgres).expanduser())
    has_programs = (directory / "postgres").is_file() or (directory / "bin" / "postgres").is_file()
    has_source = any((directory / name).is_file() for name in _BUILD_FILES)
    return f"source:{postgres}" if has_source and not has_programs else None


def _files_of(directory: Path) -> list[str]:
    """Returns the files of a directory, without those that git ignores. Raises StudyError if there are none."""
    listed = repositories.listed_files(directory) if shutil.which("git") else None
    names = _all_files(directory) if listed is None else [name for name in listed if _is_file(directory / name)]
    if not names:
        raise StudyError(f"source:{directory}: the directory has no files; name the directory with the source code")
    return names


def _is_file(path: Path) -> bool:
    """True if the path is a file or a link. The check is needed because the list of files by git also has submodules,
    which are directories, and files that were removed."""
    return path.is_symlink() or path.is_file()


def _all_files(directory: Path) -> list[str]:
    names = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        names += [os.path.relpath(os.path.join(folder, name), directory) for name in [*files, *links]]
    return names
