"""Tests of the record of noise: what pgtrial predicts of a study from it, and what a study adds to it for later
studies.
"""

from __future__ import annotations

import itertools
import json

import pytest

from pgtrial.conduct.planning.noise import conditions_of, keep
from pgtrial.conduct.planning.outlook import Outlook, cautions, in_one_line, outlook, precision_so_far
from pgtrial.model.errors import StoreError
from pgtrial.model.marks import in_toml
from pgtrial.model.study.design import Design
from pgtrial.servers.workspace import Workspace
from pgtrial.verdict.grid import Grid
from tests.conduct.small import small_study
from tests.verdict.slices import alternate, noisy_slices
from tests.verdict.studies import noisy, run

KEYED = "host=db.example password=topsecret"


@pytest.fixture
def state(fresh_state, monkeypatch):
    """Returns a state directory for one test, made as a run makes it."""
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    with Workspace():
        pass
    return fresh_state


def present(found: Outlook | None) -> Outlook:
    assert found is not None
    return found


def test_a_study_tells_the_next_one_like_it_what_it_can_find(state, tmp_path):
    first = small_study(tmp_path / "first", blocks=12)
    assert "not known" in in_one_line(present(outlook(first.design, first.plan)), first.plan)
    trials = run(first.plan, noisy({}, sd=0.03))
    keep(first.design, Grid(first.plan, trials))
    next_one = small_study(tmp_path / "next", blocks=18, seed=5)
    found = present(outlook(next_one.design, next_one.plan))
    assert found.noise is not None
    assert found.noise.blocks == 12
    line = in_one_line(found, next_one.plan)
    assert line.startswith("finds a difference of ")
    assert line.endswith("; from 12 blocks of study study (2026-11-20) on this machine")
    assert "within 18 blocks, " in line


def test_three_blocks_are_too_few_to_be_kept_or_told(state, tmp_path):
    study = small_study(tmp_path / "s", blocks=12)
    trials = run(study.plan, noisy({}))
    keep(study.design, Grid(study.plan, trials[:6]))
    assert not (state / "noise.json").exists()
    assert precision_so_far(Grid(study.plan, trials[:6])) is None
    keep(study.design, Grid(study.plan, trials[:8]))
    assert (state / "noise.json").exists()
    assert precision_so_far(Grid(study.plan, trials[:8])) is not None


def test_a_margin_out_of_reach_is_told_with_its_blocks_and_the_feasible_one(state, tmp_path):
    study = small_study(tmp_path / "s", blocks=12)
    keep(study.design, Grid(study.plan, run(study.plan, noisy({}, sd=0.05))))
    found = present(outlook(study.design, study.plan))
    (caution,) = cautions(found, study.plan)
    assert caution.startswith(
        "the 12 planned blocks can find a difference, but are too few to establish that there is none "
    )
    feasible = float(in_toml(caution).partition('margin = "')[2].partition("%")[0]) / 100
    wider = small_study(tmp_path / "wider", blocks=12, verdict={"margin": feasible})
    assert cautions(outlook(wider.design, wider.plan), wider.plan) == []
    assert found.blocks_for_margin is not None
    longer = small_study(tmp_path / "longer", blocks=found.blocks_for_margin)
    assert cautions(outlook(longer.design, longer.plan), longer.plan) == []


def test_a_study_in_turns_tells_one_with_shorter_trials_what_it_can_find(state, tmp_path):
    in_turns = {"interleave": "auto", "share_server": False, "duration": "10s"}
    first = small_study(tmp_path / "first", blocks=40, load=in_turns)
    trials, slices = alternate(first.plan, noisy_slices(started=0.03, in_slices=0.02))
    keep(first.design, Grid(first.plan, trials), slices)
    next_one = small_study(tmp_path / "next", blocks=12, load=in_turns)
    shorter = small_study(tmp_path / "shorter", blocks=12, load={**in_turns, "duration": "2s"})
    found, by_shorter = (present(outlook(study.design, study.plan)) for study in (next_one, shorter))
    assert found.precision is not None
    assert by_shorter.precision is not None
    assert 1.0 < by_shorter.precision.difference / found.precision.difference < 1.2
    # Without stored slices, as while a study still runs, the parts of the study's noise cannot be computed.
    keep(first.design, Grid(first.plan, trials))
    assert present(outlook(shorter.design, shorter.plan)).precision is None


def test_where_no_look_can_decide_nothing_is_told(state, tmp_path):
    study = small_study(tmp_path / "s", blocks=4)
    assert outlook(study.design, study.plan) is None
    assert cautions(None, study.plan) == []


def test_a_damaged_record_is_a_note_and_no_obstacle(state, tmp_path):
    study = small_study(tmp_path / "s", blocks=12)
    (state / "noise.json").write_text("{")
    found = present(outlook(study.design, study.plan))
    (note,) = cautions(found, study.plan)
    assert "is damaged" in note
    assert in_one_line(found, study.plan).startswith("not known")


def test_no_password_gets_into_the_record(state, tmp_path):
    study = small_study(
        tmp_path / "s",
        blocks=12,
        server={"settings": {}},
        arms={"a": {"dsn": KEYED}, "b": {"dsn": f"{KEYED} options='-c jit=off'"}},
    )
    keep(study.design, Grid(study.plan, run(study.plan, noisy({}))))
    text = (state / "noise.json").read_text()
    assert "topsecret" not in text
    assert json.loads(text)["studies"][0]["conditions"]["servers"] == ["db.example"]


def test_a_state_directory_that_cannot_be_made_is_told_in_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path / "file" / "gone"))
    study = small_study(tmp_path / "s", blocks=12)
    with pytest.raises(StoreError, match=r"pgtrial cannot write to its state directory .*gone \(Not a directory\); "):
        keep(study.design, Grid(study.plan, run(study.plan, noisy({}))))


def test_the_noise_of_another_program_script_or_server_says_nothing(state, tmp_path):
    numbers = itertools.count()

    def conditions(text="SELECT 1;", **arms):
        spec = small_study(tmp_path / f"s{next(numbers)}", blocks=12, **arms).spec
        scripted = spec.with_scripts({"own.sql": text})
        return conditions_of(Design(scripted), 5.0)

    assert conditions() == conditions()
    assert conditions() != conditions("SELECT 2;")
    servers = [{"a": {"dsn": "host=db dbname=x"}, "b": {"dsn": f"host=db dbname={name}"}} for name in "xy"]
    first, second = (conditions(server={"settings": {}}, arms=arms) for arms in servers)
    assert first.servers == second.servers
    assert first != second


def test_the_noise_of_loads_that_all_are_pgtrials_own_is_shared_as_before(state, tmp_path):
    study = small_study(tmp_path / "s", blocks=12)
    assert conditions_of(study.design, 5.0).own is None
