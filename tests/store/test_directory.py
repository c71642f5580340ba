"""A study directory holds each trial once, whole, or says in one sentence what is damaged and what to do."""

import json
import multiprocessing
import os
from pathlib import Path

import polars as pl
import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.errors import StoreError
from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.store.directory import StudyDirectory, committed_seconds
from pgtrial.store.study_file import build_study
from pgtrial.store.tables import OBSERVED_SCHEMA, TIMELINE_SCHEMA, WAITS_SCHEMA, committed_per_second
from tests.store.samples import completed_trial, encoded

SPEC = build_study({"arms": {"old one/2": {}, "new": {"settings": {"jit": "off"}}}, "verdict": {"blocks": 8}}, "test")


@pytest.fixture
def study(tmp_path):
    return StudyDirectory.create(tmp_path / "s", SPEC, make_plan(SPEC, 5, "2026-11-20T14:12:00+00:00"))


def store(study, index, **changes):
    planned = study.plan.trials[index]
    directory = study.begin_trial(planned)
    rows = [["measure", second, 100, 0, 1.0, 1.0, 1.0, 1.0, 1.0] for second in range(3)]
    pl.DataFrame(rows, schema=TIMELINE_SCHEMA, orient="row").write_parquet(directory / "timeline.parquet")
    (directory / "latency.hdr").write_text(encoded(100, 200, 300) + "\n")
    trial = completed_trial(study, planned).model_copy(update=changes)
    study.write_trials([trial])
    return study.trial_path(trial), trial


def test_what_is_stored_reads_back_the_same(study):
    _, trial = store(study, 0)
    again = StudyDirectory.open(study.path)
    assert again.spec == SPEC
    assert again.plan == study.plan
    assert again.trials() == [trial]
    assert again.timeline(trial)["transactions"].sum() == 300
    assert again.latencies(trial).total == 3


def test_what_was_observed_reads_back_and_older_trials_have_none(study):
    _, trial = store(study, 0)
    assert study.waits(trial).schema == pl.Schema(WAITS_SCHEMA)
    assert study.waits(trial).is_empty()
    assert study.observed(trial).is_empty()
    rows = [(0, "pg_stat_wal", "wal_bytes", 12.5), (None, "pg_stat_statements", "calls: SELECT 1", 3.0)]
    frame = pl.DataFrame(rows, schema=OBSERVED_SCHEMA, orient="row")
    frame.write_parquet(study.trial_path(trial) / "observed.parquet")
    frame.write_parquet(study.trial_path(trial) / "waits.parquet")
    assert study.observed(trial).rows() == rows
    with pytest.raises(StoreError, match=r"waits\.parquet is damaged or missing .*; delete the directory"):
        study.waits(trial)


@pytest.mark.parametrize("key", ["format", "format and others"])
def test_a_study_of_a_newer_release_is_named_as_such(study, key):
    plan = json.loads((study.path / "plan.json").read_text())
    others = {"later": 1} if key != "format" else {}
    (study.path / "plan.json").write_text(json.dumps({**plan, "format": 2, **others}))
    if others:
        with (study.path / "study.toml").open("a") as file:
            file.write("[later]\n")
    with pytest.raises(StoreError, match=r"plan\.json was written by a newer pgtrial \(format 2\); upgrade"):
        StudyDirectory.open(study.path)


def test_only_missing_trials_are_left_to_run(study):
    store(study, 0)
    store(study, 2)
    assert [planned.index for planned in study.missing()] == [1, *range(3, 16)]


def test_a_trial_that_was_not_completed_is_no_trial(study):
    directory = study.begin_trial(study.plan.trials[0])
    (directory / "engine.jsonl").write_text("{}\n")
    assert study.trials() == []
    assert study.unfinished() == [directory]
    assert len(study.missing()) == 16


def test_a_trial_cannot_be_stored_twice(study):
    store(study, 0)
    with pytest.raises(StoreError, match="cannot write"):
        store(study, 0)


def _write_trials(path, timeline):
    """Writes the trials in a forked process, in which polars would wait forever for threads that fork did not copy."""
    study = StudyDirectory.open(path)
    for planned in study.plan.trials:
        (study.begin_trial(planned) / "timeline.parquet").write_bytes(timeline)
        study.write_trials([completed_trial(study, planned)])


def test_a_writer_killed_at_any_moment_leaves_whole_trials_only(study, tmp_path):
    path, _ = store(StudyDirectory.create(tmp_path / "other", SPEC, study.plan), 0)
    timeline = (path / "timeline.parquet").read_bytes()
    for number in range(8):
        writer = multiprocessing.get_context("fork").Process(target=_write_trials, args=(study.path, timeline))
        writer.start()
        while len(list((study.path / "trials").glob("[0-9]*"))) < number and writer.is_alive():
            writer.join(0.001)
        # where it is by now is up to chance, and that is the point
        writer.kill()
        writer.join()
        stored = study.trials()
        assert len(stored) >= number
        for trial in stored:
            assert study.timeline(trial).height == 3
        for path in (study.path / "trials").iterdir():
            for file in sorted(path.iterdir(), reverse=True):
                file.unlink()
            path.rmdir()


MOMENT = '"2026-11-20T14:12:00+00:00"'


@pytest.mark.parametrize("moment", ['"2026-11-20T14:1z"', '"2026-11-20T14:12:00"', '""'])
def test_a_damaged_moment_is_named(study, moment):
    path, _ = store(study, 0)
    text = (path / "trial.json").read_text()
    (path / "trial.json").write_text(text.replace(MOMENT, moment))
    with pytest.raises(StoreError, match=r"trial\.json is damaged or missing \(started: "):
        study.trials()


@pytest.mark.parametrize("damage", ["{", "", '{"index": 0}', None], ids=["half", "empty", "fields", "absent"])
def test_a_damaged_trial_is_named_with_the_cure(study, damage):
    path, _ = store(study, 0)
    if damage is None:
        (path / "trial.json").unlink()
    else:
        (path / "trial.json").write_text(damage)
    with pytest.raises(StoreError) as told:
        study.trials()
    message = str(told.value)
    assert str(path / "trial.json") in message
    assert f"delete the directory {path}" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"aborted_clients": -1}, "aborted_clients"),
        ({"server_deltas": {"wal": {"wal_bytes": -1.0}}}, r"server_deltas\.wal\.wal_bytes"),
        ({"server_deltas": {"wal": {"wal_bytes": float("inf")}}}, r"server_deltas\.wal\.wal_bytes"),
        ({"measured": {"transactions": -500}}, r"measured\.transactions"),
        ({"measured": {"tps": -1.0}}, r"measured\.tps"),
        ({"measured": {"failures": {"40001": -1}}}, r"measured\.failures\.40001"),
    ],
)
def test_a_count_below_zero_is_a_damaged_trial(study, changes, where):
    path, _ = store(study, 0)
    record = json.loads((path / "trial.json").read_text())
    for name, value in changes.items():
        record[name] = {**record[name], **value} if name == "measured" else value
    (path / "trial.json").write_text(json.dumps(record))
    with pytest.raises(StoreError, match=rf"trial\.json is damaged or missing \({where}: .*\); delete the directory"):
        study.trials()


def test_a_damaged_timeline_and_histogram_are_named(study):
    path, trial = store(study, 0)
    (path / "timeline.parquet").write_bytes(b"PAR1 no parquet")
    (path / "latency.hdr").write_text("not base64!")
    with pytest.raises(StoreError, match=r"timeline\.parquet is damaged"):
        study.timeline(trial)
    with pytest.raises(StoreError, match=r"latency\.hdr is damaged"):
        study.latencies(trial)


def test_histograms_of_before_the_engine_counted_nanoseconds_are_read(example):
    study = example("app-tasks")
    counted = 0
    for trial in study.trials():
        latencies = study.latencies(trial)
        if latencies is None or trial.measured is None or trial.measured.latency_us is None:
            continue
        counted += 1
        assert latencies.total == trial.measured.transactions
        assert latencies.mean == pytest.approx(trial.measured.latency_us.mean, rel=1e-3)
        assert latencies.percentile(50).is_integer()
        assert latencies.greatest == pytest.approx(trial.measured.latency_us.max, rel=1e-3)
    assert counted > 10


def test_a_timeline_in_which_the_library_panics_is_named(study):
    path, trial = store(study, 0)
    whole = (path / "timeline.parquet").read_bytes()
    named = []
    for place in range(4, 400):
        (path / "timeline.parquet").write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        try:
            study.timeline(trial)
        except StoreError as error:
            named.append(str(error))
    assert len(named) > 10
    assert all("timeline.parquet is damaged or missing" in message for message in named)


def test_all_timelines_at_once_say_what_each_says_by_itself(study):
    stored = [store(study, index) for index in range(4)]
    trials = [trial for _, trial in stored]
    rows = [["warmup", 0, 9, 0, *[1.0] * 5], ["measure", 3, 7, 0, *[1.0] * 5], ["measure", 1, 5, 0, *[1.0] * 5]]
    timelines = [rows, [], [["warmup", 0, 9, 0, *[1.0] * 5]]]
    for (path, _), own in zip(stored, timelines, strict=False):
        pl.DataFrame(own, schema=TIMELINE_SCHEMA, orient="row").write_parquet(path / "timeline.parquet")
    found = committed_seconds(study, trials)
    assert found == {0: [0, 5, 0, 7], 1: [], 2: [], 3: [100, 100, 100]}
    assert found == {trial.index: committed_per_second(study.timeline(trial)) for trial in trials}
    assert committed_seconds(study, []) == {}


_BEYOND = pl.DataFrame([["measure", 3_000_000, 1, 0, *[1.0] * 5]], schema=TIMELINE_SCHEMA, orient="row")


@pytest.mark.parametrize("spoilt", [b"PAR1 no parquet", _BEYOND, _BEYOND.drop("max_us"), None])
def test_the_damaged_one_of_many_timelines_is_named(study, spoilt):
    trials = []
    for index in range(3):
        path, trial = store(study, index)
        trials.append(trial)
    timeline = path / "timeline.parquet"
    timeline.unlink()
    if isinstance(spoilt, bytes):
        timeline.write_bytes(spoilt)
    elif spoilt is not None:
        spoilt.write_parquet(timeline)
    with pytest.raises(StoreError, match=rf"{path.name}/timeline\.parquet is damaged or missing"):
        committed_seconds(study, trials)


def test_a_failed_trial_may_have_no_timeline(study):
    path, trial = store(study, 0, status="failed", reason="the server was killed")
    (path / "timeline.parquet").unlink()
    assert study.timeline(trial).is_empty()


def test_a_trial_of_another_plan_is_not_taken_for_ours(study, tmp_path):
    other = StudyDirectory.create(tmp_path / "other", SPEC, make_plan(SPEC, 6, "2026-11-20T14:12:00+00:00"))
    foreign, _ = store(other, 0)
    foreign.rename(study.path / "trials" / foreign.name)
    with pytest.raises(StoreError, match="not a trial of this study's plan"):
        study.trials()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("plan.json", '"margin": 0.01', '"margin": 0.02'),
        ("plan.json", '"seed": 5', '"seed": 6'),
        ("study.toml", "margin = 0.01", "margin = 0.02"),
    ],
)
def test_a_change_of_what_is_frozen_is_noticed(study, name, old, new):
    path = study.path / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(StoreError, match=rf"{name} was changed after the study began"):
        StudyDirectory.open(study.path)
    path.write_text(text)
    assert StudyDirectory.open(study.path).plan == study.plan


@pytest.mark.parametrize("name", ["../trials/0000-b00-new-tpcb-like-s10-c8/trial.json", "/etc/hosts", "a/./b", "a//b"])
def test_scripts_of_a_plan_are_below_the_study_s_own_folder(tmp_path, name):
    """Otherwise a rerun of a stranger's study would write files at any path, such as trials that never ran."""
    planned = make_plan(SPEC, 5, "2026-11-20T14:12:00+00:00").model_copy(update={"scripts": {name: "0" * 64}})
    study = StudyDirectory.create(tmp_path / "s", SPEC, planned)
    with pytest.raises(StoreError, match=rf"plan\.json .*'{name}' is not the name of a script of the study"):
        StudyDirectory.open(study.path)


def test_a_plan_of_before_there_were_digests_is_read(study):
    (study.path / "plan.json").write_text(study.plan.model_dump_json(indent=1))
    assert StudyDirectory.open(study.path).plan == study.plan


def test_a_newer_format_is_refused(study):
    plan = study.path / "plan.json"
    plan.write_text(plan.read_text().replace('"format": 1', '"format": 99', 1))
    with pytest.raises(StoreError, match="newer pgtrial"):
        StudyDirectory.open(study.path)


def test_facts_and_audit_are_kept_per_arm_in_the_plans_order(study):
    for arm in reversed(study.plan.arms):
        study.write_facts(Facts(arm=arm, collected="2026-11-20T14:12:00+00:00", facts={"server": {"version": "18.6"}}))
    finding = Finding(rule="thp", severity="info", arms=["new"], message="m", cure="c")
    study.write_audit(Audit(findings=[finding]))
    assert list(study.facts()) == ["old one/2", "new"]
    assert study.audit() == Audit(findings=[finding])


def test_facts_are_kept_per_deployment_and_those_of_one_stand_for_the_arm(tmp_path):
    setups = {arm: {"dsn": [f"host={arm}{k}" for k in range(3)]} for arm in ("a", "a/0")}
    spec = build_study({"arms": setups, "verdict": {"blocks": 3}}, "test")
    study = StudyDirectory.create(tmp_path / "s", spec, make_plan(spec, 5, "2026-11-20T14:12:00+00:00"))
    for arm, number in (("a/0", 0), ("a", 2), ("a", 1)):
        study.write_facts(Facts(arm=arm, deployment=number, collected="now", facts={}))
    stored = study.deployment_facts()
    assert {arm: [facts.deployment for facts in known] for arm, known in stored.items()} == {"a": [1, 2], "a/0": [0]}
    assert {arm: facts.deployment for arm, facts in study.facts().items()} == {"a": 1, "a/0": 0}


def test_arms_whose_names_make_the_same_file_name_are_kept_apart(tmp_path):
    spec = build_study({"arms": {"a/b": {}, "a b": {}, "audit": {}}, "verdict": {"blocks": 8}}, "test")
    study = StudyDirectory.create(tmp_path / "s", spec, make_plan(spec, 5, "2026-11-20T14:12:00+00:00"))
    for arm in spec.arms:
        study.write_facts(Facts(arm=arm, collected="now", facts={}))
    study.write_audit(Audit(findings=[]))
    assert [facts.arm for facts in study.facts().values()] == ["a/b", "a b", "audit"]


def test_a_directory_in_use_or_full_of_other_things_is_not_taken(study, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    with pytest.raises(StoreError, match="not empty"):
        StudyDirectory.create(tmp_path / "home", SPEC, study.plan)
    with pytest.raises(StoreError, match=r"no study\.toml"):
        StudyDirectory.open(tmp_path / "home")


def test_a_results_directory_that_cannot_be_written_is_named(study, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write .*file/s: .*--results"):
        StudyDirectory.create(tmp_path / "file" / "s", SPEC, study.plan)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_results_directory_is_named(study, tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(StoreError, match="cannot write"):
        StudyDirectory.create(tmp_path / "t", SPEC, study.plan)


def test_blocks_that_an_earlier_version_set_aside_are_known_by_their_folders(study):
    assert study.voided_blocks() == []
    for name in ("b02-1", "b00-1", "b02-2", "b10-1", ".b01-1", "bx-1", "notes"):
        (study.path / "voided" / name).mkdir(parents=True)
    assert study.voided_blocks() == [0, 2, 2, 10]


def _hold(path: Path, held, done):
    with StudyDirectory.open(path).locked():
        held.set()
        done.wait()


def test_two_labs_do_not_run_one_study(study):
    context = multiprocessing.get_context("fork")
    held, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(study.path, held, done))
    other.start()
    held.wait()
    with pytest.raises(StoreError, match="another pgtrial is running this study"), study.locked():
        pass
    done.set()
    other.join()
    with study.locked():
        pass
