"""The rooms of a run on other hosts: all that the lab makes there is in a room, or in its journal of changes.

The rooms of a run are recorded in its journal of undo on the lab's machine, so that the next lab after a crash finds
them: it connects again, undoes what their own journals have, and removes them.
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
from pgtrial.servers.room import Room, servers_account
from pgtrial.servers.templates import RoomTemplates

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine

_RECORDS = "rooms"
_MARK = "made-by-pgtrial"
_SOCKET_ROOM = 80
"""The longest path of a room in bytes, so that the path of a socket below it fits into 107."""


@dataclass(frozen=True)
class RoomLocation(UndoRecord):
    """The location of a room, which is also its record: the login, whether sudo is used, the folder that the study
    names, and the room's own directory."""

    of_what = "a room on a host"

    ssh: str
    sudo: bool
    data: str
    root: str
    folder_made: bool = False
    """True if the lab has made the folder, which is then removed with the room."""

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
        """Removes the room, with all that a lab that ended abruptly has changed on its host."""
        try:
            with closing(_machine(self.ssh, sudo=self.sudo)) as host:
                said = _remove(host, self)
        except (HostTrouble, OSError) as error:
            raise NotUndone(
                f"{self.root} on {self.ssh}, left by a pgtrial that ended abruptly, could not be removed ({error}); "
                "put it right and run pgtrial cleanup",
                "if that host is gone for good",
            ) from None
        return [*said, f"Removed {self.root} on {self.ssh}, left by a pgtrial that ended abruptly."]


class HostRoom(Room):
    """A room on another host. Its templates last as long as the room does."""

    def __init__(self, machine: RemoteMachine, place: RoomLocation, record: Path) -> None:
        root = Path(place.root)
        super().__init__(machine, root, f"{place.data} on {machine.label}", None, root)
        self.host = machine
        self.templates = self.own_templates = RoomTemplates(machine)
        self._place = place
        self._record = record
        self._unsettled: str | None = None
        """A description of how the host was lost, until the lab has undone what it had left on the host; else None."""

    @classmethod
    def make(cls, run: Path, ssh: str, data: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> HostRoom:
        """Connects and makes the room. Raises HostTrouble, with a sentence for the user."""
        machine = _machine(ssh, sudo=sudo, patience_s=patience_s)
        try:
            machine.check()
            root = f"{data.rstrip('/')}/pgtrial-{secrets.token_hex(4)}"
            if len(os.fsencode(root)) > _SOCKET_ROOM:
                raise HostError(f"data = {data!r} is too long for the names of sockets in it; name a shorter one")
            place = RoomLocation(ssh, sudo, data, root, folder_made=not _is_there(machine, data))
        except BaseException:
            machine.close()
            raise
        room = cls(machine, place, Journal(run, (RoomLocation,)).write(place))
        try:
            room._make()
        except OSError as error:
            room.remove()
            raise HostError(f"data = {data!r} on {ssh}: nothing can be made there: {error.strerror}") from None
        except BaseException:
            room.remove()
            raise
        return room

    def hurry(self) -> None:
        self.host.connection.hurry()

    def ready(self) -> str | None:
        """Prepares the room for a trial: waits for a host that was lost, and undoes what the lab had left on it.
        Returns a sentence about that, or None. Raises HostLost if the host is still gone, and HostError if a change of
        it could not be undone, or the room is gone.
        """
        machine = self.host
        self._unsettled = machine.rejoin() or self._unsettled
        if self._unsettled is None:
            return None
        if not machine.exists(self.root):
            raise HostError(
                f"{machine.label} {self._unsettled}, and {self.root} is gone: the file system that holds "
                f"{self._place.data} is not mounted, or does not outlive a start; mount it, or name another folder"
            )
        machine.end_jobs(_jobs(self.root))
        machine.begin_jobs(_jobs(self.root))
        stays = _undo_changes(self.root, machine)
        # a server that ended with its host may have left its data in any state, and an empty cluster was never flushed
        self.kept.clear()
        self.templates.forget_empty()
        for path in machine.glob(f"{glob.escape(str(self.root))}/[0-9]*"):
            if path not in self.templates.present():
                machine.remove_tree(path)
        happened, self._unsettled = self._unsettled, None
        self.settled += 1
        undone = "what pgtrial had changed there was undone and made anew"
        but = (sentence.removesuffix(".") for sentence in stays)
        return "; ".join([f"{machine.label} {happened} before this trial", undone, *but])

    def remove(self) -> list[str]:
        """Undoes what the journal has and removes the room, so that nothing is left there. Returns a sentence for each
        change that stays, since somebody else has altered it. Raises HostTrouble."""
        self.hurry()
        self.host.rejoin()
        stays = _remove(self.host, self._place)
        self._record.unlink(missing_ok=True)
        self.host.close()
        return stays

    def _make(self) -> None:
        machine, root = self.host, self.root
        if self._place.folder_made:
            machine.mkdir(Path(self._place.data), 0o755)
        self.account = servers_account(machine)
        if self.account is not None:
            check_way(machine, root.parent)
        machine.begin_jobs(_jobs(root))
        machine.mkdir(root, 0o700 if self.account is None else 0o711)
        machine.write_text(
            root / _MARK, f"Room of a pgtrial on {os.uname().nodename}; `pgtrial cleanup` there removes it.\n"
        )
        if self.account is not None and machine.looked(["test", "-x", root / "."], user=self.account).status != 0:
            raise HostError(
                f"servers on {machine.label} run as the user {self.account}, who cannot reach {self._place.data}; "
                "let everyone enter it (mode 755, and all above it)"
            )


def _machine(ssh: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> RemoteMachine:
    # ssh takes a fifth of a second to import, and most studies reach no other host
    from pgtrial.machines.ssh.machine import RemoteMachine  # noqa: PLC0415

    return RemoteMachine(ssh, sudo=sudo, patience_s=patience_s)


def _undo_changes(root: Path, machine: Machine) -> list[str]:
    """Undoes what the journal of a room has. Returns a sentence for each change that stays, since somebody else has
    altered it. Raises HostError if something could not be undone, and HostLost."""
    undone = HostJournal(root, machine).journal.undo()
    if undone.failures:
        raise HostError(" ".join([*undone.failures, *undone.done]))
    return undone.done


def _remove(machine: RemoteMachine, place: RoomLocation) -> list[str]:
    """Removes a room, and returns what `_undo_changes` returns. Raises HostTrouble."""
    root, stays = Path(place.root), list[str]()
    machine.check()
    machine.end_jobs(_jobs(root))
    if machine.exists(root):
        _check_room(machine, place)
        if machine.root:
            check_way(machine, root.parent)
        stays = _undo_changes(root, machine)
        machine.remove_tree(root)
        if machine.exists(root):
            raise HostError(f"{root} on {machine.label} cannot be removed; look what is in it")
    if place.folder_made and machine.exists(Path(place.data)):
        machine.run(["rmdir", place.data])  # fails if another pgtrial uses the folder
    return stays


def _check_room(machine: RemoteMachine, place: RoomLocation) -> None:
    """Raises HostError if another account could have written the room; former versions of pgtrial gave it to the
    servers' account."""
    root = Path(place.root)
    try:
        check_own(machine, [root])
    except HostError:
        (entry,) = machine.entries([root])
        account = servers_account(machine)
        if account is None or entry.kind != "d" or machine.looked(["id", "-u", account]).stdout != f"{entry.owner}\n":
            raise
        sudo = "sudo " if place.sudo else ""
        room, changes = (shlex.quote(str(path)) for path in (root, root / "changes"))
        command = f"{sudo}chown -h root: {room}; {sudo}chown -hR root: {changes}"
        raise HostError(
            f"it belongs to {account}, as rooms of a former pgtrial do, so its record of changes is not obeyed; look "
            f"at {root}/changes, and if it is right run there: {command}"
        ) from None


def _jobs(root: Path) -> Path:
    """Returns the room's directory for jobs. It belongs to the login, while the room may be another user's."""
    return Path("/tmp") / f"{root.name}-jobs"


_LOOK_AT_FOLDER = """
if [ -e "$1" ]; then [ -d "$1" ] || exit 1; [ -w "$1" ] && [ -x "$1" ] || exit 2
else above=$(dirname "$1"); [ -d "$above" ] || exit 3; [ -w "$above" ] || exit 4; echo new; fi
"""


def _is_there(machine: RemoteMachine, data: str) -> bool:
    """True if the folder exists, false if it has to be made. Raises HostTrouble if no room can be made in it."""
    where = f"data = {data!r} on {machine.label}"
    words = {
        1: f"{where} is no directory; name a directory",
        2: f"{where}: you may not write there; give it to your user (chown), write sudo = true, or name another one",
        3: f"{where}: there is no such directory, and none above it; make it (mkdir -p)",
        4: f"{where}: there is no such directory, and you may not make it; make it, or write sudo = true",
    }
    done = machine.looked(["sh", "-c", _LOOK_AT_FOLDER, "sh", data])
    if done.status != 0:
        reason = " ".join(done.stderr.split()) or f"status {done.status}"
        raise HostError(words.get(done.status, f"{where}: {reason}"))
    return done.stdout.strip() != "new"


class Rooms:
    """The rooms of one run of the lab on other hosts: one for each login, folder, and use of sudo."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._rooms: dict[tuple[str, str, bool], HostRoom] = {}

    def room(self, ssh: str, data: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> HostRoom:
        """Returns the room for a login and folder. It is made on first use. Raises HostTrouble."""
        key = (ssh, data, sudo)
        if key not in self._rooms:
            self._rooms[key] = HostRoom.make(self._run, ssh, data, sudo=sudo, patience_s=patience_s)
        return self._rooms[key]

    def ready(self, room: HostRoom) -> list[str]:
        """Prepares a room for a trial. If its host was lost, the run's other rooms there are prepared too, so that
        nothing of their trials still runs on the host during this one.

        Returns sentences about what had happened. Raises HostTrouble.
        """
        where = room.host.connection.where
        beside = [
            other
            for other in self._rooms.values()
            if other is not room
            and other.host.connection.lost is not None
            and (other.host.connection.where.host, other.host.connection.where.port) == (where.host, where.port)
        ]
        sentences = [one.ready() for one in (room, *beside)]
        return [sentence for sentence in sentences if sentence is not None]

    def remove(self) -> list[str]:
        """Removes all rooms. Returns a sentence for each that could not be removed, and for each change of a host that
        stays, since somebody else has altered it."""
        failures = []
        for key, room in list(self._rooms.items()):
            try:
                failures += room.remove()
            except (HostTrouble, OSError) as error:
                failures.append(
                    f"{room.root} on {room.machine.label}, with what the study had changed there, could not be removed "
                    f"({error}); pgtrial cleanup does it when that host is back."
                )
            else:
                del self._rooms[key]
        return failures
