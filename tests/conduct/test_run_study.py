"""A study on real servers with the real engine, from plan to stored trials, facts and result."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import psutil
import psycopg
import pytest

from pgtrial.conduct.progress import BlockEnds, Preparing, ProgressEvent, Second, StudyEnds, TrialBegins, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.setup import KEYS
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.state import read_noise
from pgtrial.store.tables import SLICES_SCHEMA, TIMELINE_SCHEMA
from tests.conduct.small import FAST, GENTLE, each_once, once, small_study
from tests.conftest import require_engine
from tests.store.samples import completed_trial
from tests.verdict.slices import alternate, noisy_slices

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


@pytest.fixture(scope="module")
def traces():
    """Returns sets that the fixture `finished` fills: the run directories before and after a study, and its server
    processes.
    """
    return {"before": set(), "after": set(), "servers": set()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, state_root, traces):
    require_engine()
    # with seconds to spare for the sampler, the checkpoint and the lab, which are all asked for something meanwhile
    study = small_study(tmp_path_factory.mktemp("studies") / "s", load={"duration": "5s"})
    events = []
    of_other_tests = _servers(state_root)
    traces["before"] |= _runs(state_root)

    def listen(event):
        events.append(event)
        if isinstance(event, Second):
            traces["servers"] |= _servers(state_root) - of_other_tests

    run_study(study, listen)
    traces["after"] |= _runs(state_root)
    return study, events, read_data(study).result


def test_every_planned_trial_is_run_once_in_the_planned_order(finished):
    study, events, result = finished
    assert each_once(study)
    assert [event.trial.index for event in events if isinstance(event, TrialEnds)] == [0, 1, 2, 3]
    assert {trial.status for trial in study.trials()} == {"completed"}
    assert result.blocks_complete == 2
    assert [event.block for event in events if isinstance(event, BlockEnds)] == [0, 1]
    assert events[-1] == StudyEnds("all 2 planned blocks are complete", 2)


def test_a_trial_keeps_what_the_engine_and_the_server_measured(finished):
    study, _, _ = finished
    for trial in study.trials():
        measured = trial.measured
        assert measured is not None
        assert measured.transactions > 10
        assert measured.latency_us is not None
        assert trial.warmup is not None
        assert {"restore", "start", "warm", "load", "collect", "stop"} <= trial.phases_s.keys()
        assert trial.checkpoint_s is not None
        database = trial.server_deltas["database"]
        # the delta may begin up to a second early (see observe.views), or late by what the lab was held up
        assert measured.transactions / 10 < database["xact_commit"]
        assert trial.server_deltas["wal"]["wal_bytes"] > 0
        assert trial.server_deltas["maintenance"]["autovacuums"] >= 0
        assert trial.relations_before["pgbench_accounts"]["bytes_table"] > 10_000_000
        assert trial.relations["pgbench_accounts"]["live_tuples"] == 100_000
        assert trial.relations["pgbench_history"]["live_tuples"] >= measured.transactions


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs Linux")
def test_a_trial_keeps_what_the_host_did_meanwhile(finished):
    study, _, _ = finished
    for trial in study.trials():
        host = trial.server_deltas["host"]
        assert trial.measured is not None
        assert host["elapsed_s"] > 0
        assert 0 < host["server_cpu_s"] < host["cpu_s"]


def test_a_trial_keeps_what_the_sampler_saw_and_what_that_took(finished):
    study, _, _ = finished
    for trial in study.trials():
        waits = study.waits(trial)
        assert "checkpointer" in set(waits["backend_type"])
        assert all(second < 5 for second in waits["second"])
        assert {"samples", "transactions", "lab_cpu_s", "server_cpu_s"} <= trial.server_deltas["sampler"].keys()
        assert study.observed(trial).columns == ["second", "source", "name", "value"]
        assert not any("observed" in note or "sampler" in note for note in trial.notes)


def test_the_timeline_and_the_histogram_agree_with_the_summary(finished):
    study, _, _ = finished
    for trial in study.trials():
        assert trial.measured is not None
        seconds = study.timeline(trial)
        assert set(seconds["phase"]) <= {"warmup", "measure"}
        measured = seconds.filter(seconds["phase"] == "measure")["transactions"].sum()
        assert measured == pytest.approx(trial.measured.transactions, abs=20)
        assert study.latencies(trial).total == trial.measured.transactions


def test_the_servers_log_and_the_engines_events_are_kept(finished):
    study, _, _ = finished
    for trial in study.trials():
        path = study.trial_path(trial)
        assert "database system is ready" in (path / "server.log").read_text()
        events = [json.loads(line) for line in (path / "engine.jsonl").read_text().splitlines()]
        assert events[0]["event"] == "hello"
        assert events[-1]["event"] == "done"
        assert sorted(file.name for file in path.iterdir()) == [
            "engine.jsonl",
            "latency.hdr",
            "observed.parquet",
            "server.log",
            "timeline.parquet",
            "trial.json",
            "waits.parquet",
        ]


def test_facts_of_every_arm_and_their_audit_are_stored(finished):
    study, _, _ = finished
    assert list(study.facts()) == ["base", "no jit"]
    assert all(facts.facts["probes"]["flushes_per_s"] > 0 for facts in study.facts().values())
    assert study.audit() is not None


def test_a_finished_study_is_not_run_again(finished):
    study, _, _ = finished
    before = {path: path.stat().st_mtime_ns for path in (study.path / "trials").rglob("*")}
    events = []
    run_study(study, events.append)
    assert [type(event) for event in events] == [StudyEnds]
    assert {path: path.stat().st_mtime_ns for path in (study.path / "trials").rglob("*")} == before


@pytest.mark.usefixtures("finished")
def test_nothing_is_left_of_the_servers(traces):
    assert len(traces["servers"]) == 4, "there were servers to be left"
    assert traces["after"] == traces["before"]
    assert not any(psutil.pid_exists(pid) for pid in traces["servers"])


def _runs(state_root):
    runs = state_root / "runs"
    return set(runs.iterdir()) if runs.is_dir() else set()


def _servers(state_root):
    files = (state_root / "runs").glob("*/*/postmaster.pid")
    return {int(file.read_text().split()[0]) for file in files}


def test_a_deleted_trial_alone_is_repeated(finished):
    study, _, _ = finished
    gone = study.trial_path(study.trials()[1])
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    events = []
    run_study(study, events.append)
    assert [event.trial.index for event in events if isinstance(event, TrialEnds)] == [1]
    assert each_once(study)
    # what tests beside this one change of the machine may be seen
    changed = [change.key for facts in study.facts().values() for change in facts.changed]
    assert not [key for key in changed if key.startswith(("server.", "settings.", "storage.", "client."))]


def test_without_warm_up_the_checkpoint_comes_before_the_load(tmp_path):
    study = small_study(tmp_path / "s", blocks=1, load={"warmup": 0, "rate": 100, "duration": "4s"})
    run_study(study, lambda event: None)
    for trial in study.trials():
        assert trial.checkpoint_s is not None
        assert trial.warmup is None
        assert not any("checkpoint" in note for note in trial.notes)


def test_set_up_sql_is_run_on_the_arms_own_copy_of_every_trial(tmp_path):
    sql = ["CREATE TABLE pgbench_marks (n int)", "INSERT INTO pgbench_marks VALUES (1)"]
    study = small_study(
        tmp_path / "s", load={"rate": 100, "duration": "4s"}, arms={"plain": {}, "marked": {"setup_sql": sql}}
    )
    run_study(study, lambda event: None)
    for trial in study.trials():
        marks = trial.relations.get("pgbench_marks")
        assert (marks is None) == (trial.arm == "plain")
        assert marks is None or marks["bytes_table"] == 8192
    facts = study.facts()
    assert [facts[arm].facts["server"]["setup_sql"] for arm in ("plain", "marked")] == [[], sql]
    assert "setup_sql" not in str(study.audit()), "the study declares it"
    collected = {
        f"{group.replace('defaults', 'settings')}.{name}" for group, of in facts["plain"].facts.items() for name in of
    }
    # the address of a server is no fact of it, and the others are those of loads of another kind
    elsewhere = {"server.dsn", "server.host", "load.script", "load.values"}
    elsewhere |= {"client.command", "client.directory", "client.files"}
    of_builds = {
        f"server.{name}"
        for name in ("build_options", "patches", "compiler", "lto", "pgo", "layouts", "extension_sources")
    }
    shown = {fact for key in KEYS.values() if not callable(key.shows) for fact in key.shows}
    assert shown - collected == elsewhere | of_builds, "each fact by which a key shows has a collector"


def test_set_up_sql_that_postgresql_refuses_stops_the_study_with_its_words(tmp_path):
    study = small_study(tmp_path / "s", arms={"plain": {}, "wrong": {"setup_sql": ["CREATE INDEX ON nothing (n)"]}})
    with pytest.raises(StudyError, match=r'\[arms\.wrong\] setup_sql .*relation "nothing" does not exist'):
        run_study(study, lambda event: None)
    assert all(trial.arm == "plain" for trial in study.trials())


def test_a_setting_that_the_server_refuses_is_found_before_the_first_trial(tmp_path):
    study = small_study(tmp_path / "s", arms={"good": {}, "bad": {"settings": {"work_mem": "lots"}}})
    with pytest.raises(StudyError, match="bad"):
        run_study(study, lambda event: None)
    assert study.trials() == []
    assert study.unfinished() == []


def test_given_servers_are_compared_and_a_lost_one_stops_the_study_until_it_is_back(tmp_path, start_cluster):
    one, two = start_cluster(18, settings=FAST), start_cluster(18, settings=FAST)
    arms = {"one": {"dsn": _dsn(one)}, "two": {"dsn": _dsn(two)}}
    study = small_study(tmp_path / "s", load={"rate": 100, "duration": "4s"}, server={"settings": {}}, arms=arms)
    log = Path(f"{two.data_directory}-again.log")
    listener = once(
        lambda event: isinstance(event, TrialBegins) and event.number == 3, lambda: two.stop(immediate=True)
    )
    with pytest.raises((ArmError, StudyError)):
        run_study(study, listener)
    assert 2 <= len(study.trials()) < 4
    two.start(log)
    run_study(study, lambda event: None)
    assert each_once(study)
    assert {trial.status for trial in study.trials()} == {"completed"}
    with two.target.connect_as_user() as session:
        # a given server is not altered: no extension was made in it
        assert session.execute("SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql'").fetchone() == (0,)
    log.unlink()


def _dsn(cluster):
    target = cluster.target
    return psycopg.conninfo.make_conninfo(host=target.host, port=target.port, user=target.user, dbname=target.dbname)


def test_an_engine_of_another_protocol_is_refused(tmp_path, monkeypatch):
    engine = tmp_path / "engine"
    real = require_engine()
    engine.write_text(
        f'#!/bin/sh\ncase "$*" in *--events*) echo \'{{"event":"hello","protocol":99}}\';; *) exec {real} "$@";; esac\n'
    )
    engine.chmod(0o755)
    monkeypatch.setenv("PGTRIAL_ENGINE", str(engine))
    study = small_study(tmp_path / "s")
    with pytest.raises(StudyError, match="uses version 99 of the event protocol, but this pgtrial needs version 2"):
        run_study(study, lambda event: None)
    assert study.trials() == []


def test_a_script_of_the_studys_own_is_run(tmp_path):
    (tmp_path / "own.sql").write_text("\\set aid random(1, 100000 * :scale)\nSELECT :aid;\n\\sleep 5 ms\n")
    study = small_study(tmp_path / "study", blocks=1, folder=tmp_path, load={"workload": "own.sql", "max_tries": 2})
    run_study(study, list[ProgressEvent]().append)
    assert [(trial.status, trial.reason) for trial in study.trials()] == [("completed", None)] * 2
    assert {trial.load_point.workload for trial in study.trials()} == {"own.sql"}


def test_a_script_that_the_engine_refuses_stops_the_study_at_once(tmp_path):
    (tmp_path / "own.sql").write_text("SELECT 1;\n\\oops\n")
    study = small_study(tmp_path / "study", blocks=1, folder=tmp_path, load={"workload": "own.sql"})
    with pytest.raises(StudyError, match=r'own\.sql:2: invalid command in command "oops"'):
        run_study(study, list[ProgressEvent]().append)
    assert study.trials() == []


def test_a_rate_is_kept(tmp_path):
    study = small_study(tmp_path, blocks=1, load={"rate": 100, "duration": "5s"})
    run_study(study, list[ProgressEvent]().append)
    for trial in study.trials():
        assert trial.warmup is not None
        assert trial.measured is not None
        # a Poisson count of 540 has a standard deviation of 23, and follows from the plan's seed; what comes late for
        # a machine that is held up may be missing, but nothing comes early
        assert trial.warmup.transactions + trial.measured.transactions <= 670
        assert trial.measured.transactions >= 20


def nearly_done(folder: Path, *, stored: int) -> StudyDirectory:
    """Returns a study of eight planned blocks, of which the first `stored` have made trials with some noise."""
    study = small_study(folder, blocks=8)
    store_blocks(study, stored, {})
    return study


def store_blocks(study: StudyDirectory, blocks: int, speeds: dict[str, float]) -> None:
    """Stores made trials for the first blocks of a study, with these speeds of the arms and some noise."""
    noise = np.random.default_rng(3)
    for planned in study.plan.trials[: len(study.plan.arms) * blocks]:
        trial = completed_trial(study, planned)
        assert trial.measured is not None
        measured = trial.measured.model_copy(
            update={"transactions": int(speeds.get(planned.arm, 1) * noise.normal(500, 20))}
        )
        timeline = pl.DataFrame(schema=TIMELINE_SCHEMA)
        timeline.write_parquet(study.begin_trial(planned) / "timeline.parquet")
        study.write_trials([trial.model_copy(update={"measured": measured})])


def test_a_running_study_tells_what_it_can_find_and_keeps_its_noise_for_the_next_one(tmp_path, state_root):
    study = nearly_done(tmp_path / "s", stored=7)
    events: list[ProgressEvent] = []
    run_study(study, events.append)
    (ended,) = [event for event in events if isinstance(event, BlockEnds)]
    assert ended.precision is not None
    assert ended.precision.blocks == 8
    assert ended.precision.difference > 0
    # a margin takes a larger quantile for its power, and a smaller one for its test on one side
    assert ended.precision.margin == pytest.approx(ended.precision.difference, rel=0.1)
    (kept,) = [each for each in read_noise(state_root / "noise.json") if each.created == study.plan.created]
    assert kept.blocks == 8


def test_a_study_in_turns_that_has_ended_keeps_which_part_of_its_noise_comes_from_within_its_trials(
    tmp_path, state_root
):
    load = {"interleave": "auto", "share_server": False, "duration": "2s"}
    study = small_study(tmp_path / "s", blocks=8, load=load)
    store_blocks(study, 7, {})
    _, slices = alternate(study.plan, noisy_slices(started=0.0, in_slices=0.05))
    for trial in study.trials():
        rows = [row.model_dump() for row in slices[trial.index]]
        pl.DataFrame(rows, schema=SLICES_SCHEMA).write_parquet(study.trial_path(trial) / "slices.parquet")
    run_study(study, lambda event: None)
    (kept,) = [each for each in read_noise(state_root / "noise.json") if each.created == study.plan.created]
    assert 0 < kept.within < 0.05


def test_a_record_of_noise_that_cannot_be_kept_is_told_once_and_stops_nothing(tmp_path, state_root):
    record = state_root / "noise.json"
    record.write_text('{"format": 2}')
    try:
        study = nearly_done(tmp_path / "s", stored=6)
        events: list[ProgressEvent] = []
        run_study(study, events.append)
        (told,) = [event.text for event in events if isinstance(event, Preparing) and "noise" in event.text]
        assert "a newer pgtrial wrote it" in told
        assert each_once(study)
        assert record.read_text() == '{"format": 2}'
    finally:
        record.unlink()


@pytest.mark.parametrize("load", [{}, {"interleave": "auto", "share_server": False}])
def test_an_arm_whose_claims_are_decided_leaves_and_the_others_go_on(tmp_path, load):
    arms = {"base": {}, "no jit": {"settings": {"jit": "off"}}, "slow": {"settings": {"jit_above_cost": "7"}}}
    decided = {"blocks": 11, "drop_decided": True}
    study = small_study(tmp_path / "s", 11, load={"workload": GENTLE, **load}, arms=arms, verdict=decided)
    store_blocks(study, 8, {"slow": 0.4})
    events: list[ProgressEvent] = []
    run_study(study, events.append)
    assert "slow gets no trials after 8 blocks" in " ".join(
        event.text for event in events if isinstance(event, Preparing)
    )
    again = StudyDirectory.open(study.path)
    assert again.plan.left == {"slow": 8}
    assert again.missing() == []
    assert {trial.arm for trial in again.trials() if trial.block >= 8} == {"base", "no jit"}
    result = build_report(again)
    assert result.blocks_complete == 11
    assert [(claim.verdict, claim.blocks) for claim in result.primary if claim.arm == "slow"] == [("worse", 8)]
    assert "slow left after 8 blocks" in (study.path / "report.md").read_text()
