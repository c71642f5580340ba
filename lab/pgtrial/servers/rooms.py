"""The rooms of a run on other hosts. Everything that the lab makes on another host is in a room, or is recorded in the
room's journal of changes.

The rooms themselves are recorded in the run's journal of undo on the machine of the lab. If the lab is killed, the next
pgtrial finds them there: it connects to the hosts again, undoes the changes that the rooms' journals record, and
removes the rooms.
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
"""The longest possible path of a room in bytes. With a longer path, the path of a Unix socket below it could exceed the
limit of 107 bytes."""


@dataclass(frozen=True)
class RoomLocation(UndoRecord):
    """The location of a room on another host, which is also its record in the journal of undo: the login, whether
    pgtrial uses sudo, the folder that the study names (`data`), and the room's own directory in it (`root`)."""

    of_what = "a room on a host"

    ssh: str
    sudo: bool
    data: str
    root: str
    folder_made: bool = False
    """True if the lab has made the folder `data`. It is then removed together with the room."""

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
        """Undoes the changes that a killed lab has left on the host of the room, and removes the room."""
        try:
            with closing(_machine(self.ssh, sudo=self.sudo)) as host:
                said = _remove(host, self)
        except (HostTrouble, OSError) as error:
            raise NotUndone(
                f"{self.root} on {self.ssh}, left by a pgtrial that ended abruptly, could not be removed ({error}); "
                "correct the cause and run pgtrial cleanup",
                "if that host is gone for good",
            ) from None
        return [*said, f"Removed {self.root} on {self.ssh}, left by a pgtrial that ended abruptly."]


class HostRoom(Room):
    """A room on another host. Its templates exist only as long as the room."""

    def __init__(self, machine: RemoteMachine, place: RoomLocation, record: Path) -> None:
        root = Path(place.root)
        super().__init__(machine, root, f"{place.data} on {machine.label}", None, root)
        self.host = machine
        self.templates = self.own_templates = RoomTemplates(machine)
        self._place = place
        self._record = record
        self._unsettled: str | None = None
        """What has happened to the host since it was lost, such as `was restarted`, until the lab has undone what it
        had left there; otherwise None."""

    @classmethod
    def make(cls, run: Path, ssh: str, data: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> HostRoom:
        """Connects to the host and makes the room there. Raises HostTrouble, with a sentence for the user."""
        machine = _machine(ssh, sudo=sudo, patience_s=patience_s)
        try:
            machine.check()
            root = f"{data.rstrip('/')}/pgtrial-{secrets.token_hex(4)}"
            if len(os.fsencode(root)) > _SOCKET_ROOM:
                raise HostError(
                    f"data = {data!r} is too long a path for Unix sockets below it; name a folder with a shorter path"
                )
            place = RoomLocation(ssh, sudo, data, root, folder_made=not _is_there(machine, data))
        except BaseException:
            machine.close()
            raise
        room = cls(machine, place, Journal(run, (RoomLocation,)).write(place))
        try:
            room._make()
        except OSError as error:
            room.remove()
            raise HostError(f"data = {data!r} on {ssh}: pgtrial cannot make files there: {error.strerror}") from None
        except BaseException:
            room.remove()
            raise
        return room

    def hurry(self) -> None:
        self.host.connection.hurry()

    def ready(self) -> str | None:
        """Prepares the room for a trial. If the host was lost before, waits until it can be reached, and undoes what
        the lab had left on it.

        Returns a sentence on the loss of the host, or None. Raises HostLost if the host still cannot be reached, and
        HostError if a change could not be undone, or if the room does not exist any more.
        """
        machine = self.host
        self._unsettled = machine.rejoin() or self._unsettled
        if self._unsettled is None:
            return None
        if not machine.exists(self.root):
            raise HostError(
                f"{machine.label} {self._unsettled}, and {self.root} is gone: the file system that holds "
                f"{self._place.data} is not mounted, or does not survive a restart; mount it, or name another folder"
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
        """Undoes the changes that the room's journal records, and removes the room. Returns a sentence for each change
        that stays because somebody else has changed the value in the meantime. Raises HostTrouble."""
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
                "let everyone enter this directory and all its parent directories (mode 755)"
            )


def _machine(ssh: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> RemoteMachine:
    # importing ssh takes a fifth of a second, and most studies use no other host
    from pgtrial.machines.ssh.machine import RemoteMachine  # noqa: PLC0415

    return RemoteMachine(ssh, sudo=sudo, patience_s=patience_s)


def _undo_changes(root: Path, machine: Machine) -> list[str]:
    """Undoes the changes that the journal of a room records. Returns a sentence for each change that stays because
    somebody else has changed the value in the meantime. Raises HostError if a change could not be undone, and
    HostLost."""
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
            raise HostError(f"{root} on {machine.label} cannot be removed; see what it contains and remove it yourself")
    if place.folder_made and machine.exists(Path(place.data)):
        machine.run(["rmdir", place.data])  # fails if another pgtrial uses the folder
    return stays


def _check_room(machine: RemoteMachine, place: RoomLocation) -> None:
    """Raises HostError if another account could have written to the room. The message has a cure if the room belongs to
    the servers' account, as rooms of earlier versions of pgtrial do."""
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
            f"it belongs to {account}, as rooms of an earlier version of pgtrial do, so pgtrial does not trust its "
            f"record of changes; look at {root}/changes, and if the changes there are right, run on that host: "
            f"{command}"
        ) from None


def _jobs(root: Path) -> Path:
    """Returns the directory for the jobs of a room. It is below /tmp, since it belongs to the account that is logged
    in, while the room can belong to root."""
    return Path("/tmp") / f"{root.name}-jobs"


_LOOK_AT_FOLDER = """
if [ -e "$1" ]; then [ -d "$1" ] || exit 1; [ -w "$1" ] && [ -x "$1" ] || exit 2
else above=$(dirname "$1"); [ -d "$above" ] || exit 3; [ -w "$above" ] || exit 4; echo new; fi
"""


def _is_there(machine: RemoteMachine, data: str) -> bool:
    """True if the folder `data` exists on the host, false if pgtrial has to make it. Raises HostTrouble if pgtrial
    cannot make a room in it."""
    where = f"data = {data!r} on {machine.label}"
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


class Rooms:
    """The rooms of one run of the lab on other hosts: one for each login, folder, and use of sudo."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._rooms: dict[tuple[str, str, bool], HostRoom] = {}

    def room(self, ssh: str, data: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> HostRoom:
        """Returns the room for a login and a folder, and makes it on first use. Raises HostTrouble."""
        key = (ssh, data, sudo)
        if key not in self._rooms:
            self._rooms[key] = HostRoom.make(self._run, ssh, data, sudo=sudo, patience_s=patience_s)
        return self._rooms[key]

    def ready(self, room: HostRoom) -> list[str]:
        """Prepares a room for a trial. If its host was lost, prepares the run's other rooms on the same host too, so
        that no server of their trials still runs on the host during this trial.

        Returns sentences on the loss of the host. Raises HostTrouble.
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
        """Removes all rooms. Returns a sentence for each room that could not be removed, and for each change of a host
        that stays because somebody else has changed the value in the meantime."""
        failures = []
        for key, room in list(self._rooms.items()):
            try:
                failures += room.remove()
            except (HostTrouble, OSError) as error:
                failures.append(
                    f"{room.root} on {room.machine.label} could not be removed, and what the study has changed there "
                    f"could not be undone ({error}); run pgtrial cleanup when that host can be reached again."
                )
            else:
                del self._rooms[key]
        return failures
