"""Tests of the keys that a study accepts for a replay, and of the copies it keeps of its capture and its dump."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgtrial.conduct.planning.interleaving import why_not
from pgtrial.conduct.planning.plan import fewest_blocks, make_plan
from pgtrial.loads.command_lines import engine_options
from pgtrial.loads.data.kinds import data_of
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.report.kinds import words_of
from pgtrial.store.replay_files import check_unchanged
from pgtrial.store.study_file import build_study
from tests.engine.written_captures import Recorded, Sent, write_capture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a capture of two sessions, `monday`, and a dump, `shop.sql`."""
    write_capture(
        tmp_path / "monday",
        [
            Recorded([Sent(0.0, "SELECT 1"), Sent(3.0, "SELECT $1", ["7"])]),
            Recorded([Sent(8.0, "SELECT 1")]),
        ],
    )
    (tmp_path / "shop.sql").write_text("CREATE TABLE item (id integer PRIMARY KEY);\n")
    return tmp_path


def spec(folder: Path, *, replay: object = None, **load: object) -> StudySpec:
    data = {
        "load": {"workload": "replay:monday", "replay": {"data": "shop.sql"} if replay is None else replay, **load},
        "arms": {"a": {}, "b": {"settings": {"jit": "off"}}},
    }
    return build_study(data, "test", folder)


def test_a_replay_is_one_load_point_with_an_end_of_its_own(folder):
    study = spec(folder, replay={"data": "shop.sql", "speed": 4, "sample": "50%", "copies": 3})
    (point,) = load_points(study)
    assert point.label == "replay of monday, a sample of 0.5 of 2 sessions x 3 at 4 times the recorded speed"
    assert point.slug == "replay-monday"
    plan = make_plan(study, 1, "now")
    assert (plan.measure, plan.warmup_s, plan.duration_s, plan.interleaving) == ("mean response time", 0, 0, None)
    assert why_not(Design(study)) == "the recorded times of a replay would pass during the slices of the other arms"
    assert study.load.expected_s == 2
    assert fewest_blocks(Design(study), plan) == 10, "the shortest plan whose last look can decide its statements"
    assert plan.looks[0] == 12, "its statements can be decided at the first look"
    assert data_of(study, point).paths == (folder / "shop.sql",)
    options = engine_options(study.load, point, 5, None)
    pace = ["--speed=4", "--sample=50", "--copies=3", "-j", "1", "--random-seed", "5"]
    assert options == [str(folder / "monday"), *pace]


def test_what_a_capture_left_out_is_in_the_plan(folder):
    entry = {
        "reason": "types-unknown",
        "why": "statements in doubt",
        "count": 1234,
        "first": {"source": "a", "line": 1},
    }
    write_capture(folder / "tuesday", [Recorded([Sent(0.0, "SELECT 1")])], left_out=[entry])
    study = spec(folder, workload="replay:tuesday")
    assert words_of(make_plan(study, 1, "now")).doubts(study) == ["1,234 statements in doubt"]
    assert thaw(freeze(study)).load.replay == study.load.replay
    assert words_of(make_plan(spec(folder), 1, "now")).doubts(spec(folder)) == []


def test_as_fast_as_possible_it_is_about_throughput(folder):
    study = spec(
        folder, replay={"data": "shop.sql", "speed": "as-fast-as-possible", "max_connections": 7, "hash_results": True}
    )
    (point,) = load_points(study)
    assert point.label.endswith("2 sessions as fast as possible")
    assert make_plan(study, 1, "now").measure == "goodput"
    options = engine_options(study.load, point, 5, None)
    assert options[1:4] == ["--as-fast-as-possible", "--sample=100", "--copies=1"]
    assert options[4:6] == ["--max-connections=7", "--hash-results"]
    assert point.clients == 7


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"clients": 4}, "clients is not for a replay: its sessions are those of the capture; replay.max_connections"),
        ({"duration": "5s"}, "duration is not for a replay: it ends when the sessions have ended"),
        ({"workload": ["replay:monday", "tpcb-like"]}, "a replay has data of its own and is judged by itself"),
        ({"replay": {}}, "a replay needs [load.replay] data: a dump (pg_dump)"),
        ({"workload": "tpcb-like"}, "replay is for the workload replay:DIRECTORY; set this workload, or remove replay"),
        ({"replay": {"data": "shop.sql", "speed": "fast"}}, "'fast' is not a speed; write a number"),
        ({"replay": {"data": "shop.sql", "speed": 0}}, "0.0 is not a speed; write a number"),
        ({"replay": {"data": "shop.sql", "sped": 2}}, "unknown key 'sped' in [load.replay]; did you mean 'speed'?"),
        ({"workload": "replay:tuesday"}, "tuesday is not a complete capture: it has no capture.json"),
        ({"replay": {"data": "none.sql"}}, "test: cannot read "),
        ({"replay": {"data": "monday"}}, "monday is not a dump: a directory that pg_dump wrote has a file toc.dat"),
        ({"replay": {"data": "cluster"}}, "cluster is a data directory, which only servers of one version can read"),
        (
            {"replay": {"data": "shop.sql.gz"}},
            "is not a dump in a format of pg_dump; decompress it if it is compressed",
        ),
    ],
)
def test_mistakes_are_named(folder, load, message):
    (folder / "cluster").mkdir()
    (folder / "cluster" / "PG_VERSION").write_text("18\n")
    (folder / "shop.sql.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(StudyError) as refused:
        spec(folder, **load)
    assert message in str(refused.value)


def test_slices_and_a_fleet_and_given_servers_are_refused(folder):
    sliced = spec(folder, interleave="250ms")
    with pytest.raises(StudyError, match=r"the recorded times of a replay would pass .*; leave it out, or write"):
        make_plan(sliced, 1, "now")
    load = {"workload": "replay:monday", "replay": {"data": "shop.sql"}}
    for more, message in (
        ({"fleet": {}}, r"\[fleet\] one engine replays all sessions"),
        (
            {"arms": {"a": {}, "b": {"dsn": "host=db1"}}},
            r"\[arms.b\] a replay changes the data, so it needs a fresh copy",
        ),
    ):
        with pytest.raises(StudyError, match=message):
            build_study({"load": load, "arms": {"a": {}, "b": {}}} | more, "test", folder)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"format": 9}, "was made by a newer pgtrial (format 9); upgrade"),
        ({"statements": 0}, "has no statements; make a capture from logs that contain statements"),
        ({"format": None}, "capture.json is damaged; make the capture again from the server's logs"),
    ],
)
def test_a_capture_that_cannot_be_replayed_is_refused_at_planning(folder, about, message):
    path = folder / "monday" / "capture.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | about))
    with pytest.raises(StudyError) as refused:
        spec(folder)
    assert message in str(refused.value)


@pytest.mark.parametrize("changed", ["shop.sql", "monday/sessions.bin"])
def test_a_study_does_not_go_on_with_other_files(folder, changed):
    study = thaw(freeze(spec(folder)))
    check_unchanged(study)
    path = folder / changed
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(StudyError, match="has changed since the study was planned; restore it, or start a new study"):
        check_unchanged(study)
    path.unlink()
    (folder / "monday").rename(folder / "tuesday")
    with pytest.raises(StudyError, match=r"monday, which the study needs, does not exist on this machine"):
        check_unchanged(study)
