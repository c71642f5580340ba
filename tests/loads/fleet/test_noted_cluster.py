"""`address = "auto"`: Ray's note of this machine's cluster is believed if no other account could have written it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgtrial.loads.fleet.joining import resolved
from pgtrial.model.errors import StudyError
from tests.conftest import require

_OTHERS = 65534


@pytest.fixture
def noted(tmp_path, monkeypatch) -> Path:
    """Makes Ray's directory open to all accounts, as Ray does, with this account's file on the current cluster; returns
    the file.
    """
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray").chmod(0o777)
    note = tmp_path / "ray" / "ray_current_cluster"
    note.write_text("10.0.0.1:6379\n")
    note.chmod(0o644)
    return note


def test_a_note_of_this_account_is_believed(noted):
    assert resolved("auto") == "10.0.0.1:6379"


def test_a_note_of_another_account_is_not(noted):
    require(os.geteuid() == 0, "root")
    os.chown(noted, _OTHERS, _OTHERS)
    with pytest.raises(
        StudyError,
        match=r"not trust .*ray_current_cluster, in which Ray notes the address of its cluster: it belongs to another",
    ):
        resolved("auto")


def test_a_note_in_a_directory_of_another_account_is_not(noted):
    require(os.geteuid() == 0, "root")
    os.chown(noted.parent, _OTHERS, _OTHERS)
    with pytest.raises(StudyError, match=r"its directory belongs to another account"):
        resolved("auto")


def test_a_note_that_others_may_write_is_not(noted):
    noted.chmod(0o666)
    with pytest.raises(StudyError, match="it can be written by other accounts"):
        resolved("auto")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_note_that_is_no_file_is_not(noted, tmp_path, kind):
    noted.unlink()
    if kind == "link":
        (tmp_path / "other").write_text("10.0.0.1:6379\n")
        noted.symlink_to(tmp_path / "other")
    elif kind == "pipe":
        os.mkfifo(noted)
    else:
        noted.mkdir()
    with pytest.raises(
        StudyError,
        match=r"pgtrial does not trust .*ray_current_cluster, in which Ray notes the address of its cluster: ",
    ):
        resolved("auto")


def test_without_a_note_there_is_no_cluster(noted):
    noted.unlink()
    with pytest.raises(StudyError, match="no Ray cluster runs on this machine"):
        resolved("auto")
