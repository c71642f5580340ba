"""Studies of packs on real servers: the bundled ones end to end, checks that catch what is broken, and what is held."""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.records.trial import Trial
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.report.tables.results import level_table
from pgtrial.servers.arm import Needs
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.workloads import find_pack
from tests.conduct.small import STUDY, each_once, small_study, start_lab, templates_with
from tests.conduct.test_crashes import PATIENCE_S, engine_of_the_second_trial
from tests.conftest import require_engine, require_server
from tests.packs import MANIFEST, QUALITY, write_pack

pytestmark = pytest.mark.server


HELD = {"base": {}, "held": {"settings": {"queue.hold_snapshot": "on"}}}


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def run(study: StudyDirectory) -> StudyDirectory:
    """Runs a study to its end, and returns it read again from disk."""
    run_study(study, lambda event: None)
    return StudyDirectory.open(study.path)


def by_arm(study: StudyDirectory) -> dict[str, Trial]:
    """Returns the trials of a study of one block, by arm."""
    return {trial.arm: trial for trial in study.trials()}


def completed(trial: Trial) -> bool:
    assert trial.reason is None
    assert trial.measured is not None
    return trial.measured.transactions > 0 and not trial.measured.failures


def test_the_queue_loses_nothing_and_does_nothing_twice_with_an_old_snapshot_and_without(tmp_path, workspace):
    study = run(small_study(tmp_path / "s", blocks=1, load={"workload": "pack:queue"}, arms=HELD))
    trials = by_arm(study)
    assert completed(trials["base"])
    assert completed(trials["held"])
    assert trials["base"].relations_before["queue_jobs"]["live_tuples"] == 10_000
    assert trials["base"].relations["queue_done"]["live_tuples"] > 0
    assert {"check", "measure"} <= trials["base"].phases_s.keys()
    (data,) = Needs.of(study.design).data
    assert len(templates_with(workspace.templates, data)) == 1


def broken_queue(folder: Path, changes: dict[str, str]) -> Path:
    """Writes a copy of the bundled queue workload, with these replacements in the statement that takes jobs, and
    returns its folder.
    """
    found = find_pack("pack:queue", folder, "test")
    assert found is not None
    (folder / "broken").mkdir()
    for name, text in found.files.items():
        (folder / "broken" / name).write_text(text)
    taking = found.files["take.sql"]
    for old, new in changes.items():
        assert taking.count(old) == 1
        taking = taking.replace(old, new)
    (folder / "broken" / "take.sql").write_text(taking)
    return folder


BROKEN = {
    "done twice": (
        {"SELECT id FROM gone": "SELECT id FROM taken", "WHERE NOT (poison": "WHERE poison AND NOT (poison"},
        r"job \d+ was done \d+ times",
    ),
    "lost": ({"FROM gone WHERE poison": "FROM gone WHERE false"}, r"jobs were lost or made up: \d+ were sent"),
}


@pytest.mark.parametrize(("changes", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_queue_is_caught_by_its_check(tmp_path, changes, expected):
    folder = broken_queue(tmp_path, changes)
    load = {"workload": "./broken", "clients": 4, "pack": {"variables": {"poison_percent": 50}}}
    study = small_study(tmp_path / "s", blocks=1, folder=folder, load=load)
    with suppress(ArmError):  # all arms may fail alike, which ends the study
        run(study)
    assert len(study.trials()) == 2
    for trial in study.trials():
        assert trial.status == "failed"
        assert trial.measured is not None, "the load itself came to its end"
        assert (trial.reason or "").startswith("check.sql of the pack broken failed after the load: ")
        assert re.search(expected, trial.reason or "")


def test_all_of_ycsbs_workloads_run_interleaved_on_one_server(tmp_path):
    mixes = [f"pack:kv/{mix}" for mix in "ABCDEF"]
    # at a rate, since without one twelve loads would take all processors
    load = {"workload": mixes, "scale": 1, "warmup": "250ms", "interleave": "250ms", "rate": 100}
    arms = {"on": {}, "off": {"settings": {"enable_material": "off"}}}
    study = run(small_study(tmp_path / "s", blocks=1, load=load, arms=arms))
    assert study.plan.shares_server
    assert each_once(study)
    assert {trial.load_point.workload for trial in study.trials()} == {f"kv/{mix}" for mix in "ABCDEF"}
    assert all(completed(trial) for trial in study.trials())


SMALL = {"dimensions": 16}
"""A small number of dimensions, since the time to make vectors grows with it."""


def test_vectors_are_compared_at_equal_recall_alone(tmp_path):
    arms = {"base": {}, "same": {"settings": {"jit": "off"}}, "low": {"settings": {"hnsw.ef_search": "1"}}}
    load = {"workload": "pack:vectors/nearest", "pack": {"variables": SMALL}, "clients": 1}
    study = run(small_study(tmp_path / "s", blocks=1, load=load, arms=arms))
    trials = by_arm(study)
    assert all(completed(trial) for trial in trials.values())
    recall = {arm: trial.quality for arm, trial in trials.items()}
    assert recall["base"] == recall["same"]
    assert (recall["base"] or 0) > 0.8
    assert (recall["low"] or 0) < 0.2, "a search that looks at one candidate finds one of ten"
    build_report(study)
    data = read_data(study)
    verdicts = {claim.arm: claim.verdict for claim in data.result.primary}
    assert verdicts == {"same": "undecided", "low": "withheld"}
    (reason,) = data.result.withheld
    assert f"recall@10 {recall['low']:.4g} of low against {recall['base']:.4g} of base" in reason
    table = level_table(data)
    assert table.heads[5] == "recall@10"
    assert table.rows[2][5] == f"{recall['low']:.4g}"


def test_the_filter_of_vectors_has_a_recall_of_its_own(tmp_path):
    load = {"workload": "pack:vectors/filtered", "pack": {"at_least": 1.01, "variables": SMALL}}
    study = run(small_study(tmp_path / "s", blocks=1, load=load))
    qualities = {trial.quality for trial in study.trials()}
    assert len(qualities) == 1
    assert 0 < (qualities.pop() or 0) <= 1
    withheld = read_data(study).result.withheld
    assert any("is not the 1.01 that the study asks for at least" in reason for reason in withheld)


def test_an_arm_without_the_extension_stops_the_study_before_any_data_is_loaded(tmp_path):
    old = require_server(13)
    arms = {"new": {}, "old": {"postgres": str(old.bin)}}
    study = small_study(tmp_path / "s", load={"workload": "pack:vectors"}, arms=arms)
    with pytest.raises(
        StudyError,
        match=r"^arms\.old: the pack vectors needs the extension vector, which is not available on this server",
    ):
        run_study(study, lambda event: None)
    assert study.trials() == []


def test_an_arm_that_is_too_old_for_a_pack_stops_the_study(tmp_path):
    require_server(18)
    write_pack(tmp_path / "counters", pack_toml="server = 99\n" + MANIFEST)
    study = small_study(tmp_path / "s", folder=tmp_path, load={"workload": "./counters"})
    with pytest.raises(StudyError, match=r"^arms\.base: the pack counters needs PostgreSQL 99 or later, and this"):
        run_study(study, lambda event: None)


FAILING = {
    "schema": (
        {"schema_sql": "-- a table\nCREATE TABLE counters (id nothing);"},
        r"schema\.sql, line 2 \(CREATE TABLE counters ",
    ),
    "data": (
        {"data_sql": "SELECT 1;\n\nINSERT INTO counter VALUES (1);"},
        r"data\.sql, line 3 \(INSERT INTO counter VALUES \(1\)\): ",
    ),
    "copied file": (
        {"data_sql": "COPY counters FROM 'none.csv' (FORMAT csv);"},
        r"data\.sql, line 1: COPY reads 'none\.csv', which is",
    ),
    "rows": (
        {"data_sql": "COPY counters FROM 'rows.csv' (FORMAT csv);", "rows_csv": "1,x\n"},
        r"data\.sql, line 1 \(COPY counters FROM 'rows\.csv' \(FORMAT csv\)\): PostgreSQL says: invalid input syntax",
    ),
    "check": (
        {"check_sql": "SELECT id FROM counter;"},
        r"check\.sql, line 1 \(SELECT id FROM counter\): PostgreSQL says: relation",
    ),
    "measure": (
        {"pack_toml": QUALITY, "measure_sql": "SELECT id, value FROM counters;"},
        r"measure\.sql has to return one row with one number, but it returns 10 rows",
    ),
    "no number": (
        {"pack_toml": QUALITY, "measure_sql": "SELECT avg(value) FROM counters WHERE false;"},
        r"measure\.sql has to return one row with one number, but it returns NULL",
    ),
}


@pytest.mark.parametrize(("changed", "expected"), FAILING.values(), ids=FAILING.keys())
def test_sql_that_fails_stops_the_study_with_its_file_and_the_servers_words(tmp_path, changed, expected):
    write_pack(tmp_path / "counters", **changed)
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load={"workload": "./counters"})
    with pytest.raises(StudyError, match="^the pack counters: " + expected):
        run_study(study, lambda event: None)


def test_data_that_a_check_finds_wrong_ends_the_study_in_its_rehearsal(tmp_path):
    write_pack(tmp_path / "counters", data_sql="COPY counters FROM 'rows.csv' (FORMAT csv);", rows_csv="1,-5\n2,-6\n")
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load={"workload": "./counters"})
    with pytest.raises(StudyError) as refused:
        run(study)
    assert str(refused.value) == (
        "arms.base: check.sql of the pack counters failed in the rehearsal: counter 1 is at -5; counter 2 is at -6"
    )
    assert study.trials() == []


def test_the_session_of_hold_sql_is_open_during_the_load_of_the_arms_that_ask_for_it(tmp_path):
    free = "CASE WHEN pg_try_advisory_xact_lock(7) THEN -1 ELSE 1 END"
    write_pack(
        tmp_path / "counters",
        pack_toml='hold = "counters.hold"\n' + MANIFEST,
        hold_sql="SELECT pg_advisory_lock(7);\n",
        # once a transaction has found the lock free, no later one takes that back
        raise_sql=f"\\set id random(1, 10)\nUPDATE counters SET value = least(value, {free}) WHERE id = :id;\n",
    )
    arms = {"base": {}, "held": {"settings": {"counters.hold": "on"}}}
    load = {"workload": "./counters"}
    trials = by_arm(run(small_study(tmp_path / "s", blocks=1, folder=tmp_path, load=load, arms=arms)))
    assert completed(trials["held"])
    assert "is at -1" in (trials["base"].reason or "")


def test_a_study_of_a_pack_goes_on_after_its_lab_was_killed(tmp_path):
    study = STUDY.replace('"simple-update"', '"./counters"')
    write_pack(tmp_path / "counters")
    lab = start_lab(tmp_path, study)
    engine_of_the_second_trial(lab, tmp_path)
    lab.send_signal(signal.SIGKILL)
    lab.communicate(timeout=PATIENCE_S)
    done = start_lab(tmp_path, study)
    _, err = done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0, err
    (results,) = (tmp_path / "results").iterdir()
    assert each_once(StudyDirectory.open(results))
    assert all(completed(trial) for trial in StudyDirectory.open(results).trials())
