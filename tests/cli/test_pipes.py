"""Files that a shell passes as pipes, `pgtrial plan <(...)`: read once where that is enough, else refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_engine

STUDY = """
[load]
workload = "reads.sql"
clients = [1]
[arms.a]
[arms.b]
settings = { work_mem = "8MB" }
"""


@pytest.fixture
def typed(tmp_path):
    """Returns what bash prints for a line that is typed, on both of its outputs, and the status."""
    require_engine()
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "reads.sql").write_text("SELECT 1;\n")

    def run(line: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", line.replace("pgtrial", f"{Path(sys.executable).with_name('pgtrial')}", 1)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return run


@pytest.mark.parametrize("line", ["plan <(cat study.toml)", "plan /dev/stdin < <(cat study.toml)"])
def test_a_study_from_a_pipe_is_read_and_names_files_of_this_directory(typed, line):
    status, said = typed(f"pgtrial {line}")
    assert (status, "reads.sql" in said) == (0, True), said


def test_a_study_from_a_pipe_is_not_taken_for_a_bundle(typed):
    """`run` looks first whether it is one."""
    status, said = typed("pgtrial run <(sed s/reads.sql/missing.sql/ study.toml)")
    assert (status, "missing.sql" in said) == (3, True), said


def test_a_script_from_a_pipe_is_read(typed):
    status, said = typed("pgtrial plan <(sed s:reads.sql:/dev/fd/9: study.toml) 9< <(echo '\\if')")
    assert (status, '/dev/fd/9:1: syntax error in command "if"' in said) == (3, True), said


def test_data_from_a_pipe_is_refused(typed):
    status, said = typed("pgtrial compare default work_mem=8MB --query 'SELECT 1' --data <(cat reads.sql)")
    assert status == 3
    assert (
        "is a pipe, but pgtrial reads data several times, also when a study is continued; write the data to a file"
        in said
    )


@pytest.mark.parametrize("command", ["verify", "report", "verdict"])
def test_a_bundle_from_a_pipe_is_refused(typed, command):
    status, said = typed(f"pgtrial {command} <(cat study.toml)")
    assert status == 3
    assert "is a pipe, and pgtrial has to read a bundle several times" in said


def test_pgbench_reads_a_script_from_a_pipe(typed):
    status, said = typed("pgtrial pgbench -n -f <(echo 'SELECT 7;') --list-commands")
    assert (status, '"sql":"SELECT 7;"' in said) == (0, True), said
