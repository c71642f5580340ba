"""A margin that the plan cannot establish is told when the study begins, and not before what refuses the study."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pgtrial.cli.conduct import _cautioning
from pgtrial.conduct.planning.noise import conditions_of
from pgtrial.conduct.progress import Preparing, StudyBegins
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.study.design import Design
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import read_study
from tests.conftest import require_engine

STUDY = """
[load]
workload = "own.sql"
scale = 1
clients = 1
warmup = "1s"
duration = "2s"
interleave = "off"
[arms.a]
[arms.b]
settings = { jit = "off" }
[verdict]
blocks = 12
margin = "1%"
"""
SENTENCE = "the 12 planned blocks can find a difference, but are too few to establish that there is none beyond the "


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Writes the study with a script, and a record of this machine's noise under which its margin is out of reach."""
    require_engine()

    def write(script):
        (tmp_path / "own.sql").write_text(script)
        (tmp_path / "study.toml").write_text(STUDY)
        spec = read_study(str(tmp_path / "study.toml"))
        plan = plan_now(spec)
        conditions = conditions_of(Design(spec), 2.0).model_dump()
        known = {"study": "jit", "created": "2026-11-20T14:12:00+00:00", "blocks": 12, "spread": 0.05}
        record = {"format": 1, "studies": [{**known, "conditions": conditions}]}
        (state / "noise.json").write_text(json.dumps(record))
        return spec, plan

    with TemporaryDirectory(prefix="pgtrial-") as folder:
        state = Path(folder)
        state.chmod(0o711)  # the account of root's servers passes through it
        monkeypatch.setenv("PGTRIAL_STATE", folder)
        yield write


def test_a_margin_out_of_reach_is_told_when_the_study_begins_and_once(study, tmp_path):
    spec, plan = study("SELECT 1;\n")
    made = StudyDirectory.create(tmp_path / "s", spec, plan)
    heard = []
    listener = _cautioning(heard.append, made, spec)
    listener(Preparing("a: rehearsing the load"))
    assert len(heard) == 1
    begins = StudyBegins(made.path, 24, 0, 12, 60.0)
    listener(begins)
    assert heard[2] is begins
    assert heard[1].text.startswith(f"warning: {SENTENCE}")
    assert heard[1].stays
    listener(StudyBegins(made.path, 24, 4, 12, 60.0))
    assert len(heard) == 4, "a study that goes on has said it"


@pytest.mark.server
def test_a_rehearsal_that_fails_stands_alone(study, commands, tmp_path):
    study("SELECT * FROM nowhere;\n")
    done = commands.run(["run", "study.toml"], tmp_path, dict(os.environ))
    assert done.returncode == 3
    assert 'relation "nowhere" does not exist' in done.stderr
    assert "too few to establish" not in done.stderr + done.stdout
