"""Outputs that are closed, or whose disk is full: the status of a command is never one of a result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PGTRIAL = Path(sys.executable).with_name("pgtrial")
FULL = "/dev/full"


@pytest.fixture
def typed(tmp_path):
    """Returns the status of a line that is typed into bash, and what it says on stderr."""
    if not os.path.exists(FULL):
        pytest.skip(f"needs {FULL}")

    def run(line: str) -> tuple[int, str]:
        command = ["bash", "-c", line.replace("pgtrial", f"'{PGTRIAL}'", 1)]
        done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize("words", ["list", "list --json", "plan @demo", "--help"])
def test_a_full_disk_behind_stdout_is_an_error_in_one_sentence(typed, words):
    status, said = typed(f"pgtrial {words} > {FULL}")
    assert status == 3
    assert said == (
        "pgtrial: error: the output of this command cannot be written (No space left on device); free some space on "
        "the disk to which it is written\n"
    )


@pytest.mark.parametrize("stderr", [f"2> {FULL}", "2>&-"])
def test_an_error_that_cannot_be_said_has_its_status_all_the_same(typed, stderr):
    assert typed(f"pgtrial verdict absent {stderr}") == (3, "")


@pytest.mark.parametrize("words", ["list --json", "plan @demo", "cleanup --dry-run"])
def test_a_command_whose_stdout_is_closed_does_what_it_does(typed, words):
    assert typed(f"pgtrial {words} >&-") == (0, "")
