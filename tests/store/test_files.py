"""Files that another program has written get their names once they are on the disk."""

from __future__ import annotations

import os

from pgtrial.store.files import take_name


def test_a_file_is_flushed_before_it_takes_its_name_and_the_directory_after_that(tmp_path, monkeypatch):
    written, path = tmp_path / "dump.part", tmp_path / "dump"
    written.write_text("rows")
    flushed: list[tuple[str, bool]] = []
    flush = os.fsync

    def watched(descriptor: int) -> None:
        flushed.append((os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")), path.exists()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    take_name(written, path)
    assert flushed == [("dump.part", False), (tmp_path.name, True)]
    assert path.read_text() == "rows"
