"""Client programs of arms: finds where their commands run and the files that they name, and checks whether these have
changed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pgtrial.files.reading import open_file
from pgtrial.files.trust import refusal_to_run, refusal_to_run_command
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.programs import PROGRAMS, words_of
from pgtrial.model.study.servers import Server
from pgtrial.model.study.spec import StudySpec


def with_program_workload(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the keys of a study. If arms have commands and the study names no workload, the workload is added that
    stands for them."""
    load, arms = data.get("load", {}), data.get("arms", {})
    tables = [data.get("server"), *(arms.values() if isinstance(arms, Mapping) else ())]
    has_command = any(isinstance(keys, Mapping) and keys.get("command") is not None for keys in tables)
    if not has_command or not isinstance(load, Mapping) or {"workload", "query"} & load.keys():
        return data
    return {**data, "load": {**load, "workload": [PROGRAMS]}}


def with_programs(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec with the directory and the files of each arm's command; commands run in `folder` unless the spec
    names a directory. Raises StudyError."""
    _check_job(spec, folder, source)
    for name, metric in spec.metrics.items():
        if metric.command is not None:
            _check_command(metric.command, marks.key(f"metrics.{name}", "command"), folder, source)
    servers = {arm: spec.resolved(arm) for arm in spec.arms}
    without = [arm for arm, server in servers.items() if server.command is None]
    if len(without) == len(servers):
        if PROGRAMS in spec.load.workload:
            raise StudyError(
                f"{source}: {marks.arm(without[0])} has no command, which is the load of {PROGRAMS}; write command = "
                '"node bench.js" in each arm'
            )
        for arm, server in servers.items():
            if server.command_directory is not None:
                raise StudyError(f"{source}: {marks.arm(arm)} has command_directory and no command; remove it")
        return spec
    if without:
        raise StudyError(
            f"{source}: {marks.arm(without[0])} has no command, and other arms have one, which is their load; give "
            f"every arm a command, or {marks.section('server')} one for all"
        )
    if PROGRAMS not in spec.load.workload:
        key = "workload" if spec.load.query is None else "query"
        raise StudyError(
            f"{source}: {marks.key('load', key)}: the arms' commands are the load; leave "
            f"{marks.short_key('load', key)} out, or leave out the commands"
        )
    arms = {
        name: keys.model_copy(update=_found(servers[name], folder, f"{source}: {marks.at_arm(name)}"))
        for name, keys in spec.arms.items()
    }
    return spec.model_copy(update={"arms": arms})


def _check_job(spec: StudySpec, folder: Path, source: str) -> None:
    """Raises StudyError if pgtrial runs as root and refuses to run the program of the study's job, or if what the
    program is to write is no file."""
    if spec.load.job.command is None:
        return
    for name, read in spec.load.job.reads.items():
        if read.file is not None and Path(read.file).exists() and not Path(read.file).is_file():
            at = marks.key("load.job", f"reads.{name}.file")
            raise StudyError(f"{source}: {at}: {read.file} is no regular file; name the file that the command writes")
    _check_command(spec.load.job.command, marks.key("load.job", "command"), folder, source)


def _check_command(command: str, key: str, folder: Path, source: str) -> None:
    """Raises StudyError if pgtrial runs as root and refuses to run a command that the study names by this key."""
    words = words_of(command)
    for directory in (folder.absolute(), Path.cwd()):
        if (why := refusal_to_run_command(words, directory, program_path(words[0], directory))) is not None:
            raise StudyError(f"{source}: {key}: {why}")


def check_commands_of(spec: StudySpec, file: Path) -> None:
    """Raises StudyError if pgtrial runs as root and refuses to run the commands of a study file, because another
    account could exchange the file."""
    commands = [server.command for arm in spec.arms if (server := spec.resolved(arm)).command is not None]
    commands += [metric.command for metric in spec.metrics.values() if metric.command is not None]
    if (commands or spec.load.job.command is not None) and (why := refusal_to_run(file)) is not None:
        raise StudyError(f"{file} has commands: {why}")


def check_programs_unchanged(arm: str, server: Server) -> None:
    """Raises StudyError if a file of an arm's command is no longer what it was when the study was planned."""
    if server.command is None or server.command_files is None:
        return
    now = _found(server, Path(), f"arms.{arm}: ")["command_files"]
    changed = [name for name, digest in server.command_files.items() if now.get(name) != digest]
    if changed:
        raise StudyError(
            f"arms.{arm}: {changed[0]} of the command {server.command!r} has changed since the study was planned; "
            "restore it, or run a study of its own (--new)"
        )


def _found(server: Server, folder: Path, where: str) -> dict[str, Any]:
    """Returns keys of an arm: the directory in which its command runs, and the digests of the files that it names.
    Raises StudyError."""
    directory = Path(server.command_directory or folder).expanduser()
    directory = directory if directory.is_absolute() else folder / directory
    directory = Path(os.path.abspath(directory))
    if not directory.is_dir():
        raise StudyError(f"{where}command_directory: there is no directory {directory}; correct it")
    program, *arguments = words_of(server.command or "")
    path = program_path(program, directory)
    if path is None:
        named = f"{directory / program}" if "/" in program else f"{program} on PATH"
        raise StudyError(
            f"{where}command: there is no program {named}; install it, or correct the command {server.command!r}"
        )
    if (why := refusal_to_run_command([program, *arguments], directory, path)) is not None:
        raise StudyError(f"{where}command: {why}")
    files = {program: path, **{word: directory / word for word in arguments}}
    try:
        digests = {word: _digest(file) for word, file in files.items() if file.is_file()}
    except OSError as error:
        raise StudyError(f"{where} command: cannot read {error.filename}: {error.strerror}") from None
    return {"command_directory": str(directory), "command_files": digests}


def program_path(program: str, directory: Path) -> Path | None:
    """Returns the file of a program: on PATH, or if the name has a / relative to the directory in which its command
    runs; None if there is none."""
    found = shutil.which(str(directory / program) if "/" in program else program)
    return Path(found) if found is not None else None


def _digest(file: Path) -> str:
    """Returns the SHA-256 of a file, which is read again only if it was replaced or written."""
    seen = file.stat()
    return _digest_of(file, seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)


@lru_cache(maxsize=256)
def _digest_of(file: Path, *_seen: int) -> str:
    with open_file(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
