"""kill -9 of the lab, the engine, the server and its processes, at random moments in studies that change the host."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

from bench.reliability.kind import Attack, Campaign, Figure, Kind, machine_unchanged
from bench.reliability.labs import Lab, forget, run_to_its_end

_IN_A_STUDY = 5
"""The number of kills in one study, after which it may end."""

_STUDY_S = 60.0
_MOST_BROKEN = 3
"""The number of studies that did not come to their end after which the attack gives up."""

_POLL_S = 0.01
MACHINES = 0.2
"""The share of the kills that are of machines (bench/reliability/machines.py)."""

HOST_CHANGED = """
[study]
name = "killed"
[load]
workload = "simple-update"
scale = 1
clients = 4
warmup = "500ms"
duration = "2s"
interleave = "off"
[server]
settings = { shared_buffers = "64MB", min_wal_size = "32MB", max_wal_size = "64MB", huge_pages = "off" }
[arms.volumes]
storage = { fs = "ext4", size = "300MB", wal = { fs = "tmpfs", size = "160MB" } }
[arms.kernel]
thp = "never"
sysctl = { "vm.swappiness" = "7", "vm.dirty_background_ratio" = "4" }
[verdict]
blocks = 2
"""
"""A backing file, a loop device, two file systems and their mounts; transparent huge pages and two parameters."""

IN_TURNS = """
[study]
name = "in-turns"
[load]
workload = "simple-update"
scale = 1
clients = 4
warmup = "500ms"
duration = "2s"
share_server = false
[server]
settings = { shared_buffers = "64MB", huge_pages = "off" }
[arms.base]
[arms."no jit"]
settings = { jit = "off" }
[verdict]
blocks = 3
"""
"""Two servers and two engines at a time; outside its slices a server's background processes are frozen."""

_STUDIES = (HOST_CHANGED, HOST_CHANGED, IN_TURNS)

_VICTIMS: dict[str, tuple[float, Callable[[Lab], list[psutil.Process]]]] = {
    "lab": (14.0, lambda lab: [psutil.Process(lab.process.pid)]),
    "engine": (2.5, Lab.engines),
    "server": (4.0, Lab.postmasters),
    "process of the server": (3.0, Lab.backends),
}
"""The processes that are killed. Each has the time, in seconds after it was first seen, within which it is killed, and
the function that finds it.
"""


def _run(campaign: Campaign) -> Iterator[Figure]:
    planned = campaign.kills - campaign.part(MACHINES)
    names = [list(_VICTIMS)[number % len(_VICTIMS)] for number in range(planned)]
    campaign.chance.shuffle(names)
    killer = _Killer(Attack(campaign, "kills", "kill -9 in studies that change the host", planned), deque(names))
    studies, broken, trials, failed = 0, 0, 0, 0
    while killer.names and broken < _MOST_BROKEN:
        folder = campaign.scratch / "kills" / str(studies)
        killer.left = _IN_A_STUDY
        with machine_unchanged(killer.attack):
            study = run_to_its_end(killer.attack, folder, _STUDIES[studies % len(_STUDIES)], killer)
        studies += 1
        if study is None:
            broken += 1
        else:
            trials += len(study.trials())
            failed += sum(trial.status == "failed" for trial in study.trials())
        forget(folder)
    kinds = ", ".join(f"{count} of the {name}" for name, count in sorted(killer.killed.items()))
    yield killer.attack.figure(f"{kinds}; {studies} studies with {trials} trials, {failed} of which failed")


class _Killer:
    """Kills the next victim at a random moment of its life."""

    def __init__(self, attack: Attack, names: deque[str]) -> None:
        self.attack = attack
        self.names = names
        self.left = 0
        self.killed: Counter[str] = Counter()

    def __call__(self, lab: Lab) -> bool:
        if not self.left or not self.names:
            return False
        name = self.names[0]
        within, victims = _VICTIMS[name]
        if not _wait(lab, lambda: bool(victims(lab))):
            return False
        moment = time.monotonic() + self.attack.campaign.chance.uniform(0, within)
        _wait(lab, lambda: time.monotonic() >= moment)
        with suppress(psutil.NoSuchProcess, IndexError):
            # one that has ended by itself meanwhile leaves the kill to the next
            self.attack.campaign.chance.choice(victims(lab)).kill()
            lab.was_attacked = True
            self.names.popleft()
            self.killed[name] += 1
            self.left -= 1
            self.attack.done()
        return True


def _wait(lab: Lab, happened: Callable[[], bool]) -> bool:
    """Waits while the lab runs; returns True if the awaited event happened."""
    while lab.runs:
        if happened():
            return True
        time.sleep(_POLL_S)
    return False


KIND = Kind("kills", lambda campaign: (campaign.kills - campaign.part(MACHINES)) / _IN_A_STUDY * _STUDY_S, _run)
