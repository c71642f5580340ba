"""Runs with a rate, a limit of latency or several tries: what the events tell of them, as the text does."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.postmaster import server_processes
from tests.engine.events import assert_consistent, done_of, events_of, histogram, of_kind, run_with_events, wait_for
from tests.engine.programs import ended
from tests.processes import send

pytestmark = pytest.mark.server


COUNTS = ("skipped", "late", "retried", "retries")


def run_script(program, target, tmp_path, script: str, *args: str, **env: str):
    """Runs a script with events; returns its output, the events and the last of them."""
    path = tmp_path / "script.sql"
    path.write_text(script)
    done, events = run_with_events(program, target, tmp_path / "events", "-n", "-f", str(path), *args, **env)
    assert done.status == 0, done.stderr
    assert_consistent(events)
    for phase in ("warmup", "measure"):
        summary = done_of(events)[phase]
        for key in COUNTS if summary else ():
            assert summary[key] == sum(tick[key] for tick in of_kind(events, "tick", phase=phase))
    return done, events, done_of(events)


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1])


def test_without_options_nothing_is_late_skipped_or_retried(peers, loaded, tmp_path):
    _, events, end = run_script(peers[1], loaded(18), tmp_path, "SELECT 1;", "-t", "20")
    assert [end["measure"][key] for key in COUNTS] == [0, 0, 0, 0]
    for counted in (end["measure"], *of_kind(events, "tick")):
        assert "service_us" not in counted
        assert "lag_us" not in counted


def test_skipped_and_late_transactions_are_those_of_the_text(peers, loaded, tmp_path):
    # a second in all: whatever else the machine does, not all of it passes before the first one has begun
    args = ("-t", "500", "-c", "2", "-R", "1000", "-L", "3", "--random-seed=1")
    done, _, end = run_script(peers[1], loaded(18), tmp_path, "SELECT pg_sleep(0.005);", *args)
    measure = end["measure"]
    assert measure["skipped"] == number(r"number of transactions skipped: (\d+)", done.stdout) > 0
    assert measure["late"] == number(r"above the 3\.0 ms latency limit: (\d+)", done.stdout)
    assert measure["transactions"] == number(r"actually processed: (\d+)", done.stdout)
    # each took longer than the limit allows
    assert measure["late"] == measure["transactions"] > 0
    assert measure["transactions"] + measure["skipped"] == 1000


def test_a_latency_is_a_lag_and_a_service_time(peers, loaded, tmp_path):
    args = ("-t", "100", "-c", "2", "-R", "400", "--random-seed=1")
    done, events, end = run_script(peers[1], loaded(18), tmp_path, "SELECT pg_sleep(0.001);", *args)
    measure = end["measure"]
    for key in ("service", "lag"):
        encoded = [tick[f"{key}_histogram"] for tick in of_kind(events, "tick", phase="measure")]
        assert histogram(encoded).get_total_count() == measure["transactions"] == 200
        assert histogram([measure[f"{key}_histogram"]]).get_total_count() == 200
    means = (histogram([measure[f"{key}_histogram"]]).get_mean_value() for key in ("lag", "service"))
    lags, service = (mean / 1000 for mean in means)
    assert service >= 1000
    # the parts add up, but for the three digits of the histograms
    assert measure["latency_us"]["mean"] == pytest.approx(lags + service, rel=5e-3, abs=3)
    average = float(re.search(r"rate limit schedule lag: avg (\d+\.\d+) ", done.stdout)[1])
    assert average * 1000 == pytest.approx(lags, rel=5e-3, abs=3)
    assert set(measure["lag_us"]) >= {"p50", "p99"}
    assert measure["service_us"]["p50"] >= 1000


STOP_S = 5.0
"""The shortest time for which the server is stopped, seconds. The run reports a delay only at the end of a second, so
that the stop may last 1.5 s longer. That leaves four of the run's twelve seconds for late transactions.
"""


def test_a_server_that_stands_still_shows_in_the_response_time_and_the_service_time_stands_beside_it(
    peers, start_cluster, tmp_path
):
    cluster = start_cluster(18)
    events = tmp_path / "events"
    (tmp_path / "script.sql").write_text("SELECT 1;")
    args = ["-n", "-f", "script.sql", "-T", "12", "-c", "2", "-R", "125", "--percentiles", "--events", str(events)]
    with peers[1].start(cluster.target, args, directory=tmp_path) as process:
        stand_still(cluster, events)
        done = ended(process)
    assert done.status == 0, done.stderr
    told = {
        what: float(value)
        for what, value in re.findall(r"^(\S+)(?: time)? percentiles .* p99 = (\d+\.\d+)", done.stdout, re.M)
    }
    assert told["latency"] > 800 * STOP_S
    # of 1500 transactions the two that were on the server stood still with it
    assert told["service"] < 200 * STOP_S

    outcome = Outcome()
    for event in events_of(events.read_text()):
        outcome.add(event)
    measured = outcome.measured
    assert measured is not None
    assert measured.latency_us is not None
    assert measured.service_us is not None
    assert measured.latency_us.p99 > 800_000 * STOP_S
    assert measured.service_us.p99 < 200_000 * STOP_S < 800_000 * STOP_S < measured.service_us.p999


def stand_still(cluster: Cluster, events: Path) -> None:
    """Stop all the server's processes in mid-run, for a while by the run's own clock."""
    wait_for(events, lambda told: bool(of_kind(told, "connected")))
    processes = server_processes(cluster.data_directory)
    wait_for(events, lambda told: bool(of_kind(told, "tick")))
    try:
        send(processes, signal.SIGSTOP)
        stopped = last_time(events) + 1
        wait_for(events, lambda told: told[-1]["t"] > stopped + STOP_S)
    finally:
        send(processes, signal.SIGCONT)


def last_time(events: Path) -> float:
    text = events.read_text()
    return float(events_of(text[: text.rfind("\n") + 1])[-1]["t"])


def test_tries_are_those_of_the_text(peers, fresh, tmp_path):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute("CREATE SEQUENCE turns")
        connection.execute(
            "CREATE FUNCTION mishap() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('turns') % 5 <> 0 THEN RAISE serialization_failure; END IF; RETURN 1; END $$"
        )
    # of five turns the first four fail: two transactions fail after two tries each, the third succeeds at once
    args = ("-t", "30", "--max-tries=2")
    done, _, end = run_script(peers[1], target, tmp_path, "SELECT mishap();", *args)
    measure = end["measure"]
    assert (measure["transactions"], measure["failures"]) == (10, {"40001": 20})
    assert (measure["retried"], measure["retries"]) == (20, 20)
    assert "number of transactions retried: 20 (66.667%)\n" in done.stdout
    assert "total number of retries: 20\n" in done.stdout


def test_failed_transactions_that_are_gone_on_from_are_counted_by_sqlstate(peers, fresh, tmp_path):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute("CREATE SEQUENCE turns")
    script = "BEGIN;\nSELECT 1 / (nextval('turns') % 3)::int;\nEND;\n"
    done, _, end = run_script(peers[1], target, tmp_path, script, "-t", "30", "--continue-on-error")
    assert (end["measure"]["transactions"], end["measure"]["failures"]) == (20, {"22012": 10})
    assert end["clients_aborted"] == 0
    assert "number of failed transactions: 10 (33.333%)\n" in done.stdout


def test_several_scripts_are_counted_each(peers, loaded, tmp_path):
    args = ("-t", "50", "-b", "select-only@3", "-b", "simple-update@0", "--random-seed=3")
    _, _, end = run_script(peers[1], loaded(18), tmp_path, "SELECT 1;", *args)
    counts = [script["transactions"] for script in end["scripts"]]
    assert len(counts) == 3
    assert sum(counts) == end["measure"]["transactions"] == 50
    assert counts[1] > counts[0] > counts[2] == 0
    assert end["scripts"][2]["latency_us"] is None
    assert end["scripts"][0]["latency_us"]["mean"] > 0


def test_what_the_client_itself_needs_is_told(peers, loaded, tmp_path):
    _, _, end = run_script(peers[1], loaded(18), tmp_path, "SELECT 1;", "-t", "200", "-c", "2")
    client = end["client"]
    cpu = client["cpu_user_s"] + client["cpu_system_s"]
    assert client["cpu_per_transaction_us"] == pytest.approx(cpu * 1e6 / end["measure"]["transactions"], rel=1e-6)
    assert isinstance(client["warnings"], list)


@pytest.mark.parametrize("script", ["SELECT pg_sleep(0.01);", "\\set x " + " + ".join(["random(1, 10)"] * 200)])
def test_a_client_is_warned_of_when_it_was_busy_and_only_then(peers, loaded, tmp_path, script):
    _, _, end = run_script(peers[1], loaded(18), tmp_path, script, "-T", "1")
    client = end["client"]
    # what reads the events may be late on a busy machine, which is told of as well
    kinds = {warning["kind"] for warning in client["warnings"]} - {"output-slow"}
    # how busy the second is depends on what else the machine does
    assert kinds == ({"client-busy"} if client["busiest_thread_share"] > 0.8 else set())
    assert all(warning["message"] for warning in client["warnings"])
    if "pg_sleep" in script:
        assert kinds == set()


@pytest.mark.parametrize("line", ["-t 40", "-t 40 -R 1000"])
def test_the_file_of_histograms_holds_those_of_the_events(peers, loaded, tmp_path, line):
    path = tmp_path / "histogram"
    args = (*line.split(), "--histogram", str(path))
    _, _, end = run_script(peers[1], loaded(18), tmp_path, "SELECT 1;", *args)
    named = dict(text.split(" ") for text in path.read_text().splitlines())
    measure = end["measure"]
    assert named == {
        name: measure[key]
        for name, key in (("latency", "histogram"), ("service", "service_histogram"), ("lag", "lag_histogram"))
        if key in measure
    }
    assert ("lag" in named) == ("-R" in line)
