"""Data is made once for a server and shared by all studies of a machine, whatever happens to the labs that make it."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

from pgtrial.cli import main
from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.run_study import run_study
from pgtrial.loads.data.data import SEGMENT_MB, prefilled_wal_mb
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.servers.state_limit import templates_of
from pgtrial.servers.workspace import Workspace
from tests.conduct.small import STUDY, measuring, once, small_study, start_lab
from tests.conftest import require_engine, require_server
from tests.processes import until

pytestmark = pytest.mark.server


SHORT = {"warmup": 0, "duration": "2s"}


@pytest.fixture(autouse=True)
def state(fresh_state, state_root, monkeypatch):
    """Returns a state directory without templates."""
    require_engine()
    require_server(18)
    (fresh_state / "kept").symlink_to(state_root / "kept")
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    return fresh_state


def _run(path, on_event=None, **sections):
    """Runs a study of one block. Returns its messages, except those about checking the set-ups, and the status of each
    trial.
    """
    study = small_study(path, blocks=1, **{"load": SHORT, **sections})
    said = []

    def listen(event):
        if isinstance(event, Preparing) and "checking the set-up" not in event.text:
            said.append(event.text)
        if on_event is not None:
            on_event(event)

    run_study(study, listen)
    assert {trial.status for trial in study.trials()} == {"completed"}
    return study, said


def _loads(said):
    return [line for line in said if ": loading " in line]


def _kept(state):
    return {template.contents: template for template in templates_of(state).kept()}


def _command(capsys, *arguments):
    """Returns the exit status of a command and what it printed."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def test_a_second_study_makes_nothing_and_both_are_listed(state, tmp_path, capsys):
    first, said = _run(tmp_path / "first")
    (loading,) = _loads(said)
    assert loading.endswith("loading scale 1")
    made = {name: template.made for name, template in _kept(state).items()}
    assert set(made) == {"no tables", "scale 1"}

    # with other settings, and SQL that each trial runs on its own copy
    sql = ["CREATE INDEX of_the_second ON pgbench_accounts (abalance)"]
    second, said = _run(
        tmp_path / "second", server={"setup_sql": sql}, arms={"a": {}, "b": {"settings": {"jit": "off"}}}
    )
    assert said[:2] == ["a: rehearsing the load", "b: rehearsing the load"]
    (never_used,) = said[2:]
    assert never_used.startswith("this load never uses what differs between a and b: jit (")
    assert _kept(state)["scale 1"].fault is None
    third, said = _run(tmp_path / "third")
    assert said == []
    assert {name: template.made for name, template in _kept(state).items()} == made

    status, printed, _ = _command(capsys, "list", "--json")
    assert status == 0
    listed = {each["contents"]: each for each in json.loads(printed)["templates"]}
    assert listed["scale 1"]["studies"] == [str(study.path) for study in (third, second, first)]
    assert listed["scale 1"]["bytes_on_disk"] > 15e6
    assert (listed["scale 1"]["in_use"], listed["scale 1"]["fault"]) == (False, None)
    status, printed, _ = _command(capsys, "list")
    assert status == 0
    assert listed["scale 1"]["name"] in printed
    assert "2 templates, made once and shared by all studies" in " ".join(printed.split())


def test_another_scale_version_or_initdb_option_has_a_template_of_its_own(state, tmp_path):
    _run(tmp_path / "1")
    _, said = _run(tmp_path / "2", load={**SHORT, "scale": 2})
    assert len(_loads(said)) == 1
    arms = {"base": {}, "segments": {"initdb": ["--wal-segsize=1"]}, "old": {"postgres": str(require_server(17).bin)}}
    _, said = _run(tmp_path / "3", arms=arms)
    assert len(_loads(said)) == 2
    assert {(each.postgres.partition(".")[0], each.contents) for each in templates_of(state).kept()} == {
        ("17", "no tables"),
        ("17", "scale 1"),
        ("18", "no tables"),
        ("18", "no tables, initdb --wal-segsize=1"),
        ("18", "scale 1"),
        ("18", "scale 1, initdb --wal-segsize=1"),
        ("18", "scale 2"),
    }


def test_a_damaged_template_is_made_anew_with_one_sentence(state, tmp_path):
    _run(tmp_path / "1")
    store = templates_of(state)
    template = _kept(state)["scale 1"]
    largest = max((store.root / template.name / "data" / "base").rglob("*"), key=lambda path: path.stat().st_size)
    size = largest.stat().st_size
    os.truncate(largest, size - 8192)
    name = largest.relative_to(store.root / template.name)
    fault = f"{name} has {size - 8192:,} bytes instead of {size:,}"
    assert _kept(state)["scale 1"].fault == fault

    _, said = _run(tmp_path / "2")
    assert said.count(f"the template {template.name} is damaged ({fault}); it is made again") == 1
    assert len(_loads(said)) == 1
    assert _kept(state)["scale 1"].fault is None


def test_damage_in_the_middle_of_a_study_is_mended_and_noted_with_the_trial(state, tmp_path):
    def damage():
        template = _kept(state)["scale 1"]
        (templates_of(state).root / template.name / "data" / "PG_VERSION").unlink()

    study, _ = _run(tmp_path / "s", once(measuring, damage))
    notes = [trial.notes for trial in study.trials()]
    assert notes[0] == []
    assert notes[1] == [
        f"the template {_kept(state)['scale 1'].name} is damaged (data/PG_VERSION is missing); it is made again"
    ]


def test_a_template_is_removed_by_its_name_unless_it_is_in_use(state, tmp_path, capsys):
    refused = []

    def remove():
        refused.append(_command(capsys, "cleanup", "--template", _kept(state)["scale 1"].name))

    _run(tmp_path / "1", once(measuring, remove))
    name = _kept(state)["scale 1"].name
    ((status, _, said),) = refused
    assert status == 3
    assert f"the template {name} is in use by a running pgtrial; try again when that pgtrial has ended" in said

    assert _command(capsys, "cleanup", "--template", "pg1")[0] == 3
    assert _command(capsys, "cleanup", "--unused", "soon")[0] == 3
    assert _command(capsys, "cleanup", "--unused", "30d")[0] == 0
    status, printed, _ = _command(capsys, "cleanup", "--dry-run", "--template", name)
    assert f"{name}: template, scale 1, " in printed
    assert printed.startswith("would remove ")
    assert " of templates would be kept; --templates removes them too" in printed
    assert set(_kept(state)) == {"no tables", "scale 1"}
    status, printed, _ = _command(capsys, "cleanup", "--template", name)
    assert status == 0
    assert f"{name}, scale 1, " in printed
    assert set(_kept(state)) == {"no tables"}
    assert len(_loads(_run(tmp_path / "2")[1])) == 1
    assert _command(capsys, "cleanup", "--unused", "0s")[0] == 0
    assert _kept(state) == {}


def test_a_template_has_as_many_ready_made_wal_files_as_its_data_is_large(state, tmp_path):
    _run(tmp_path / "1")
    wal = templates_of(state).root / _kept(state)["scale 1"].name / "data" / "pg_wal"
    segments = [path for path in wal.iterdir() if re.fullmatch(r"[0-9A-F]{24}", path.name)]
    assert len(segments) == 1 + prefilled_wal_mb(PgbenchTables(1)) // SEGMENT_MB


def _loading(state):
    """True if the server that loads the data of a new template is running."""
    return any(state.glob("runs/*/*-template-s20/data/postmaster.pid"))


def test_a_lab_that_is_killed_while_it_makes_data_leaves_none(state, tmp_path):
    lab = start_lab(tmp_path, STUDY.replace("scale = 1", "scale = 20"))
    until(lambda: lab.poll() is not None or _loading(state), "data is loaded")
    lab.send_signal(signal.SIGKILL)
    lab.communicate()
    assert "scale 20" not in _kept(state)

    with Workspace(state) as workspace:
        assert any("ended abruptly" in notice for notice in workspace.notices)
    assert {path.name.removesuffix(".lock") for path in (state / "templates").iterdir()} == {
        template.name for template in _kept(state).values()
    }
    _, said = _run(tmp_path / "next", load={**SHORT, "scale": 20})
    assert len(_loads(said)) == 1
    assert _kept(state)["scale 20"].fault is None


def test_two_studies_at_once_make_their_data_once(state, tmp_path):
    labs = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        study = STUDY.replace("scale = 1", "scale = 2").replace('"5s"', '"2s"')
        labs.append(start_lab(tmp_path / name, study))
    said = [lab.communicate() for lab in labs]
    assert [lab.returncode for lab in labs] == [0, 0], said
    assert sum("loading scale 2" in out + err for out, err in said) == 1
    assert len(_kept(state)["scale 2"].studies) == 2
