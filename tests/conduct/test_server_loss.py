"""A server that dies, fills its disk, is throttled or shuts its door in mid-study: nothing measured is lost."""

from __future__ import annotations

import math
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pgtrial.conduct.progress import ProgressEvent, Second, TrialBegins, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import ArmError
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.report.tables.results import level_table, levels_text
from pgtrial.servers.arm import Arm
from pgtrial.servers.postmaster import server_processes
from pgtrial.statistics.regimes import detect
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import committed_per_second
from tests.conduct.crowd import Crowd
from tests.conduct.small import (
    FAST,
    committed_after_its_failures,
    each_once,
    measuring,
    once,
    one_arm,
    run_one,
    small_study,
    title,
)
from tests.conftest import require, require_engine, require_root
from tests.processes import send, until

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _engine() -> None:
    require_engine()


FILLER = r"""
SELECT pg_logical_emit_message(true, 'filler', 'x'), CASE WHEN nextval('turns') > 24 THEN pg_switch_wal() END;
\sleep 60 ms
"""
"""A script of which each transaction uses up a WAL segment of 16 MB, except the first 24: these only sleep through the
warm-up and a measured second.
"""

LARGE_SEGMENTS = ["--wal-segsize=16"]

BALLAST = [
    "CREATE UNLOGGED TABLE ballast (line text STORAGE PLAIN)",
    "INSERT INTO ballast SELECT repeat('x', 7000) FROM generate_series(1, 3000)",
]
"""Data of 24 MB, so that the rest of the disk is filled soon on a slow machine as well."""


def test_a_disk_that_fills_in_mid_trial_fails_that_trial_and_the_panic_is_told(tmp_path: Path) -> None:
    require_root()
    require(shutil.which("mkfs.ext4"), "mkfs.ext4")
    (tmp_path / "filler.sql").write_text(FILLER)
    study = small_study(
        tmp_path / "s",
        blocks=1,
        seed=4,
        folder=tmp_path,
        load={"workload": "filler.sql", "clients": 1, "duration": "7s"},
        server={
            "settings": {**FAST, "max_wal_size": "4GB"},
            "setup_sql": ["CREATE SEQUENCE turns", "GRANT EXECUTE ON FUNCTION pg_switch_wal() TO pgtrial"],
        },
        # room for the data and some WAL, but not for that of this load
        arms={
            "roomy": {"initdb": LARGE_SEGMENTS},
            "tight": {"initdb": LARGE_SEGMENTS, "storage": {"fs": "ext4", "size": "200MB"}, "setup_sql": BALLAST},
        },
    )
    assert [planned.arm for planned in study.plan.trials] == ["tight", "roomy"]
    run_study(study, lambda event: None)
    study = StudyDirectory.open(study.path)
    assert each_once(study)
    tight, roomy = study.trials()
    assert (roomy.status, roomy.reason, roomy.server_log_tail) == ("completed", None, [])

    assert tight.status == "failed"
    assert tight.reason is not None
    assert "cut off" in tight.reason
    assert "PANIC: could not write to file" in tight.reason
    assert tight.measured is not None
    assert tight.measured.transactions > 0
    assert tight.measured.latency_us is not None
    assert sum(span.failures for span in tight.failure_spans) == sum(tight.measured.failures.values()) == 1
    assert committed_per_second(study.timeline(tight))
    assert study.latencies(tight)

    result = build_report(study)
    assert [failed.arm for failed in result.failed_trials] == ["tight"]
    (ratio,) = result.primary[0].ratios
    assert ratio.failed == ["tight"]
    assert ratio.log_ratio == pytest.approx(-math.log(1000))
    report = (study.path / "report.md").read_text()
    assert "No space left on device" in next(line for line in tight.server_log_tail if "PANIC" in line)
    assert report.count("No space left on device") >= 2


@pytest.mark.parametrize("patience", ["wait 20s", "fail"])
def test_a_server_that_restarts_after_a_crash_ends_the_trial_or_costs_time_as_the_study_says(
    tmp_path: Path, patience: str
) -> None:
    load = {"clients": 4, "warmup": "0s", "duration": "10s", "on_server_loss": patience}
    study = small_study(tmp_path / "s", blocks=1, load=load)
    with one_arm(study) as arm:
        first = study.plan.trials[0]
        trial = run_one(study, first, arm, once(measuring, lambda: kill_the_wal_writer(arm)))
    assert trial.measured is not None
    assert any("was terminated by signal 9" in line for line in trial.server_log_tail)
    assert sum(trial.measured.failures.values()) == 4
    assert {span.phase for span in trial.failure_spans} == {"measure"}
    waits = patience != "fail"
    assert (trial.status, trial.aborted_clients) == (("completed", 0) if waits else ("failed", 4))
    assert (trial.measured.duration_s == 10) == waits
    if waits:
        # the seconds without service count, and those after them as well
        assert trial.measured.tps == pytest.approx(trial.measured.transactions / 10)
        assert committed_after_its_failures(study, trial) > 0
        assert any("the lab's own session was lost with the server" in note for note in trial.notes)


NAP = "SELECT pg_sleep(0.03);\n"
"""A statement that sleeps, so that other work on this machine hardly changes its duration. Two clients commit 65
transactions a second; while the server is throttled, each client commits one in each cycle of 0.2 s.
"""

NOT_TOLD = 987_654.0
"""An average that no other number of a report can be."""


def test_a_throttled_server_is_told_as_two_levels_and_never_as_their_average(tmp_path: Path) -> None:
    seconds, throttled_from = 20, 9
    (tmp_path / "nap.sql").write_text(NAP)
    load = {"workload": "nap.sql", "warmup": "0s", "duration": f"{seconds}s"}
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load=load)
    first, second = study.plan.trials
    with one_arm(study) as arm, throttle(arm) as (begin, end):

        def on_event(event: ProgressEvent) -> None:
            if isinstance(event, Second) and event.second == throttled_from - 1:
                begin.set()
            if isinstance(event, Second) and event.second == seconds - 1:
                end.set()

        trial = run_one(study, first, arm, on_event)
    assert trial.status == "completed", trial.reason
    regime = detect(committed_per_second(study.timeline(trial)))
    assert regime is not None
    assert len(regime.segments) == 2
    assert regime.segments[0].end_s == pytest.approx(throttled_from, abs=3)
    burst, sustained = (segment.tps for segment in regime.segments)
    assert sustained < burst / 2

    # both arms' trials went this way, and have an average that is found wherever it is told
    assert trial.measured is not None
    average = {"tps": NOT_TOLD, "transactions": round(NOT_TOLD * seconds)}
    shown = trial.model_copy(update={"measured": trial.measured.model_copy(update=average)})
    measured = study.trial_path(trial).rename(tmp_path / "measured")
    for planned in (first, second):
        shutil.copytree(measured, study.begin_trial(planned), dirs_exist_ok=True)
        study.write_trials([shown.model_copy(update={"index": planned.index, "arm": planned.arm})])
    build_report(study)
    table = level_table(read_data(study))
    told = [row[table.heads.index("median tps")] for row in table.rows]
    assert told == [levels_text([burst, sustained])] * 2
    report = (study.path / "report.md").read_text()
    assert f"{NOT_TOLD:,.0f}" not in report
    assert f"{NOT_TOLD:.0f}" not in report


def test_a_given_server_that_shuts_its_door_stops_the_study_with_all_that_is_stored(start_cluster, tmp_path) -> None:
    cluster = start_cluster(
        settings={**FAST, "max_connections": "20"}, hba="local all bob scram-sha-256\nlocal all all trust\n"
    )
    with cluster.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN PASSWORD 'secret'")
        connection.execute("CREATE DATABASE bench OWNER bob")
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=bench user=bob password=secret"
    arms = {"first": {"dsn": dsn, "reset": "none"}, "again": {"dsn": dsn, "reset": "none"}}
    study = small_study(tmp_path / "s", blocks=2, arms=arms, server={"settings": {}})
    given = {name: arm.model_copy(update={"dsn": [dsn]}) for name, arm in study.spec.arms.items()}
    spec = study.spec.model_copy(update={"arms": given})
    crowd = Crowd(cluster)

    def expire() -> None:
        with cluster.target.connect_as_user() as connection:
            connection.execute("ALTER ROLE bob VALID UNTIL '2000-01-01'")

    with pytest.raises(ArmError, match=r'arms\.\w+: .* password authentication failed for user "bob"; .* VALID UNTIL'):
        run_study(study, once(lambda event: isinstance(event, TrialEnds), expire), spec=spec)
    assert [trial.status for trial in study.trials()] == ["completed"]

    with cluster.target.connect_as_user() as connection:
        connection.execute("ALTER ROLE bob VALID UNTIL 'infinity'")
    full = r"arms\.\w+: .* (too many clients|connection slots).*; wait until other sessions"
    with pytest.raises(ArmError, match=full):
        run_study(
            study, once(lambda event: isinstance(event, TrialBegins) and event.number == 3, crowd.fill), spec=spec
        )
    assert [trial.status for trial in study.trials()] == ["completed"] * 2

    crowd.leave()
    run_study(study, lambda event: None, spec=spec)
    assert each_once(study)
    assert {trial.status for trial in study.trials()} == {"completed"}


def kill_the_wal_writer(arm: Arm) -> None:
    """The server restarts. Clients learn of it from the server alone, and so once: one whose own process is killed may
    connect anew before the server has noticed, and be cut off a second time."""
    writers: list[psutil.Process] = []

    def found() -> bool:
        assert arm.data_directory is not None
        writers.extend(process for process in server_processes(arm.data_directory) if "walwriter" in title(process))
        return bool(writers)

    until(found, "the WAL writer, which may be new, says that it is one")
    writers[0].kill()


@contextmanager
def throttle(arm: Arm) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Yields two events. From the first event to the second one, the server's processes run for a tenth of the time
    only.
    """
    begin, end = threading.Event(), threading.Event()

    def run() -> None:
        begin.wait()
        processes = server_processes(arm.data_directory) if arm.data_directory and not end.is_set() else []
        while not end.is_set():
            send(processes, signal.SIGSTOP)
            end.wait(0.18)
            send(processes, signal.SIGCONT)
            end.wait(0.02)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield begin, end
    finally:
        end.set()
        begin.set()
        thread.join()
