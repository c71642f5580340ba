"""Canaries of a study, and the blocks that an earlier version set aside."""

import json

import pytest

from pgtrial.conduct.plan import make_plan
from pgtrial.model.errors import StoreError
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.store.samples import reading

SPEC = build_study({"arms": {"old": {}, "new": {"settings": {"jit": "off"}}}, "verdict": {"blocks": 3}}, "test")


@pytest.fixture
def study(tmp_path):
    return StudyDirectory.create(tmp_path / "s", SPEC, make_plan(SPEC, 5, "2026-11-20T14:12:00+00:00"))


def test_canaries_read_back_as_they_were_stored_in_their_order(study):
    readings = [reading(cpu_per_s=float(number)) for number in range(12)]
    for block, taken in enumerate(readings):
        study.add_canary(block, taken)
    assert [(canary.number, canary.next_block) for canary in study.canaries()] == [(n, n) for n in range(12)]
    assert [canary.reading for canary in study.canaries()] == readings


def test_a_damaged_canary_is_named_with_its_cure(study):
    study.add_canary(0, reading())
    (study.path / "canaries" / "0000.json").write_text("{")
    with pytest.raises(StoreError, match=r"canaries/0000.json is damaged or missing .*; delete .*0000.json and run"):
        study.canaries()


def test_a_canary_with_the_judgement_of_an_earlier_version_is_read(study):
    judged = {"block": 1, "attempt": 1, "before": 5, "outcome": "void", "off": [], "reason": "off", "spent_s": 14.0}
    stored = {
        "format": 1,
        "number": 6,
        "role": "after",
        "next_block": None,
        "reading": reading().model_dump(),
        "judged": judged,
    }
    (study.path / "canaries").mkdir()
    (study.path / "canaries" / "0006.json").write_text(json.dumps(stored))
    (canary,) = study.canaries()
    assert (canary.number, canary.next_block, canary.reading) == (6, None, reading())
    study.add_canary(2, reading())
    assert [canary.number for canary in study.canaries()] == [6, 7]


def test_blocks_that_an_earlier_version_set_aside_are_known_by_their_folders(study):
    assert study.voided_blocks() == []
    for name in ("b02-1", "b00-1", "b02-2", "b10-1", ".b01-1", "bx-1", "notes"):
        (study.path / "voided" / name).mkdir(parents=True)
    assert study.voided_blocks() == [0, 2, 2, 10]
