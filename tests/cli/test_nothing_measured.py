"""A study in which no trial of an arm completed says so by its status, its last line and its report."""

import os

import pytest

from pgtrial.store.directory import StudyDirectory
from tests.conftest import require_engine

pytestmark = pytest.mark.server

STUDY = """
[load]
workload = "fails.sql"
clients = 1
warmup = "300ms"
duration = "4s"
interleave = "off"
[arms.base]
[arms."no jit"]
settings = { jit = "off" }
[verdict]
blocks = BLOCKS
"""

FAILS_WITH_JIT = """
SELECT (current_setting('jit') = 'on') AS jit \\gset
\\if :jit
CREATE TEMP TABLE once (n int);
\\else
{otherwise}
\\endif
"""
"""A rehearsal runs it once; the second transaction of a session fails with jit, which ends the trial. So a trial is
long only where nothing fails; four seconds, lest a machine that stands still for one leaves it without a transaction.
"""


@pytest.fixture
def run(commands, tmp_path):
    """Runs a study of the script for so many blocks; returns what the command did, and the study."""

    def command(script, blocks, *options):
        (tmp_path / "fails.sql").write_text(script)
        (tmp_path / "study.toml").write_text(STUDY.replace("BLOCKS", str(blocks)))
        environment = {**os.environ, "PGTRIAL_ENGINE": str(require_engine()), "COLUMNS": "1000"}
        done = commands.run(["run", "study.toml", "--results", "r", *options], tmp_path, environment)
        return done, StudyDirectory.open(tmp_path / "r")

    return command


def test_a_study_of_which_all_trials_fail_for_different_reasons_has_status_2_and_ends_after_two_blocks(run):
    done, study = run(FAILS_WITH_JIT.format(otherwise="CREATE TEMP TABLE other (n int);"), 6)
    assert done.returncode == 2
    assert [trial.status for trial in study.trials()] == ["failed"] * 4
    assert "  next  " not in done.stdout
    assert "no trial of the first 2 blocks completed, on any arm" in done.stdout
    for told in (" ".join(done.stdout.split()), (study.path / "report.md").read_text()):
        assert "missing" in told
        assert "nothing was measured, since all trials failed: base: 2 trials: " in told
        assert 'relation "once" already exists; no jit: 2 trials: ' in told
        assert 'relation "other" already exists; mend that, and run the study again' in told


def test_an_arm_of_which_no_trial_completes_is_named_alone(run):
    done, study = run(FAILS_WITH_JIT.format(otherwise="SELECT 1;"), 2, "--json")
    assert done.returncode == 2
    assert [trial.arm for trial in study.trials() if trial.status == "completed"] == ["no jit"] * 2
    last = done.stderr.splitlines()[-1]
    assert "nothing was measured of base, since all trials failed: base: 2 trials: " in last
    assert "no jit:" not in last
