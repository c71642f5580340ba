"""Attacks on root's trust: the servers' account exchanges all that it can write, while a lab runs and after its end."""

from __future__ import annotations

import os
import pwd
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.conduct.small import start_lab
from tests.machines.ssh.hosts import Host
from tests.servers.intruder import ATTACKS, SECRET, Victim, as_account, exchange, victim

from bench.reliability.hosts import host
from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing
from bench.reliability.labs import PATIENCE_S, clean_up, forget
from pgtrial.machines.machine import LOCAL
from pgtrial.servers.installations import resolve
from pgtrial.servers.run_directory import servers_account
from pgtrial.servers.workspace import Workspace

_HERE, _ON_A_HOST = 0.2, 0.08
"""The numbers of attacks on studies on this machine and on another host, each as a share of the option `--kills`."""
_HERE_S, _ON_A_HOST_S = 16.0, 25.0
_SMALL = 65536
_LOOK_S = 0.05

_STUDY = """
[study]
name = "trust"
[load]
workload = "simple-update"
scale = 1
clients = 2
warmup = "200ms"
duration = "1s"
interleave = "off"
share_server = false
[server]
settings = {{ shared_buffers = "16MB", max_wal_size = "64MB", min_wal_size = "32MB", huge_pages = "off" }}
{server}
[arms.a]
[arms.b]
{arm}
[verdict]
blocks = 1
"""
_VOLUMES = 'storage = { fs = "ext4", size = "300MB", wal = { fs = "tmpfs", size = "160MB" } }'


@dataclass(frozen=True)
class _Place:
    """The target of an attack: the servers of a study, in a directory that holds all that the lab has there."""

    study: str
    below: Path
    host: Host | None = None
    """The host of the servers; None: this machine."""


def _run(campaign: Campaign) -> Iterator[Figure]:
    account = servers_account(LOCAL)
    if account is None:
        raise Missing("the attacks are those of an account that is not root's")
    if here := campaign.part(_HERE):
        place = _Place(_STUDY.format(server="", arm=_VOLUMES), campaign.state)
        yield _Enemy(campaign, account, place, here).figure()
    if elsewhere := campaign.part(_ON_A_HOST):
        with Workspace(campaign.state) as workspace:
            programs = workspace.reachable(resolve("18")).bin
        with host(campaign) as other:
            server = f'ssh = "{other.login}"\ndata = "{other.data}"\npostgres = "{programs}"'
            place = _Place(_STUDY.format(server=server, arm="port = 54322"), other.data, other)
            yield _Enemy(campaign, account, place, elsewhere).figure()


class _Enemy:
    """The servers' account at one place."""

    def __init__(self, campaign: Campaign, account: str, place: _Place, planned: int) -> None:
        where = "" if place.host is None else " on a host"
        what = f"the servers' account exchanges all that it can write{where}, at random moments of studies"
        self._attack = Attack(campaign, "trust", what, planned)
        self._campaign = campaign
        self._account = account
        self._place = place
        self._folder = campaign.scratch / "trust"
        self._exchanged = 0
        self._killed = 0

    def figure(self) -> Figure:
        """Carries out the attack in each of its ways and returns the figure. In every other round the lab is killed
        first."""
        began = time.monotonic()
        with self._lab() as lab, _MadeByRoot(self._place.below, self._account) as made:
            printed = self._rest_of(lab)
            length_s = time.monotonic() - began
            if lab.returncode != 0:
                self._attack.defect(f"a study that nobody attacked ended with {lab.returncode}: {printed}")
        for path in sorted(made.found):
            self._attack.defect(f"root made {path}, which the servers' account could have exchanged")
        self._check_left("a study that nobody attacked")
        for number in range(self._attack.planned):
            kills = number // len(ATTACKS) % 2 == 0
            self._attacked_study(
                ATTACKS[number % len(ATTACKS)], self._campaign.chance.uniform(0, length_s), kills=kills
            )
            self._attack.done()
        return self._attack.figure(
            f"{len(ATTACKS)} kinds of attack; {self._exchanged:,} files and directories were exchanged; "
            f"{self._killed} labs were killed before"
        )

    def _attacked_study(self, kind: str, moment_s: float, *, kills: bool) -> None:
        """Exchanges the files that exist at a moment of a study; no file of the victim's may be touched or shown."""
        after = f"{kind} {moment_s:.1f} s after the beginning of a lab{' that was killed' if kills else ''}"
        forget(self._campaign.scratch / "victim")
        with victim(self._campaign.scratch / "victim") as target, self._lab() as lab:
            before = target.state()
            with suppress(subprocess.TimeoutExpired):
                lab.wait(moment_s)
            if kills and lab.poll() is None:
                lab.kill()
                lab.wait()
                self._killed += 1
            self._exchange(kind, target, after)
            printed = self._rest_of(lab)
            self._check_left(after)
            now = target.state()
            for name in sorted(now.keys() | before.keys()):
                if now.get(name) != before.get(name):
                    self._attack.defect(f"{name} was {before.get(name)} and is {now.get(name)} after {after}")
        shown = [str(path) for top in (self._folder, self._campaign.state) for path in top.rglob("*") if _shows(path)]
        if shown or SECRET in printed:
            self._attack.defect(f"{', '.join(shown) or 'the lab'} shows what root alone may read, after {after}")

    def _exchange(self, kind: str, target: Victim, after: str) -> None:
        paths = [*self._place.below.rglob("*")]  # more than the account sees
        try:
            self._exchanged += as_account(self._account, lambda: exchange(paths, kind, target))
        except AssertionError as failure:
            self._attack.defect(f"{failure}: {after}")

    def _lab(self) -> subprocess.Popen[str]:
        forget(self._folder)
        self._folder.mkdir()
        return start_lab(self._folder, self._place.study)

    def _rest_of(self, lab: subprocess.Popen[str]) -> str:
        """Waits for a lab to end and returns the rest of its output."""
        try:
            output, printed = lab.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._attack.defect(f"a lab did not end within {PATIENCE_S:.0f} s")
            lab.kill()
            output, printed = lab.communicate()
        if "Traceback" in printed:
            self._attack.defect(f"a lab ended with a traceback: {printed}")
        return output + printed

    def _check_left(self, after: str) -> None:
        other = self._place.host
        if other is not None:
            other.note_run_directories()
        clean_up(self._attack, after)
        for what in other.left_in_the_end() if other is not None else ():
            self._attack.defect(f"left on the host after {after}: {what}")


class _MadeByRoot(threading.Thread):
    """Watches for what root makes in directories of the servers' account, as long as the context lasts."""

    def __init__(self, below: Path, account: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._below = str(below)
        self._account = pwd.getpwnam(account).pw_uid
        self._ended = threading.Event()

    def run(self) -> None:
        """Searches the directories for files of root repeatedly until the context ends."""
        while not self._ended.wait(_LOOK_S):
            self._look(self._below, owned=False)

    def _look(self, directory: str, *, owned: bool) -> None:
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    owner = entry.stat(follow_symlinks=False).st_uid
                    if owned and owner == 0:
                        self.found.add(entry.path)
                    # of a data directory that has a thousand files
                    if entry.is_dir(follow_symlinks=False) and (not owned or entry.name == "pg_wal"):
                        self._look(entry.path, owned=owned or owner == self._account)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


def _shows(path: Path) -> bool:
    """True if a small file has content that only root may read."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _SMALL:
        return False
    return SECRET.encode() in path.read_bytes()


def _seconds(campaign: Campaign) -> float:
    return campaign.part(_HERE) * _HERE_S + campaign.part(_ON_A_HOST) * _ON_A_HOST_S


KIND = Kind("trust", _seconds, _run)
