"""Files that commands write anew replace their own kind, and nobody else's."""

from __future__ import annotations

import os

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.store.replaceable import PAGE, check_replaceable


@pytest.mark.parametrize("text", ["[load]\n", "#!/bin/sh\n", "x" * 9000 + PAGE, "\0\xff"])
def test_a_file_without_the_mark_is_not_replaced(tmp_path, text):
    (tmp_path / "mine").write_text(text, encoding="latin-1")
    with pytest.raises(
        StudyError, match=r"-o .*mine: pgtrial does not replace the existing file, because an earlier run"
    ):
        check_replaceable(tmp_path / "mine", "-o", PAGE)


def test_an_absent_an_empty_and_an_earlier_file_are_replaced(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "page").write_text(page := f"<!doctype html>\n{PAGE}\n")
    for name in ("absent", "empty", "page"):
        check_replaceable(tmp_path / name, "-o", PAGE)
    # The check itself changes no file.
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"empty": "", "page": page}


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StudyError, match="does not replace the existing file"):
        check_replaceable(tmp_path / "pipe", "-o", PAGE)
