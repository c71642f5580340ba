"""Handles the changes and files that killed labs have left on this machine, on hosts and on given servers: lists them,
undoes and removes them, or forgets their records."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

from pgtrial.files.held_folders import Leftover
from pgtrial.machines.journal import ANY_OCCASION, Occasion
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.volumes import mountinfo, mounts
from pgtrial.model.errors import StudyError
from pgtrial.servers import undo
from pgtrial.servers.postmaster import stop_servers_below
from pgtrial.servers.runs import abandoned_runs, all_runs, check_records, registry, remove_own, socket_directory, taken
from pgtrial.servers.state_limit import builds_of, templates_of
from pgtrial.store import temporary
from pgtrial.store.own_data import DUMP_ENDINGS, dumps_of
from pgtrial.store.state import is_own, state_root

_OF_A_LAB = "directories and servers of a lab that ended abruptly"
_TEMPORARY = "temporary files of a pgtrial that ended abruptly"


def leftovers(state: Path | None = None) -> list[Leftover]:
    """Returns everything that killed labs have left: their run directories, with servers that may still run, the
    changes that their journals record, unfinished templates and builds, and temporary files."""
    root = state or state_root()
    if not root.is_dir():
        return []
    with registry(root):
        return [
            *(
                Leftover(path, what)
                for run in abandoned_runs(root)
                for path, what in (*undo.of_run(run).described(), (run, _OF_A_LAB))
            ),
            *(Leftover(path, "unfinished template") for path in templates_of(root).unfinished()),
            *(Leftover(path, "unfinished build") for path in builds_of(root).unfinished()),
            *(Leftover(path, _TEMPORARY) for path in temporary.abandoned(root)),
        ]


def clean(state: Path | None = None, occasion: Occasion = ANY_OCCASION) -> list[str]:
    """Stops the servers that killed labs have left, undoes their changes and removes their files. Returns sentences on
    what was done, and on what could not be undone.

    Takes the lock of each run directory, as the run's own lab would, so that other labs do not try to remove the run at
    the same time. Raises ArmError if another account could have written the records.
    """
    root = state or state_root()
    if not root.is_dir():
        return []
    check_records(root)
    with ExitStack() as held:
        with registry(root):
            claimed = [(path, lock) for path in abandoned_runs(root) if (lock := taken(path, held)) is not None]
            unfinished = templates_of(root).remove_unfinished()
            builds = builds_of(root).remove_unfinished()
            folders = temporary.remove_abandoned(root)
            dumps = _remove_dumps(root) if len(claimed) == len(all_runs(root)) else []
        notices = [notice for path, _ in claimed for notice in _remove_run(path, occasion)]
    strangers = [path for path in all_runs(root) if not is_own(path)]
    return [
        *notices,
        *(f"Removed the unfinished template {path}." for path in unfinished),
        *(f"Removed the unfinished build {path}." for path in builds),
        *(f"Removed {path}, {_TEMPORARY}." for path in folders),
        *(f"Removed the dump {path}, whose study has not loaded it." for path in dumps),
        *(
            f"Another account owns {path} or can write to it, so it was left as it is; see who owns it."
            for path in strangers
        ),
    ]


def forget_record(state: Path, path: Path) -> str:
    """Removes the record of a change, which is the file `path`, so that no later cleanup tries to undo the change. The
    user asks for this if the change is undone already or cannot be undone any more. Returns a sentence for the user.

    Raises StudyError if the file is not such a record or belongs to a running lab, and HostError if it cannot be
    removed.
    """
    wanted = path.absolute()
    with registry(state):
        for journal in (undo.of_state(state), *map(undo.of_run, abandoned_runs(state))):
            if wanted in {record.absolute() for record in journal.files()}:
                journal.remove(wanted)
                return f"Forgot {path}; the changes that it names stay as they are."
    raise StudyError(
        f"--forget {path}: this is no record of a change that an ended pgtrial has left on this machine, a server or a "
        "host; `pgtrial cleanup` lists the existing records"
    )


def _remove_run(path: Path, occasion: Occasion) -> list[str]:
    stopped = stop_servers_below(path)
    servers = f" and stopped {stopped} of its processes" if stopped else ""
    undone = undo.of_run(path).undo(occasion)
    if undone.failures:
        return [*undone.done, *undone.failures]
    # if the user made pgtrial forget the record of a mount, the files below that mount must not be removed with the run
    if mounted := _mounted_below(path):
        where = ", ".join(map(str, mounted))
        return [
            *undone.done,
            f"{path} stays, since a file system is mounted at {where}; umount it and run pgtrial cleanup.",
        ]
    sockets = socket_directory(path)
    if sockets.is_dir() and not sockets.is_symlink() and _is_ours(sockets):
        shutil.rmtree(sockets, ignore_errors=True)
    remove_own(path.parent.parent, path)
    return [*undone.done, f"Removed {path}, left by a pgtrial that ended abruptly{servers}."]


def _mounted_below(path: Path) -> list[Path]:
    resolved = LOCAL.resolve(path)
    return [mount.target for mount in mounts(mountinfo(LOCAL)) if mount.target.is_relative_to(resolved)]


def _is_ours(path: Path) -> bool:
    return path.lstat().st_uid == os.geteuid()


def _remove_dumps(root: Path) -> list[Path]:
    """Removes dumps that no lab will load any more. The caller has to make sure that no other lab runs."""
    dumps = [path for path in sorted(dumps_of(root).glob("*")) if path.suffix in DUMP_ENDINGS]
    for path in dumps:
        path.unlink(missing_ok=True)
    return dumps
