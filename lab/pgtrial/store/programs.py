"""Handles the client programs of arms (the key `command`): finds the directory in which a command runs and the files
that it names, and checks whether these have changed."""

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
from pgtrial.model.quoting import quoted
from pgtrial.model.study.jobs import JOB
from pgtrial.model.study.programs import PROGRAMS, TRACKED, words_of
from pgtrial.model.study.servers import Server
from pgtrial.model.study.sources import is_source
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.repositories import digest_of_tracked


def with_program_workload(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the keys of a study whose arms have commands. If the study names no workload, the workload
    `client-programs` is added: the load then consists of the arms' commands. If its workload is a job without a file,
    the commands are the jobs of the arms, and that of the baseline is added as the job of `[load]`."""
    load, arms = data.get("load", {}), data.get("arms", {})
    tables = [*(arms.values() if isinstance(arms, Mapping) else ()), data.get("server")]
    commands = [keys["command"] for keys in tables if isinstance(keys, Mapping) and keys.get("command") is not None]
    if not commands or not isinstance(load, Mapping):
        return data
    job = load.get("job", {})
    if load.get("workload") in (JOB, [JOB]) and isinstance(job, Mapping) and "command" not in job:
        return {**data, "load": {**load, "job": {**job, "command": commands[0]}}}
    if {"workload", "query"} & load.keys():
        return data
    return {**data, "load": {**load, "workload": [PROGRAMS]}}


def with_programs(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec with the directory and the file digests of each arm's command. Commands run in `folder`, unless
    the spec names another directory. Raises StudyError if a directory or a program does not exist, if root must not run
    a program, or if the commands do not fit the load."""
    _check_job(spec, folder, source)
    for name, metric in spec.metrics.items():
        if metric.command is not None:
            _check_command(metric.command, marks.key(f"metrics.{name}", "command"), folder, source)
    servers = {arm: spec.resolved(arm) for arm in spec.arms}
    without = [arm for arm, server in servers.items() if server.command is None]
    if len(without) == len(servers):
        if PROGRAMS in spec.load.workload:
            raise StudyError(
                f"{source}: {marks.arm(without[0])} has no command, but the load {PROGRAMS} consists of the arms' "
                'commands; write for example command = "node bench.js" in each arm'
            )
        for arm, server in servers.items():
            if server.command_directory is not None:
                raise StudyError(f"{source}: {marks.arm(arm)} has command_directory and no command; remove it")
        return spec
    if spec.load.workload == [JOB]:
        return _with_jobs(spec, folder, source)
    if without:
        raise StudyError(
            f"{source}: {marks.arm(without[0])} has no command, but other arms have one as their load; give every arm "
            f"a command, or write one for all arms in {marks.section('server')}"
        )
    if PROGRAMS not in spec.load.workload:
        key = "workload" if spec.load.query is None else "query"
        raise StudyError(
            f"{source}: {marks.key('load', key)}: the commands of the arms are already the load; remove "
            f"{marks.short_key('load', key)}, or remove the commands"
        )
    arms = {
        name: keys.model_copy(update=_found(servers[name], folder, f"{source}: {marks.at_arm(name)}"))
        for name, keys in spec.arms.items()
    }
    return spec.model_copy(update={"arms": arms})


def _with_jobs(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns a study in which the job of each arm is a program of its own. Arms that name none get that of
    `[load.job]`. Raises StudyError if root must not run a program, or if a key does not fit."""
    arms = {}
    for arm, keys in spec.arms.items():
        server = spec.resolved(arm)
        if server.command_directory is not None:
            raise StudyError(
                f"{source}: {marks.arm(arm)} has command_directory, which is for client programs, and the program of a "
                "job runs in the directory in which pgtrial was started; remove it"
            )
        command = server.command or spec.load.job.command or ""
        _check_command(command, f"{marks.at_arm(arm)}command", folder, source)
        arms[arm] = keys.model_copy(update={"command": command, "command_files": _files_of_job(command)})
    return spec.model_copy(update={"arms": arms})


def _files_of_job(command: str) -> dict[str, str]:
    """Returns the digests of the files that the command of a job names. A program without a slash is not among them: it
    is looked up first among the programs of the arm's server, which may not be installed yet."""
    program, *arguments = words_of(command)
    named = [*([program] if "/" in program else []), *arguments]
    return {word: _digest(Path(word)) for word in named if Path(word).is_file()}


def _check_job(spec: StudySpec, folder: Path, source: str) -> None:
    """Raises StudyError if pgtrial runs as root and does not trust the program of the study's job, since another
    account could replace it, or if the file that the program is to write exists but is not a regular file."""
    if spec.load.job.command is None:
        return
    for name, read in spec.load.job.reads.items():
        if read.file is not None and Path(read.file).exists() and not Path(read.file).is_file():
            at = marks.key("load.job", f"reads.{name}.file")
            raise StudyError(
                f"{source}: {at}: {read.file} is not a regular file; name the file that the command writes"
            )
    _check_command(spec.load.job.command, marks.key("load.job", "command"), folder, source)


def _check_command(command: str, key: str, folder: Path, source: str) -> None:
    """Raises StudyError if pgtrial runs as root and does not trust the program of a command, since another account
    could replace it. `key` is the key of the study file that has the command."""
    words = words_of(command)
    for directory in (folder.absolute(), Path.cwd()):
        if (why := refusal_to_run_command(words, directory, program_path(words[0], directory))) is not None:
            raise StudyError(f"{source}: {key}: {why}")


def check_commands_of(spec: StudySpec, file: Path) -> None:
    """Raises StudyError if pgtrial runs as root and a study file has commands, but another account could replace the
    file."""
    commands = [server.command for arm in spec.arms if (server := spec.resolved(arm)).command is not None]
    commands += [metric.command for metric in spec.metrics.values() if metric.command is not None]
    if (commands or spec.load.job.command is not None) and (why := refusal_to_run(file)) is not None:
        raise StudyError(f"{file} has commands: {why}")


def check_programs_unchanged(arm: str, server: Server) -> None:
    """Raises StudyError if a file that an arm's command names, or that git tracks in the directory of the command, has
    changed since the study was planned."""
    if server.command is None or server.command_files is None:
        return
    if server.command_directory is None:  # the program of a job
        now = _files_of_job(server.command)
    else:
        now = _found(server, Path(), f"arms.{arm}: ")["command_files"]
    changed = [name for name, digest in server.command_files.items() if now.get(name) != digest]
    if changed:
        named = [name for name in changed if name != TRACKED]
        what = (
            f"{named[0]} of the command {quoted(server.command)} has"
            if named
            else f"files in {server.command_directory}, in which the command {quoted(server.command)} runs, have"
        )
        raise StudyError(
            f"arms.{arm}: {what} changed since the study was planned; restore {'it' if named else 'them'}, or start a "
            "new study (--new)"
        )


def _found(server: Server, folder: Path, where: str) -> dict[str, Any]:
    """Returns two keys of an arm: the directory in which its command runs, and the digests of the files that the
    command names and of all files that git tracks in the directory. If the directory is a commit, whose files never
    change, returns the second key alone, with the digest of the program.

    Raises StudyError if the directory or the program does not exist, or if root must not run the program.
    """
    if is_source(server.command_directory or ""):
        return {"command_files": _program_of_commit(server, where)}
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
            f"{where}command: there is no program {named}; install it, or correct the command {quoted(server.command)}"
        )
    if (why := refusal_to_run_command([program, *arguments], directory, path)) is not None:
        raise StudyError(f"{where}command: {why}")
    files = {program: path, **{word: directory / word for word in arguments}}
    try:
        digests = {word: _digest(file) for word, file in files.items() if file.is_file()}
    except OSError as error:
        raise StudyError(f"{where} command: cannot read {error.filename}: {error.strerror}") from None
    if (tracked := digest_of_tracked(directory)) is not None:
        digests[TRACKED] = tracked
    return {"command_directory": str(directory), "command_files": digests}


def _program_of_commit(server: Server, where: str) -> dict[str, str]:
    """Returns the digest of the program of a command that runs in the files of a commit, if the program is not among
    these files. Raises StudyError if there is no such program, or if root must not run it."""
    program, *_ = words_of(server.command or "")
    if "/" in program and not program.startswith("/"):
        return {}
    if (path := program_path(program, Path())) is None:
        raise StudyError(f"{where}command: there is no program {program}; install it, or correct the command")
    if (why := refusal_to_run(path)) is not None:
        raise StudyError(f"{where}command: {why}")
    return {program: _digest(path)}


def program_path(program: str, directory: Path) -> Path | None:
    """Returns the file of a program. A name with a slash is taken as relative to the directory in which the command
    runs, and any other name is looked up on PATH; None if there is no such program."""
    found = shutil.which(str(directory / program) if "/" in program else program)
    return Path(found) if found is not None else None


def _digest(file: Path) -> str:
    """Returns the SHA-256 of a file. The file is read again only if it was replaced or written since the last call."""
    seen = file.stat()
    return _digest_of(file, seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)


@lru_cache(maxsize=256)
def _digest_of(file: Path, *_seen: int) -> str:
    with open_file(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
