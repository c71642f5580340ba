"""Tests of the counters of a Windows host, from recordings: pgtrial was never tried with a real one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgtrial.evidence.observe import windows
from pgtrial.evidence.observe.host import HostSampler, read_host
from pgtrial.evidence.observe.system import Snapshot
from pgtrial.evidence.observe.windows import Windows
from pgtrial.machines.windows import Reply, WindowsHost

from .test_host import served_by

LINES = (Path(__file__).parent / "recorded/windows-look.txt").read_text().splitlines()
TOLD: Reply = json.loads("".join(line for line in LINES if not line.startswith("#")))
SESSION = 815


class Saying(WindowsHost):
    """A host that answers its scripts with these outputs one after the other, and repeats the last one."""

    label = "somebody@windows"

    def __init__(self, *replies: Reply | str):
        self._replies = [each if isinstance(each, str) else json.dumps(each) for each in replies]
        self.scripts: list[str] = []

    def powershell(self, script: str) -> str:
        self.scripts.append(script)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def without(*processes: int) -> Reply:
    return TOLD | {"processes": [each for each in TOLD["processes"] if each["ProcessId"] not in processes]}


def test_counters_are_seconds_and_bytes_under_the_names_of_linux():
    looking = HostSampler(Saying(TOLD), Path("D:/pgdata"), served_by(SESSION))
    seen = looking.look()
    assert seen.counters == {
        "cpu": {
            "user_s": pytest.approx(130.0),
            "system_s": pytest.approx(50.0),
            "idle_s": pytest.approx(810.0),
            "irq_s": pytest.approx(3.0),
            "softirq_s": pytest.approx(7.0),
            "context_switches": 987654.0,
        },
        "processes": {"server_cpu_s": pytest.approx(3.0 + 2.0 + 0.2)},
        "device": {"read_bytes": 1e6, "reads": 100.0, "written_bytes": 2e6, "writes": 300.0},
        "network": {"bytes": 11500.0},
    }
    assert seen.gauges == {
        "memory": {"available_bytes": 9e9, "dirty_bytes": 5e7, "cached_bytes": 3.46e9},
    }
    assert looking.cpu_taken_s() == pytest.approx(2.0 + 0.25)


def test_the_disk_of_the_data_is_asked_for_by_its_letter_and_by_nothing_else():
    host = Saying(TOLD)
    Windows(host, Path("E:/x"), SESSION).look()
    Windows(host, None, SESSION).look()
    assert "LogicalDisk -Filter \"Name='E:'\"" in host.scripts[0]
    assert "LogicalDisk" not in host.scripts[1]


def test_looks_take_a_hundredth_of_the_host_at_most(monkeypatch):
    now = [100.0]
    host = Saying(TOLD)
    monkeypatch.setattr(windows, "time", SimpleNamespace(monotonic=lambda: now[0]))
    looking = Windows(host, None, SESSION)
    assert looking.look() != Snapshot()
    # a quarter of a second of two processors
    now[0] += 12.4
    assert looking.look() == Snapshot()
    now[0] += 0.2
    assert looking.look() != Snapshot()
    assert len(host.scripts) == 2


def test_the_time_of_a_process_that_has_ended_stays_counted(monkeypatch):
    again = without(816) | {"processes": [*without(816)["processes"], TOLD["processes"][2] | {"Created": 1}]}
    monkeypatch.setattr(windows, "time", SimpleNamespace(monotonic=iter(range(0, 10**6, 1000)).__next__))
    looking = Windows(Saying(TOLD, without(816), again), None, SESSION)
    seconds = [looking.look().counters["processes"]["server_cpu_s"] for _ in range(3)]
    assert seconds == [pytest.approx(5.2), pytest.approx(5.2), pytest.approx(5.4)]


def test_without_the_labs_session_no_process_is_the_servers():
    for session in (None, 4711):
        assert "processes" not in Windows(Saying(TOLD), None, session).look().counters


@pytest.mark.parametrize(
    "replies", ["", "Access denied", '{"cpu":[{"PercentIdleTime":null}],"network":{},"memory":null}']
)
def test_what_is_not_told_leaves_no_numbers(replies):
    assert Windows(Saying(replies), None, SESSION).look() == Snapshot()
    assert read_host(Saying(replies), None) == {}


def test_around_a_trial_the_host_is_counted_as_any_other():
    host = read_host(Saying(TOLD), Path("D:/pgdata"), network=True)["host"]
    assert (host["cpu_s"], host["cpu_busy_s"]) == (pytest.approx(1000.0), pytest.approx(190.0))
    assert (host["device_writes"], host["network_bytes"]) == (300.0, 11500.0)
    assert not {"cpu_steal_s", "lab_cpu_s", "memory_stall_s", "server_cpu_s"} & set(host)


def test_a_host_that_answers_to_powershell_is_looked_at_by_it():
    assert isinstance(HostSampler(Saying(TOLD), None).system, Windows)
