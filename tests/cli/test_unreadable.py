"""Studies that the user's account may not read, from the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import require

NAME = "huge-pages-1gb"
_MAIN = "from pgtrial.cli import main; main()"


@pytest.fixture
def study(tmp_path, example):
    """A study directory `s`."""
    yield shutil.copytree(example(NAME).path, tmp_path / "s")
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o755)


def pgtrial(*arguments, cwd):
    """The command of an account that file modes apply to: of root without the right to pass over them."""
    plain = [sys.executable, "-c", _MAIN, *arguments]
    if os.geteuid() == 0:
        require(shutil.which("setpriv"), "setpriv")
        plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *plain]
    return subprocess.run(plain, cwd=cwd, capture_output=True, text=True, check=False)


def refusal(*arguments, cwd):
    done = pgtrial(*arguments, cwd=cwd)
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr.startswith("pgtrial: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("part", ["trials", "facts", "facts/audit.json", "study.toml", "plan.json"])
def test_a_part_that_may_not_be_read_is_named_and_nothing_is_taken_for_absent(study, tmp_path, part):
    (study / part).chmod(0)
    said = refusal("verdict", "s", cwd=tmp_path)
    assert f"s/{part} may not be read by this account; run pgtrial as its owner" in said


def test_a_folder_whose_files_may_not_be_opened_is_named(study, tmp_path):
    study.chmod(0o444)
    assert "s may not be read by this account" in refusal("report", "s", cwd=tmp_path)


def test_a_trial_that_may_not_be_read_is_not_to_be_deleted(study, tmp_path):
    trial = sorted((study / "trials").iterdir())[0]
    (trial / "trial.json").chmod(0)
    said = refusal("verdict", "s", cwd=tmp_path)
    assert f"s/trials/{trial.name}/trial.json may not be read" in said
    assert "delete" not in said


def test_pages_of_a_results_folder_that_may_not_be_read_are_refused(study, tmp_path):
    study.rename(tmp_path / "results")
    (tmp_path / "results").chmod(0)
    assert "results may not be read by this account" in refusal("serve", "--no-browser", cwd=tmp_path)
