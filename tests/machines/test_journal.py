"""The record of changes: written before a change is made, obeyed after a crash, in the opposite order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from pgtrial.machines.journal import KINDS, HostJournal, pending, undo_all
from pgtrial.machines.machine import Change, HostError, Machine


class Note(Change):
    """A file with a word, which fails when told to."""

    path: Path
    fails: str = ""

    def make(self, machine: Machine) -> None:
        assert pending(self.path.parent, machine)[0] == str(self), "written down before it is made"
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
    assert pending(tmp_path, host) == []


def test_what_a_crash_left_is_undone_the_last_change_first(host, tmp_path):
    journal = HostJournal(tmp_path, host)
    for name in ("first", "second", "third"):
        journal.make(Note(path=tmp_path / name))
    assert pending(tmp_path, host) == ["note third", "note second", "note first"]
    assert undo_all(tmp_path, host) == []
    assert [path.name for path in tmp_path.iterdir()] == ["changes"]


def test_a_change_that_cannot_be_undone_keeps_those_before_it_and_is_named(host, tmp_path):
    journal = HostJournal(tmp_path, host)
    journal.make(Note(path=tmp_path / "below"))
    journal.make(Note(path=tmp_path / "above", fails="undo"))
    (message,) = undo_all(tmp_path, host)
    assert "note above" in message
    assert "busy" in message
    assert pending(tmp_path, host) == ["note above", "note below"]


def test_after_a_reboot_only_what_outlives_it_is_undone(host, tmp_path, monkeypatch):
    journal = HostJournal(tmp_path, host)
    journal.make(Note(path=tmp_path / "gone-by-itself"))
    journal.make(LastingNote(path=tmp_path / "lasting"))
    monkeypatch.setattr("pgtrial.machines.journal.boot_id", lambda _: "another")
    assert undo_all(tmp_path, host) == []
    assert (tmp_path / "gone-by-itself").exists()
    assert not (tmp_path / "lasting").exists()


def test_a_damaged_record_is_named_and_kept(host, tmp_path):
    entry = HostJournal(tmp_path, host).make(Note(path=tmp_path / "a"))
    entry.write_text(json.dumps({"kind": "Unknown"}))
    (message,) = undo_all(tmp_path, host)
    assert str(entry) in message
    assert entry.exists()
