"""The record of changes: written before a change is made, obeyed after a crash, in the opposite order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import ClassVar

import pytest

from pgtrial.machines.host_changes import KINDS, HostJournal
from pgtrial.machines.kernel import Counterpart, HugePages, KernelValue, Parameter
from pgtrial.machines.machine import Change, HostError, Machine
from pgtrial.machines.posix import boot_id
from pgtrial.machines.server import RunningServer
from pgtrial.machines.volumes import BackingFile, LoopDevice, Mount, MountPoint, Pool, PrivateDirectory, Signature
from tests.conftest import require_root

pytestmark = pytest.mark.machine


class Note(Change):
    """A file with a word, which fails when told to."""

    path: Path
    fails: str = ""

    def make(self, machine: Machine) -> None:
        assert HostJournal(self.path.parent, machine).journal.pending()[0] == str(self), (
            "written down before it is made"
        )
        machine.write_text(self.path, "")
        if self.fails == "make":
            raise HostError("no")

    def undo(self, machine: Machine) -> None:
        if self.fails == "undo":
            raise HostError("busy")
        machine.unlink(self.path)

    def __str__(self) -> str:
        return f"note {self.path.name}"


class LastingNote(Note):
    survives_reboot: ClassVar[bool] = True


@pytest.fixture(autouse=True)
def _notes_are_kinds_of_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Note, LastingNote):
        monkeypatch.setitem(KINDS, kind.__name__, kind)


def test_a_change_is_in_force_inside_and_undone_on_every_way_out(host, tmp_path):
    journal, note = HostJournal(tmp_path, host), Note(path=tmp_path / "a")
    with journal.made(note):
        assert note.path.exists()
    with pytest.raises(KeyboardInterrupt), journal.made(note):
        raise KeyboardInterrupt
    with pytest.raises(HostError), journal.made(Note(path=tmp_path / "b", fails="make")):
        pass
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert HostJournal(tmp_path, host).journal.pending() == []


def test_what_a_crash_left_is_undone_the_last_change_first(host, tmp_path):
    journal = HostJournal(tmp_path, host)
    for name in ("first", "second", "third"):
        journal.make(Note(path=tmp_path / name))
    assert HostJournal(tmp_path, host).journal.pending() == ["note third", "note second", "note first"]
    assert HostJournal(tmp_path, host).journal.undo() == ([], [])
    assert [path.name for path in tmp_path.iterdir()] == ["changes"]


def test_a_change_that_cannot_be_undone_keeps_those_before_it_and_is_named(host, tmp_path):
    journal = HostJournal(tmp_path, host)
    journal.make(Note(path=tmp_path / "below"))
    journal.make(Note(path=tmp_path / "above", fails="undo"))
    _, [message] = HostJournal(tmp_path, host).journal.undo()
    assert "note above" in message
    assert "busy" in message
    assert HostJournal(tmp_path, host).journal.pending() == ["note above", "note below"]


def test_after_a_reboot_only_what_outlives_it_is_undone(host, tmp_path, monkeypatch):
    journal = HostJournal(tmp_path, host)
    journal.make(Note(path=tmp_path / "gone-by-itself"))
    journal.make(LastingNote(path=tmp_path / "lasting"))
    monkeypatch.setattr("pgtrial.machines.host_changes.boot_id", lambda _: "another")
    assert HostJournal(tmp_path, host).journal.undo() == ([], [])
    assert (tmp_path / "gone-by-itself").exists()
    assert not (tmp_path / "lasting").exists()


def test_a_damaged_record_is_named_and_kept(host, tmp_path):
    entry = HostJournal(tmp_path, host).make(Note(path=tmp_path / "a"))
    entry.write_text(json.dumps({"kind": "Unknown"}))
    _, [message] = HostJournal(tmp_path, host).journal.undo()
    assert str(entry) in message
    assert entry.exists()


class TestRecordsOfOthers:
    """A record that another account could have written, or that names what its kind never touches, is not obeyed."""

    @pytest.mark.parametrize("place", [".", "changes", "changes/000001.json"])
    @pytest.mark.parametrize("mode", [None, 0o707, 0o777])
    def test_a_record_that_another_account_could_have_written(self, host, tmp_path, place, mode):
        require_root()
        run = tmp_path / "run"
        run.mkdir()
        HostJournal(run, host).make(Note(path=run / "a"))
        if mode is None:
            shutil.chown(run / place, "nobody")
        else:
            (run / place).chmod(mode)
        _, [message] = HostJournal(run, host).journal.undo()
        assert (
            "belongs to another account" in message if mode is None else "can be written by other accounts" in message
        )
        assert (run / "a").exists()

    @pytest.mark.parametrize("place", ["changes", "changes/000001.json"])
    def test_a_link(self, host, tmp_path, place):
        HostJournal(tmp_path, host).make(Note(path=tmp_path / "a"))
        (tmp_path / place).rename(tmp_path / "elsewhere")
        (tmp_path / place).symlink_to(tmp_path / "elsewhere")
        _, [message] = HostJournal(tmp_path, host).journal.undo()
        assert "is a symbolic link" in message
        assert (tmp_path / "a").exists()

    @pytest.mark.parametrize(
        "change",
        [
            BackingFile(path=Path("/etc/passwd"), size=1),
            BackingFile(path=Path("RUN/../../etc/passwd"), size=1),
            MountPoint(path=Path("/srv")),
            LoopDevice(file=Path("/etc/passwd")),
            Mount(filesystem="ext4", source="/dev/sda", target=Path("/usr")),
            PrivateDirectory(path=Path("/home")),
            PrivateDirectory(path=Path("/home/../etc")),
            Pool(name="tank", device=Path("/dev/sda"), target=Path("RUN/volume-storage")),
            Signature(device=Path("/dev/sda"), uuid="", make_command=()),
            Signature(device=Path("/dev/sda"), uuid="ext4", make_command=()),
            KernelValue(name="x", path=Path("/etc/passwd"), value="", previous=""),
            KernelValue(name="x", path=Path("/proc/sys/../../etc/passwd"), value="", previous=""),
            KernelValue(name="x", path=Path("/sys/kernel/uevent_helper"), value="", previous=""),
            KernelValue(
                name="vm.dirty_bytes",
                path=Path("/proc/sys/vm/dirty_bytes"),
                value="1",
                previous="0",
                counterpart=Counterpart(name="vm.dirty_ratio", path=Path("/etc/passwd"), previous="1"),
            ),
            Parameter(name="--load=/etc/shadow", value="", previous=""),
            HugePages(size="../../x", pages=1, previous=1),
            RunningServer(bin=Path("/bin"), data=Path("/var/lib/postgresql/15/main"), log=Path("/dev/null")),
        ],
        ids=str,
    )
    def test_a_change_of_what_its_kind_never_touches(self, host, tmp_path, change):
        journal = HostJournal(tmp_path, host)
        entry = journal.make(Note(path=tmp_path / "a"))
        content = {"kind": type(change).__name__, "boot": boot_id(host), "change": change.model_dump(mode="json")}
        entry.write_text(json.dumps(content).replace("RUN", str(tmp_path)))
        _, [message] = HostJournal(tmp_path, host).journal.undo()
        assert "would touch what a change of its kind never touches" in message
        assert entry.exists()
