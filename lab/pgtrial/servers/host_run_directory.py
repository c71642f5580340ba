"""Makes and removes the run directories of a run on other hosts. Everything that the lab makes on another host is in
the run directory there, or is recorded in its journal of changes.

The run directories on hosts are themselves recorded in the run's journal of undo on the machine of the lab. If the lab
is killed, the next pgtrial finds them there: it connects to the hosts again, undoes the changes that the journals of
the run directories record, and removes the run directories.
"""

from __future__ import annotations

import glob
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.journal import Journal, NotUndone, Occasion, UndoRecord
from pgtrial.machines.machine import HostError, HostTrouble, Machine
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.machines.trust import check_own, check_way
from pgtrial.model.quoting import quoted
from pgtrial.servers.run_directory import RunDirectory, servers_account
from pgtrial.servers.templates import RunTemplates

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine

_RECORDS = "rooms"  # the name on disk, by which each version finds the records of earlier ones
_MARK = "made-by-pgtrial"
_LONGEST_ROOT = 80
"""The longest possible path of a run directory in bytes. With a longer path, the path of a Unix socket below it could
exceed the limit of 107 bytes."""


@dataclass(frozen=True)
class HostRunRecord(UndoRecord):
    """The record of a run directory on another host in the journal of undo, which says where it is: the login, whether
    pgtrial uses sudo, the folder that the study names (`data`), and the run directory in it (`root`)."""

    of_what = "a run directory on a host"

    ssh: str
    sudo: bool
    data: str
    root: str
    folder_made: bool = False
    """True if the lab has made the folder `data`. It is then removed together with the run directory."""

    @classmethod
    def files(cls, folder: Path, machine: Machine) -> list[Path]:
        return sorted((folder / _RECORDS).glob("*.json"))

    def file(self, folder: Path, machine: Machine) -> Path:
        return folder / _RECORDS / f"{Path(self.root).name}.json"

    def content(self) -> Mapping[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        return cls(**content)

    @property
    def what(self) -> str:
        return f"{self.root} on {self.ssh}, with servers and changes of that host"

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Undoes the changes that a killed lab has left on the host, and removes the run directory there."""
        try:
            with closing(_machine(self.ssh, sudo=self.sudo)) as host:
                messages = _remove(host, self)
        except (HostTrouble, OSError) as error:
            raise NotUndone(
                f"{self.root} on {self.ssh}, left by a pgtrial that ended abruptly, could not be removed ({error}); "
                "correct the cause and run pgtrial cleanup",
                "if that host is gone for good",
            ) from None
        return [*messages, f"Removed {self.root} on {self.ssh}, left by a pgtrial that ended abruptly."]


class HostRunDirectory(RunDirectory):
    """A run directory on another host. Its templates exist only as long as the run directory."""

    def __init__(self, machine: RemoteMachine, record: HostRunRecord, record_file: Path) -> None:
        root = Path(record.root)
        super().__init__(machine, root, f"{record.data} on {machine.label}", None, root)
        self.host = machine
        self.templates = self.own_templates = RunTemplates(machine)
        self._record = record
        self._record_file = record_file
        self._unsettled: str | None = None
        """A phrase on the event that has happened to the host since it was lost, such as `was restarted`, until the lab
        has undone what it had left there; otherwise None."""

    @classmethod
    def make(cls, run: Path, ssh: str, data: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> HostRunDirectory:
        """Connects to the host and makes the run directory there. Raises HostTrouble, with a sentence for the user."""
        machine = _machine(ssh, sudo=sudo, patience_s=patience_s)
        try:
            machine.check()
            root = f"{data.rstrip('/')}/pgtrial-{secrets.token_hex(4)}"
            if len(os.fsencode(root)) > _LONGEST_ROOT:
                raise HostError(
                    f"data = {quoted(data)} is too long a path for Unix sockets below it; name a folder with a shorter "
                    "path"
                )
            record = HostRunRecord(ssh, sudo, data, root, folder_made=not _is_there(machine, data))
        except BaseException:
            machine.close()
            raise
        made = cls(machine, record, Journal(run, (HostRunRecord,)).write(record))
        try:
            made._make()
        except OSError as error:
            made.remove()
            raise HostError(
                f"data = {quoted(data)} on {ssh}: pgtrial cannot make files there: {error.strerror}"
            ) from None
        except BaseException:
            made.remove()
            raise
        return made

    def hurry(self) -> None:
        self.host.connection.hurry()

    def ready(self) -> str | None:
        """Prepares the run directory for a trial. If the host was lost before, waits until it can be reached,
        and undoes what the lab had left on it.

        Returns a sentence on the loss of the host, or None. Raises HostLost if the host still cannot be reached, and
        HostError if a change could not be undone, or if the run directory does not exist any more.
        """
        machine = self.host
        self._unsettled = machine.rejoin() or self._unsettled
        if self._unsettled is None:
            return None
        if not machine.exists(self.root):
            raise HostError(
                f"{machine.label} {self._unsettled}, and {self.root} is gone: the file system that holds "
                f"{self._record.data} is not mounted, or does not survive a restart; mount it, or name another folder"
            )
        machine.end_jobs(_jobs(self.root))
        machine.begin_jobs(_jobs(self.root))
        stays = _undo_changes(self.root, machine)
        # a server that ended with its host may have left its data in any state, and templates without tables were never
        # flushed
        self.kept.clear()
        self.templates.forget_empty()
        for path in machine.glob(f"{glob.escape(str(self.root))}/[0-9]*"):
            if path not in self.templates.present():
                machine.remove_tree(path)
        happened, self._unsettled = self._unsettled, None
        self.settled += 1
        undone = "pgtrial has undone its changes there and made them again"
        but = (sentence.removesuffix(".") for sentence in stays)
        return "; ".join([f"{machine.label} {happened} before this trial", undone, *but])

    def remove(self) -> list[str]:
        """Undoes the changes that the journal of the run directory records, and removes the run directory. Returns a
        sentence for each change that stays because somebody else has changed the value in the meantime. Raises
        HostTrouble."""
        self.hurry()
        self.host.rejoin()
        stays = _remove(self.host, self._record)
        self._record_file.unlink(missing_ok=True)
        self.host.close()
        return stays

    def _make(self) -> None:
        machine, root = self.host, self.root
        if self._record.folder_made:
            machine.mkdir(Path(self._record.data), 0o755)
        self.account = servers_account(machine)
        if self.account is not None:
            check_way(machine, root.parent)
        machine.begin_jobs(_jobs(root))
        machine.mkdir(root, 0o700 if self.account is None else 0o711)
        machine.write_text(
            root / _MARK, f"Run directory of a pgtrial on {os.uname().nodename}; `pgtrial cleanup` there removes it.\n"
        )
        if self.account is not None and machine.looked(["test", "-x", root / "."], user=self.account).status != 0:
            raise HostError(
                f"servers on {machine.label} run as the user {self.account}, who cannot reach {self._record.data}; "
                "let everyone enter this directory and all its parent directories (mode 755)"
            )


def _machine(ssh: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> RemoteMachine:
    # importing ssh takes a fifth of a second, and most studies use no other host
    from pgtrial.machines.ssh.machine import RemoteMachine  # noqa: PLC0415

    return RemoteMachine(ssh, sudo=sudo, patience_s=patience_s)


def _undo_changes(root: Path, machine: Machine) -> list[str]:
    """Undoes the changes that the journal of a run directory records. Returns a sentence for each change that stays
    because somebody else has changed the value in the meantime. Raises HostError if a change could not be undone, and
    HostLost."""
    undone = HostJournal(root, machine).journal.undo()
    if undone.failures:
        raise HostError(" ".join([*undone.failures, *undone.done]))
    return undone.done


def _remove(machine: RemoteMachine, record: HostRunRecord) -> list[str]:
    """Removes a run directory, and returns what `_undo_changes` returns. Raises HostTrouble."""
    root, stays = Path(record.root), list[str]()
    machine.check()
    machine.end_jobs(_jobs(root))
    if machine.exists(root):
        _check_owner(machine, record)
        if machine.root:
            check_way(machine, root.parent)
        stays = _undo_changes(root, machine)
        machine.remove_tree(root)
        if machine.exists(root):
            raise HostError(f"{root} on {machine.label} cannot be removed; see what it contains and remove it yourself")
    if record.folder_made and machine.exists(Path(record.data)):
        machine.run(["rmdir", record.data])  # fails if another pgtrial uses the folder
    return stays


def _check_owner(machine: RemoteMachine, record: HostRunRecord) -> None:
    """Raises HostError if another account could have written to the run directory. If the run directory belongs to the
    servers' account, as those of earlier versions of pgtrial do, the message tells the user how to correct that."""
    root = Path(record.root)
    try:
        check_own(machine, [root])
    except HostError:
        (entry,) = machine.entries([root])
        account = servers_account(machine)
        if account is None or entry.kind != "d" or machine.looked(["id", "-u", account]).stdout != f"{entry.owner}\n":
            raise
        sudo = "sudo " if record.sudo else ""
        directory, changes = (shlex.quote(str(path)) for path in (root, root / "changes"))
        command = f"{sudo}chown -h root: {directory}; {sudo}chown -hR root: {changes}"
        raise HostError(
            f"it belongs to {account}, as run directories of earlier versions of pgtrial do, so pgtrial does not trust "
            f"its record of changes; look at {root}/changes, and if the changes there are right, run on that host: "
            f"{command}"
        ) from None


def _jobs(root: Path) -> Path:
    """Returns the directory for the jobs of a run directory. It is below /tmp, since it belongs to the account that is
    logged in, while the run directory can belong to root."""
    return Path("/tmp") / f"{root.name}-jobs"


_LOOK_AT_FOLDER = """
if [ -e "$1" ]; then [ -d "$1" ] || exit 1; [ -w "$1" ] && [ -x "$1" ] || exit 2
else above=$(dirname "$1"); [ -d "$above" ] || exit 3; [ -w "$above" ] || exit 4; echo new; fi
"""


def _is_there(machine: RemoteMachine, data: str) -> bool:
    """True if the folder `data` exists on the host, false if pgtrial has to make it. Raises HostTrouble if pgtrial
    cannot make a run directory in it."""
    where = f"data = {quoted(data)} on {machine.label}"
    words = {
        1: f"{where} is not a directory; name a directory",
        2: f"{where}: you may not write there; make it yours (chown), write sudo = true, or name another directory",
        3: f"{where}: neither this directory nor its parent directory exists; make it (mkdir -p)",
        4: f"{where}: this directory does not exist, and you may not make it; have it made, or write sudo = true",
    }
    done = machine.looked(["sh", "-c", _LOOK_AT_FOLDER, "sh", data])
    if done.status != 0:
        reason = " ".join(done.stderr.split()) or f"status {done.status}"
        raise HostError(words.get(done.status, f"{where}: {reason}"))
    return done.stdout.strip() != "new"


class HostRunDirectories:
    """The run directories of one run of the lab on other hosts: one for each login, folder, and use of sudo."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._made: dict[tuple[str, str, bool], HostRunDirectory] = {}

    def at(self, ssh: str, data: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> HostRunDirectory:
        """Returns the run directory for a login and a folder, and makes it on first use. Raises HostTrouble."""
        key = (ssh, data, sudo)
        if key not in self._made:
            self._made[key] = HostRunDirectory.make(self._run, ssh, data, sudo=sudo, patience_s=patience_s)
        return self._made[key]

    def ready(self, wanted: HostRunDirectory) -> list[str]:
        """Prepares a run directory for a trial. If its host was lost, prepares the other run directories on the same
        host too, so that no server of their trials still runs on the host during this trial.

        Returns sentences on the loss of the host. Raises HostTrouble.
        """
        where = wanted.host.connection.where
        beside = [
            other
            for other in self._made.values()
            if other is not wanted
            and other.host.connection.lost is not None
            and (other.host.connection.where.host, other.host.connection.where.port) == (where.host, where.port)
        ]
        sentences = [one.ready() for one in (wanted, *beside)]
        return [sentence for sentence in sentences if sentence is not None]

    def remove(self) -> list[str]:
        """Removes all run directories on hosts. Returns a sentence for each of them that could not be removed, and for
        each change of a host that stays because somebody else has changed the value in the meantime."""
        failures = []
        for key, directory in list(self._made.items()):
            try:
                failures += directory.remove()
            except (HostTrouble, OSError) as error:
                failures.append(
                    f"{directory.root} on {directory.machine.label} could not be removed, and what the study has "
                    f"changed there could not be undone ({error}); run pgtrial cleanup when that host can be reached "
                    "again."
                )
            else:
                del self._made[key]
        return failures
