"""Studies that the user's account may not read, from the command line."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.cli.forked import forked_commands
from tests.conftest import require

NAME = "huge-pages-1gb"


@pytest.fixture
def study(tmp_path, example):
    """Yields a study directory `s`."""
    yield shutil.copytree(example(NAME).path, tmp_path / "s")
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o755)


@pytest.fixture(scope="module")
def refusal():
    """Yields a function that runs a command without the right to ignore file modes, and returns its refusal. Where the
    tests run as root, the command gives up that right.
    """
    plain = ()
    if os.geteuid() == 0:
        require(shutil.which("setpriv"), "setpriv")
        plain = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")

    with forked_commands(plain) as commands:

        def outcome(*arguments, cwd):
            done = commands.run(list(arguments), cwd, dict(os.environ))
            assert done.returncode == 3, done.stdout + done.stderr
            assert done.stderr.startswith("pgtrial: error: ")
            assert done.stderr.count("\n") == 1
            return done.stderr

        yield outcome


@pytest.mark.parametrize("part", ["trials", "facts", "facts/audit.json", "study.toml", "plan.json"])
def test_a_part_that_may_not_be_read_is_named_and_nothing_is_taken_for_absent(study, tmp_path, part, refusal):
    (study / part).chmod(0)
    outcome = refusal("verdict", "s", cwd=tmp_path)
    assert f"s/{part} cannot be read by this account; run pgtrial as its owner" in outcome


def test_a_folder_whose_files_may_not_be_opened_is_named(study, tmp_path, refusal):
    study.chmod(0o444)
    assert "s cannot be read by this account" in refusal("report", "s", cwd=tmp_path)


def test_a_trial_that_may_not_be_read_is_not_to_be_deleted(study, tmp_path, refusal):
    trial = sorted((study / "trials").iterdir())[0]
    (trial / "trial.json").chmod(0)
    outcome = refusal("verdict", "s", cwd=tmp_path)
    assert f"s/trials/{trial.name}/trial.json cannot be read by this account" in outcome
    assert "delete" not in outcome


def test_pages_of_a_results_folder_that_may_not_be_read_are_refused(study, tmp_path, refusal):
    study.rename(tmp_path / "results")
    (tmp_path / "results").chmod(0)
    assert "results cannot be read by this account" in refusal("serve", "--no-browser", cwd=tmp_path)
