"""A disk that is full at the end of a study: its verdict is printed, and what is not written is said."""

from __future__ import annotations

import errno
import os

import pytest

from pgtrial.cli import main
from pgtrial.files.writing import NewFile
from pgtrial.model.errors import StoreError
from tests.conftest import require_engine
from tests.report.conftest import Audit, write_study
from tests.verdict.studies import make_plan, noisy, run

NOT_WRITTEN = {
    "verdict.json": "verdict.json, report.md and report.html are not written",
    "report.md": "report.md and report.html are not written",
    "report.html": "report.html is not written",
}


@pytest.fixture
def study(tmp_path):
    """Returns a study with all its trials, and without a report."""
    require_engine()
    plan = make_plan()
    return write_study(tmp_path / "s", plan, run(plan, noisy({"off": 1.4})), Audit(findings=[]), "Is it?")


def ended(*words) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code)


@pytest.mark.parametrize("file", NOT_WRITTEN)
def test_the_verdict_is_printed_and_what_is_not_written_is_said(study, capsys, monkeypatch, file):
    flush = NewFile.flush

    def is_full(new: NewFile) -> None:
        if new.path.name.startswith(f".{file}."):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(new)

    monkeypatch.setattr(NewFile, "flush", is_full)
    assert ended("run", study.path) == 3
    out, err = capsys.readouterr()
    assert "faster than on" in out
    assert "report: " not in out
    assert err.endswith(
        f"pgtrial: error: cannot write {study.path / file}: No space left on device; {NOT_WRITTEN[file]}, and nothing "
        f"measured is lost: free some space, then `pgtrial report {study.path}` writes the report\n"
    )
    assert [path.name for path in study.path.glob(".*.tmp")] == []
    monkeypatch.undo()
    assert ended("report", study.path) == 0
    assert (study.path / "report.html").stat().st_size > 0


def test_a_disk_that_is_full_during_a_study_names_the_command_that_goes_on(study, capsys, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise StoreError("cannot write it: No space left on device; free some space")

    monkeypatch.setattr("pgtrial.cli.conduct.run_study", full)
    assert ended("run", study.path) == 3
    assert capsys.readouterr().err.endswith(
        "pgtrial: error: cannot write it: No space left on device; free some space; 16 of 16 trials are stored; "
        f"correct this error, and then continue the study with: pgtrial run {study.path}\n"
    )
