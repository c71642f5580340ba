"""Trials of a load point that run at the same time, in slices of time: on real servers, and through crashes."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

import psutil
import pytest

from pgtrial.conduct.planning.interleaving import why_not
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing, ProgressEvent
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.trial.leftovers import discard_unfinished
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records.plan import Interleaving
from pgtrial.model.study.design import Design
from pgtrial.model.study.setup import SESSION_SETTINGS
from pgtrial.model.units import format_duration
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.report.series import measured_load
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import GENTLE, STUDY, each_once, measuring, once, small_study, start_lab, windows
from tests.conftest import require_engine
from tests.store.samples import completed_trial

IN_TURNS = {"interleave": "auto", "share_server": False, "warmup": "2s", "duration": "2s"}
"""Loads that alternate. A warm-up in which a busy machine let no transaction end would lengthen the slices."""


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


@pytest.mark.server
def test_sessions_are_sampled_in_the_own_slices_alone(tmp_path):
    # While another arm has its slice, a server's sessions are idle: with 3 arms, in two thirds of the samples. Each
    # sleep is far longer than the time that a busy machine takes between two sleeps. There is a sample about each half
    # second, or each second on a busy machine: that one of the arms has none of 33 in its slices happens in one run of
    # 200,000.
    (tmp_path / "sleep.sql").write_text("SELECT pg_sleep(0.04);\n")
    load = {**IN_TURNS, "interleave": "500ms", "duration": "10s", "workload": "sleep.sql"}
    arms = {"base": {}, "no jit": {"settings": {"jit": "off"}}, "same": {}}
    study = small_study(tmp_path / "s", blocks=1, load=load, arms=arms, folder=tmp_path)
    run_study(study, lambda event: None)
    data = read_data(study)
    for trial in study.trials():
        slept = measured_load(data, trial.load_point, trial.arm)["Timeout:PgSleep"]
        assert slept > 1, "of 2 clients"
        seconds = study.waits(trial)["second"]
        assert -6 <= seconds.min() <= seconds.max() < 30, "warm-up and measured part of all arms"


@pytest.mark.server
def test_the_loads_of_all_arms_alternate_and_each_instant_is_the_slice_of_one(tmp_path):
    arms = {"base": {}, "no jit": {"settings": {"jit": "off"}}, "same": {}}
    study = small_study(tmp_path / "s", blocks=2, load={**IN_TURNS, "workload": GENTLE}, arms=arms)
    assert study.plan.interleaving == Interleaving(slice_s=0.25)
    run_study(study, lambda event: None)
    assert each_once(study)
    # 250 ms, unless this machine was so busy in the first warm-up that it took longer slices
    slice_s = StudyDirectory.open(study.path).plan.interleaving.slice_at(0)
    for block in range(2):
        slices = windows(study, block)
        assert [begin for begin, _, _ in slices] == pytest.approx([slice_s * number for number in range(len(slices))])
        assert [end for _, end, _ in slices] == pytest.approx([slice_s * (number + 1) for number in range(len(slices))])
        rounds = [{arm for _, _, arm in slices[at : at + 3]} for at in range(0, len(slices), 3)]
        assert all(arms == {"base", "no jit", "same"} for arms in rounds)
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert trial.measured.tps == pytest.approx(trial.measured.transactions / trial.measured.duration_s)
        measured = study.slices(trial).filter(phase="measure")
        assert len(measured) == 2 / slice_s
        # how long clients were active in the slices of the own arm, however late these ended
        assert trial.measured.duration_s == pytest.approx(measured["client_s"].sum() / 2)
        assert measured["transactions"].sum() == trial.measured.transactions
        # a second for the whole of which the machine stood still has no row
        assert list(study.timeline(trial).filter(phase="measure")["second"]) in ([0, 1], [0], [1])
        # a third of the load that all three make together, however long that took
        whole_s = datetime.fromisoformat(trial.ended) - datetime.fromisoformat(trial.started)
        assert 3 * 2 <= 3 * trial.phases_s["load"] <= whole_s.total_seconds()
        # what both servers' host counts is none of one arm's
        assert set(trial.server_deltas["host"]) == {"elapsed_s", "server_cpu_s"}
        whole, of_server = trial.host_deltas, trial.server_deltas["host"]["server_cpu_s"]
        assert whole["cpu_s"] >= whole["cpu_busy_s"] > of_server
        assert {"elapsed_s", "lab_cpu_s"} <= trial.host_deltas.keys()


@pytest.mark.server
def test_tests_of_sysbench_alternate_too(tmp_path):
    load = {"workload": "oltp_point_select", "warmup": "1s", "duration": "1s", "interleave": "100ms"}
    load["share_server"] = False
    load["rate"] = 200
    load["sysbench"] = {"tables": 1, "table_size": 1000}
    arms = {"base": {}, "no jit": {"settings": {"jit": "off"}}}
    spec = build_study({"load": {"clients": 2, **load}, "arms": arms, "verdict": {"blocks": 1}}, "test", tmp_path)
    study = StudyDirectory.create(tmp_path / "s", spec, make_plan(spec, 1, "2026-11-22T21:00:00+00:00"))
    run_study(study, lambda event: None)
    assert [trial.status for trial in study.trials()] == ["completed"] * 2
    assert len(windows(study)) == 40


RATE = 100.0
KILLED = {**IN_TURNS, "warmup": 0, "duration": "4s"}
"""Loads during which something is killed. Without a warm-up, none is begun again with longer slices after that."""


@pytest.mark.server
def test_trials_at_a_rate_alternate_and_their_response_times_are_compared(tmp_path):
    study = small_study(tmp_path / "s", blocks=1, load={**IN_TURNS, "rate": RATE})
    run_study(study, lambda event: None)
    own_s = 2.0
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        measured = trial.measured
        assert measured.service_us is not None
        # what overruns a slice takes no time of it, and nobody waits for a start beyond its end
        assert 0 < measured.duration_s <= own_s + 1e-9
        assert study.slices(trial).filter(phase="measure")["transactions"].sum() == measured.transactions
        # far from twice as many, as there would be if starts were scheduled in the other's slices too: 200 +- 14
        assert 0 < measured.transactions < 1.5 * RATE * own_s
    (claim,) = read_data(study).result.primary
    base, other = (
        next(trial for trial in study.trials() if trial.arm == arm).measured.latency_us.mean
        for arm in (claim.baseline, claim.arm)
    )
    (block,) = claim.ratios
    assert block.log_ratio == pytest.approx(math.log(base / other))


@pytest.mark.server
def test_slices_that_transactions_overrun_are_told_with_a_longer_one(tmp_path):
    (tmp_path / "slow.sql").write_text("SELECT pg_sleep(0.15);\n")
    load = {"workload": "./slow.sql", "interleave": "100ms", "share_server": False, "clients": 4, "warmup": 0}
    study = small_study(tmp_path / "s", blocks=1, load=load, folder=tmp_path)
    run_study(study, lambda event: None)
    for trial in study.trials():
        assert trial.status == "completed"
        (note,) = [note for note in trial.notes if "slices ended late" in note]
        assert re.match(r"\d+ of 20 slices ended late by more than a quarter", note)
        assert note.endswith('interleave = "0.4s", or "off"')


@pytest.mark.server
def test_slices_shorter_than_transactions_are_lengthened_for_all_arms_by_the_first_warm_up(tmp_path):
    # far shorter than a slice, and no work for this machine; the warm-up is longer than a busy machine stands still
    (tmp_path / "fast.sql").write_text("SELECT pg_sleep(0.001);\n")
    (tmp_path / "slow.sql").write_text("SELECT pg_sleep(current_setting('pgtrial.sleep')::float);\n")
    load = {
        **IN_TURNS,
        "interleave": "250ms",
        "workload": ["./fast.sql", "./slow.sql"],
        "duration": "4s",
    }
    arms = {
        "base": {"settings": {"pgtrial.sleep": "0.001"}},
        "slow": {"settings": {"pgtrial.sleep": "0.09"}},
    }
    study = small_study(tmp_path / "s", blocks=2, load=load, arms=arms, folder=tmp_path)
    events: list[ProgressEvent] = []
    run_study(study, events.append)
    (told,) = [
        event.text for event in events if isinstance(event, Preparing) and "half of the transactions" in event.text
    ]
    assert re.match(r"slow.sql, scale 1, 2 clients: half of the transactions of slow take \d+", told)
    again = StudyDirectory.open(study.path)
    assert each_once(again)
    slow = [point.workload for point in again.plan.load_points].index("slow.sql")
    (length,) = again.plan.interleaving.longer.values()
    assert again.plan.interleaving.longer == {slow: length}
    assert length in (0.5, 1.0, 2.0)
    assert told.endswith(f"so the slices of all arms are {format_duration(length)} here instead of 250ms")
    for trial in again.trials():
        planned = {row["planned_end_s"] - row["planned_begin_s"] for row in again.slices(trial).iter_rows(named=True)}
        wanted = length if trial.load_point.workload == "slow.sql" else 0.25
        assert all(each == pytest.approx(wanted) for each in planned)
        assert (trial.status, trial.reason) == ("completed", None)
    assert not list((again.path / "interruptions").glob("*"))
    build_report(again)
    assert "where transactions are longer" in (again.path / "report.html").read_text()


@pytest.mark.server
def test_arms_that_differ_in_what_a_session_may_set_are_sessions_of_one_server(tmp_path):
    settings = {"5MB": {"work_mem": "5MB"}, "two words": {"work_mem": "6MB", "DateStyle": "ISO, DMY"}}
    arms = {name: {"settings": own} for name, own in settings.items()}
    study = small_study(tmp_path / "s", blocks=2, load={"interleave": "auto"}, arms=arms)
    assert study.plan.interleaving == Interleaving(slice_s=0.25, shared_server=True)
    assert study.plan.scope.endswith("all arms as sessions of one server")
    run_study(study, lambda event: None)
    assert each_once(study)
    assert all((trial.status, trial.reason) == ("completed", None) for trial in study.trials())
    facts = study.facts()
    assert [facts[arm].facts["settings"]["work_mem"] for arm in arms] == ["5MB", "6MB"]
    assert facts["two words"].facts["settings"]["DateStyle"] == "ISO, DMY"
    by_itself, other = study.trials()[:2]
    assert "start" in by_itself.phases_s
    assert "start" not in other.phases_s
    # what one server counts is none of one arm's
    assert by_itself.server_deltas == other.server_deltas == {}
    assert by_itself.host_deltas["cpu_busy_s"] > by_itself.shared_deltas["host"]["server_cpu_s"]
    assert other.host_deltas == {}
    assert "is in the trial that was the first" in study.trial_path(other).joinpath("server.log").read_text()


@pytest.mark.server
def test_a_given_server_is_compared_with_itself_without_a_change_of_its_settings(start_cluster, tmp_path):
    cluster = start_cluster()
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user={cluster.target.user}"
    arms = {name: {"dsn": dsn, "settings": {"jit": name}} for name in ("on", "off")}
    study = small_study(tmp_path / "s", blocks=1, load={"interleave": "auto"}, arms=arms, server={"settings": {}})
    run_study(study, lambda event: None)
    assert [trial.status for trial in study.trials()] == ["completed"] * 2
    assert [study.facts()[arm].facts["settings"]["jit"] for arm in arms] == ["on", "off"]
    assert "jit" not in (cluster.data_directory / "postgresql.auto.conf").read_text()


@pytest.mark.server
def test_a_session_setting_that_the_server_refuses_is_told_before_the_first_trial(tmp_path):
    arms = {"a": {}, "b": {"settings": {"work_mem": "much"}}}
    study = small_study(tmp_path / "s", load={"interleave": "auto"}, arms=arms)
    with pytest.raises(StudyError, match=r'arms.b: .*invalid value for parameter "work_mem".*; correct the value$'):
        run_study(study, lambda event: None)


@pytest.mark.server
def test_no_server_of_its_own_cures_a_session_setting_that_none_can_have(clusters, tmp_path):
    cluster = clusters(18)
    dsn = f"host={cluster.socket_directory} port={cluster.port} user=postgres dbname=postgres"
    arms = {"a": {"dsn": dsn}, "b": {"dsn": dsn, "settings": {"work_mem": "1kB"}}}
    study = small_study(tmp_path / "s", load={"interleave": "auto"}, arms=arms, server={"settings": {}})
    with pytest.raises(
        StudyError, match=r"arms.b: a session cannot have .* outside the valid range.*; correct the settings$"
    ):
        run_study(study, lambda event: None)


@pytest.mark.server
@pytest.mark.parametrize("major", [16, 17, 18])
def test_the_settings_of_sessions_are_those_of_real_servers(clusters, major):
    with clusters(major).target.connect_as_user() as connection:
        rows = connection.execute("SELECT name, context FROM pg_settings").fetchall()
    settable = {name.lower() for name, context in rows if context in {"user", "superuser"}}
    assert {name.lower() for name, _ in rows} & SESSION_SETTINGS <= settable


@pytest.mark.server
def test_a_killed_engine_fails_its_own_trial_alone(tmp_path):
    study = small_study(tmp_path / "s", blocks=2, load={**KILLED, "rate": RATE})

    def kill_an_engine():
        note = next(study.path.glob("trials/.*/engine.pid"))
        psutil.Process(json.loads(note.read_text())["pid"]).kill()

    run_study(study, once(measuring, kill_an_engine))
    assert each_once(study)
    assert sorted(trial.status for trial in study.trials() if trial.block == 0) == ["completed", "failed"]
    assert [trial.status for trial in study.trials() if trial.block == 1] == ["completed"] * 2


@pytest.mark.server
def test_a_killed_server_fails_its_own_trial_alone(tmp_path, postmasters):
    study = small_study(tmp_path / "s", blocks=2, load={**KILLED, "rate": RATE})
    servers: list[psutil.Process] = []

    def kill_a_server():
        first, second = postmasters()
        servers.extend([*first.children(), *second.children()])
        for process in [first, *first.children()]:
            with suppress(psutil.NoSuchProcess):  # without their postmaster some end by themselves
                process.kill()

    run_study(study, once(measuring, kill_a_server))
    assert each_once(study)
    assert sorted(trial.status for trial in study.trials() if trial.block == 0) == ["completed", "failed"]
    assert [trial.status for trial in study.trials() if trial.block == 1] == ["completed"] * 2
    assert not any(process.is_running() for process in servers)


@pytest.mark.server
def test_a_killed_lab_leaves_nothing_behind_and_goes_on_with_each_block_once(tmp_path, postmasters):
    study_file = STUDY.replace('interleave = "off"', "share_server = false").replace("blocks = 1", "blocks = 2")
    with start_lab(tmp_path, study_file) as lab:
        engines: list[psutil.Process] = []
        deadline = time.monotonic() + 400
        # in the second block, while both engines run
        while len(engines) < 2 or not list(tmp_path.glob("results/*/trials/0000*")):
            assert lab.poll() is None, lab.communicate()
            assert time.monotonic() < deadline
            engines = []
            for note in tmp_path.glob("results/*/trials/.000[23]*/engine.pid"):
                with suppress(psutil.NoSuchProcess, FileNotFoundError, json.JSONDecodeError):
                    engines.append(psutil.Process(json.loads(note.read_text())["pid"]))
            time.sleep(0.02)
        lab.send_signal(signal.SIGKILL)
    stored = {path: path.read_bytes() for path in tmp_path.glob("results/*/trials/[0-9]*/trial.json")}
    assert len(stored) == 2
    with start_lab(tmp_path, study_file) as again:
        _, err = again.communicate()
    assert again.returncode == 0, err
    (results,) = (tmp_path / "results").iterdir()
    study = StudyDirectory.open(results)
    assert each_once(study)
    assert {path: path.read_bytes() for path in stored} == stored
    assert not any(engine.is_running() for engine in engines)
    assert not postmasters()


@pytest.fixture
def ran_together(tmp_path) -> StudyDirectory:
    """Returns a study whose two trials have complete records although they were not run."""
    study = small_study(tmp_path / "s", blocks=1, load=IN_TURNS)
    for planned in study.plan.trials:
        study.begin_trial(planned)
    study.write_trials([completed_trial(study, planned) for planned in study.plan.trials])
    return study


def test_trials_that_were_complete_when_the_lab_was_killed_are_kept(ran_together):
    study = ran_together
    first, second = study.trials()
    for renamed in ([second], [first, second]):
        for trial in renamed:
            path = study.trial_path(trial)
            path.rename(path.with_name(f".{path.name}.tmp"))
        assert discard_unfinished(study) == 0
        assert study.trials() == [first, second]


@pytest.mark.server
def test_half_of_trials_that_ran_together_is_refused(ran_together):
    study = ran_together
    shutil.rmtree(study.trial_path(study.trials()[1]))
    with pytest.raises(
        StoreError, match=r"is stored without the trials that ran at the same time; move it out of the study"
    ):
        run_study(study, lambda event: None)


OBSTACLES: list[tuple[dict[str, Any], str]] = [
    ({"load": {"on_server_loss": "wait 60s"}}, "a lost server"),
    ({"arms": {"a": {"thp": "never"}, "b": {}}}, "the arm a changes the state of the whole machine"),
    ({"arms": {"a": {"storage": {"fs": "ext4", "size": "1GB"}}, "b": {}}}, "the arm a has volumes"),
    ({"arms": {name: {"connect": "tcp", "settings": {"port": "5544"}} for name in "ab"}}, "arms a and b listen on one"),
    ({"arms": {name: {"settings": {"shared_buffers": "4TB"}} for name in "ab"}}, "shared_buffers of all arms are"),
    ({"arms": {name: {"dsn": "host=db port=5433"} for name in "ab"}}, "arms a and b are one given server, db:5433"),
]


@pytest.mark.parametrize(("sections", "why"), OBSTACLES)
def test_arms_that_cannot_be_up_side_by_side_run_one_after_the_other_or_are_refused(tmp_path, sections, why):
    def study(**load: str):
        arms = sections.get("arms", {"a": {}, "b": {}})
        return build_study({"load": {**sections.get("load", {}), **load}, "arms": arms}, "test", tmp_path)

    assert why in (why_not(Design(study())) or "")
    assert make_plan(study(), 1, "").interleaving is None
    with pytest.raises(StudyError, match=f'interleave: .*{why}.*; leave it out, or write "off"'):
        make_plan(study(interleave="250ms"), 1, "")


def test_the_warm_up_of_a_sysbench_test_is_whole_slices_too(tmp_path):
    load = {"workload": "oltp_point_select", "warmup": "1s", "duration": "3s", "interleave": "300ms"}
    with pytest.raises(StudyError, match=r"the warmup of 1s is not a whole number of slices of 300ms"):
        make_plan(build_study({"load": load, "arms": {"a": {}, "b": {}}}, "test", tmp_path), 1, "")


@pytest.mark.parametrize(
    ("interleave", "complaint"),
    [
        ("often", 'neither "auto" nor "off" nor the length of a slice'),
        ("1ms", "a slice of 1ms is too short; write 10ms or more"),
        ("350ms", r'not a whole number of slices of 350ms; write for example "333.333ms"'),
    ],
)
def test_slices_that_are_none_are_refused(tmp_path, interleave, complaint):
    load = {"duration": "2s", "interleave": interleave}
    with pytest.raises(StudyError, match=complaint):
        make_plan(build_study({"load": load, "arms": {"a": {}, "b": {}}}, "test", tmp_path), 1, "")
