"""The notes of interruptions."""

from pgtrial.store import interruptions


def test_the_number_of_a_note_is_not_used_again(tmp_path):
    for _ in range(3):
        interruptions.note_interruption(tmp_path, "SIGINT", [])
    (tmp_path / "interruptions" / "0001.json").unlink()
    interruptions.note_interruption(tmp_path, "SIGINT", [])
    assert [note.number for note in interruptions.read_interruptions(tmp_path)] == [2, 3, 4]
    (tmp_path / "interruptions" / "0004.json").rename(tmp_path / "interruptions" / "9999.json")
    interruptions.note_interruption(tmp_path, "SIGINT", [])
    assert sorted(path.stem for path in (tmp_path / "interruptions").iterdir()) == ["0002", "0003", "10000", "9999"]
    assert [note.number for note in interruptions.read_interruptions(tmp_path)][-1] == 10000
