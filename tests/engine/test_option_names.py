"""Messages and abbreviations of getopt are the original's: they begin with the name by which it was called."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import require_engine
from tests.engine.programs import TIMEOUT_S, original_path

WRONG = [
    ["--nosuch"],
    ["--nosuch=1"],
    ["-Z"],
    ["-nZ"],
    ["-c"],
    ["--client"],
    ["--jobs"],
    ["--help=3"],
    ["--no-vacuum=1"],
    ["--vacuum=x"],
    ["--p"],
    ["--pro"],
    ["--l"],
    ["--s"],
    ["--sc"],
    ["--re"],
    ["--un"],
    ["--par", "1"],
    ["--partition-m=x", "-i"],
    ["--fa"],
    ["--", "-c", "x"],
    ["-c", "--", "-n"],
    ["a", "b"],
    ["-n", "a", "-S", "b"],
    [""],
    ["-", "x"],
    ["---x"],
    ["--=x"],
]


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_wrong_options_are_named_as_by_the_original(tmp_path, args):
    ours = tmp_path / "pgbench"
    ours.symlink_to(require_engine())
    results = []
    for program in (original_path(), ours):
        done = subprocess.run(
            [program, *args],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            env={"PGHOST": str(tmp_path), "LC_ALL": "C"},
        )
        results.append((done.returncode, done.stdout, done.stderr.replace(str(program), "CALLED")))
    assert results[1] == results[0]
    assert results[1][0] == 1
