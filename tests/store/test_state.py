"""The state directory: texts that are kept in it, and the record of this machine's noise, of which some is ignored."""

from __future__ import annotations

import json

import pytest

from pgtrial.model.errors import StoreError
from pgtrial.model.records.machine import Conditions, Noise
from pgtrial.store.state import keep_noise, kept, noise_under, read_noise

HERE = Conditions(lab_host="box", servers=[], load_points=["select-only, 8 clients"], arms=2, duration_s=10.0)


def noise(study: str = "one", blocks: int = 12, **changed: object) -> Noise:
    return Noise(
        study=study,
        created="2026-11-20T14:12:00+00:00",
        conditions=HERE.model_copy(update=changed),
        blocks=blocks,
        spread=0.05,
    )


@pytest.fixture
def record(tmp_path):
    return tmp_path / "noise.json"


def test_a_study_is_kept_once_with_its_latest_blocks(record):
    assert read_noise(record) == []
    for blocks in (4, 5, 6):
        keep_noise(record, noise(blocks=blocks))
    keep_noise(record, noise("two"))
    assert [(each.study, each.blocks) for each in read_noise(record)] == [("one", 6), ("two", 12)]


def test_the_record_stays_small(record):
    for number in range(103):
        keep_noise(record, noise(str(number)))
    assert [each.study for each in read_noise(record)] == [str(number) for number in range(3, 103)]


def test_the_latest_study_with_enough_blocks_speaks_for_the_next_one():
    studies = [noise("many", 40), noise("eight", 8), noise("few", 5)]
    assert noise_under(HERE, studies) == studies[1]
    assert noise_under(HERE, [noise("four", 4), noise("five", 5)]) == noise("five", 5)


@pytest.mark.parametrize(
    "other",
    [
        {"lab_host": "another"},
        {"servers": ["db.example"]},
        {"fleet": "auto"},
        {"load_points": ["tpcb-like, 8 clients"]},
        {"arms": 3},
        {"duration_s": 21.0},
        {"duration_s": 4.0},
        {"slice_s": 0.25},
    ],
    ids=str,
)
def test_a_study_under_other_conditions_does_not_speak_for_this_one(other):
    assert noise_under(HERE, [noise(**other)]) is None


def test_trials_up_to_twice_as_long_are_alike():
    assert noise_under(HERE, [noise(duration_s=20.0)]) is not None


def test_a_study_of_another_length_speaks_where_its_noise_is_known_in_parts_and_no_other_does():
    longer = noise("longer", duration_s=90.0).model_copy(update={"within": 0.02})
    assert noise_under(HERE, [longer]) == longer
    alike = noise("alike", 8)
    assert noise_under(HERE, [alike, longer]) == alike
    assert noise_under(HERE, [noise("few", 5), longer]) == longer


def test_trials_that_last_until_their_tasks_are_done_are_alike():
    until_done = HERE.model_copy(update={"duration_s": 0.0})
    assert noise_under(until_done, [noise(duration_s=0.0)]) is not None
    assert noise_under(until_done, [noise(duration_s=10.0)]) is None


DAMAGED = {
    "nothing": "",
    "no JSON": '{"format": 1, "studies": [',
    "not UTF-8": b"\xff\xfe",
    "a list": "[]",
    "too deep": "[" * 100_000,
    "another shape": '{"format": 1, "studies": {}}',
    "an endless spread": json.dumps({"studies": [noise().model_dump() | {"spread": 1e300}]}),
    "a negative duration": json.dumps(
        {"studies": [noise().model_dump() | {"conditions": HERE.model_dump() | {"duration_s": -1}}]}
    ),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_record_is_told_in_one_sentence_and_begun_anew(record, text):
    record.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(
        StoreError, match=r"noise\.json is ignored: it is damaged \(.+\); the next study will replace it$"
    ):
        read_noise(record)
    keep_noise(record, noise())
    assert read_noise(record) == [noise()]


def test_the_record_of_a_newer_pgtrial_is_ignored_and_left_as_it_is(record):
    record.write_text('{"format": 2, "machines": {}}')
    for act in (lambda: read_noise(record), lambda: keep_noise(record, noise())):
        with pytest.raises(StoreError, match=r"is ignored: a newer pgtrial wrote it \(format 2\); upgrade to use it"):
            act()
    assert record.read_text() == '{"format": 2, "machines": {}}'


def test_a_record_that_cannot_be_read_or_written_is_told_in_one_sentence(tmp_path):
    (tmp_path / "noise.json").mkdir()
    with pytest.raises(StoreError, match=r"noise\.json is ignored: it cannot be read \(Is a directory\)"):
        read_noise(tmp_path / "noise.json")
    with pytest.raises(StoreError, match=r"noise\.json cannot be written \(No such file or directory\)"):
        keep_noise(tmp_path / "absent" / "noise.json", noise())


def test_a_text_is_made_once_and_kept_where_there_is_a_state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path / "state"))
    assert kept("one.js", lambda: "made") == "made"
    assert not (tmp_path / "state").exists()
    (tmp_path / "state").mkdir()
    assert kept("one.js", lambda: "made\r\n") == "made\r\n"
    assert kept("one.js", lambda: pytest.fail("it is made again")) == "made\r\n"
    (tmp_path / "state" / "kept" / "one.js").write_bytes(b"\xff")
    assert kept("one.js", lambda: "anew") == "anew"
    assert [path.name for path in (tmp_path / "state" / "kept").iterdir()] == ["one.js"]
