"""The tests of the machine where ours is more than sysbench, or ends another way; the corpus has what is the same."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.engine.programs import ended
from tests.engine.sysbench.sides import ours
from tests.engine.sysbench.test_tpcc import count_of

pytestmark = pytest.mark.server


FOREVER = "cpu --cpu-max-prime=2000000000 --events=1 --time=0"
"""An event that takes hours."""


@pytest.fixture
def run(databases, tmp_path):
    """Run our side to its end."""
    return lambda line, **env: ours().run(databases[1], *line.split(), directory=tmp_path, **env)


@pytest.mark.parametrize("command", ["prepare", "run", "help"])
def test_the_test_of_files_is_refused(run, command):
    done = run(f"fileio {command}")
    assert (done.status, done.stderr) == (1, "")
    sentence = "pgtrial is for PostgreSQL and does not have the 'fileio' test of the machine: use sysbench itself"
    assert done.stdout.endswith(f"\nFATAL: {sentence}\n")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("threads --thread-locks=0", "Invalid value for --thread-locks: 0."),
        ("threads --thread-locks=-1", "Invalid value for --thread-locks: -1."),
        ("threads --thread-yields=-1", "Invalid value for --thread-yields: -1."),
        ("mutex --mutex-num=0", "Invalid value for --mutex-num: 0."),
        ("mutex --mutex-locks=0", "Invalid value for --mutex-locks: 0."),
        ("mutex --mutex-loops=-1", "Invalid value for --mutex-loops: -1."),
        ("memory --memory-scope=", "Invalid value for memory-scope: "),
        ("memory --memory-total-size=x", "Invalid value for memory-total-size: x"),
        ("memory --memory-hugetlb", "--memory-hugetlb=on is not available: "),
        ("cpu --jobs=2", "--jobs is for tests of the database: "),
    ],
)
def test_what_crashes_or_hangs_in_the_original_or_is_not_there_is_refused(run, line, sentence):
    done = run(f"{line} run")
    assert (done.status, done.stderr) == (1, "")
    (said,) = re.findall(r"^FATAL: (.*)$", done.stdout, flags=re.MULTILINE)
    assert said.startswith(sentence)
    assert "Running the test" not in done.stdout


def test_no_server_is_asked_for(run):
    done = run("--db-driver=mysql --pgsql-port=99999 cpu --events=2 run", PGSSLMODE="nonsense", PGSERVICE="nosuch")
    assert (done.status, done.stderr) == (0, "")
    assert count_of("total number of events", done.stdout) == 2


def test_a_run_can_be_interrupted_within_an_event(databases, tmp_path):
    with ours().start(databases[1], [*FOREVER.split(), "run"], directory=tmp_path) as process:
        while process.stdout.readline() != "Threads started!\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.status == 130
    assert count_of("total number of events", done.stdout) == 0


def test_a_shutdown_can_be_forced_within_an_event(run):
    done = run("cpu --cpu-max-prime=2000000000 --time=1 --forced-shutdown=0 run")
    assert done.status == 2
    assert "FATAL: The --max-time limit has expired, forcing shutdown...\n" in done.stdout
    assert "\nNumber of unfinished transactions on forced shutdown: 1\n" in done.stdout
    assert "\nCPU speed:\n    events per second:     0.00\n" in done.stdout


@pytest.mark.parametrize(
    ("line", "events"), [("memory --memory-total-size=1M", 1024), ("mutex --mutex-locks=10 --threads=2", 2)]
)
def test_a_warm_up_takes_nothing_from_the_limits_of_a_test(run, line, events):
    done = run(f"{line} --warmup-time=1 --time=60 run")
    assert done.status == 0
    assert "Warming up for 1 seconds...\n" in done.stdout
    assert count_of("total number of events", done.stdout) == events


def test_several_engines_share_a_run(run):
    events = []
    for shard in ("1/2", "2/2"):
        done = run(f"cpu --cpu-max-prime=100 --threads=3 --events=30 --time=0 --rand-seed=7 --shard={shard} run")
        assert done.status == 0
        events.append(count_of("total number of events", done.stdout))
    assert events == [20, 10]


def test_events_are_written_as_json_lines_without_doubts_about_the_client(run, tmp_path):
    done = run("memory --threads=3 --memory-total-size=6M --memory-block-size=1M --jsonl=events.jsonl run")
    assert (done.status, done.stderr) == (0, "")
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    plan = events[0]["plan"]
    assert (plan["scripts"], plan["clients"], plan["jobs"]) == (["memory"], 3, 3)
    assert (plan["transactions"], plan["transactions_per_client"]) == (None, 2)
    assert events[-1]["measure"]["transactions"] == 6
    assert events[-1]["client"]["warnings"] == []
