"""The ground of the attackers' campaign: who attacks whom, how commands run there, and what shows that one worked.

An attack worked if a file lies where only it puts one, if the victim's files or rows changed, if a role became a
superuser, or if a text shows a secret. Every command must end by itself, in sentences.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.cli.forked import Commands

from bench.reliability.kind import Attack, Campaign
from pgtrial.servers.cluster import Cluster

SECRET = "s3cr3t-0f-the-v1ctim"
"""The password of the victim, and what its files hold: no file, message or page may show it."""

ENEMY = "nobody"
"""The account that attacks; root is the victim."""

_PATIENCE_S = 400.0
_MOST_BYTES = 1 << 24
_WRONG = re.compile(r"too short; write|has to be whole|No such option|Missing (option|argument)")
"""Matches messages that refuse a command or a study because the test itself wrote it wrongly, so that no attack took
place."""


@dataclass(frozen=True)
class Ended:
    """The exit status of a command and all that it printed."""

    status: int
    output: str


@dataclass(frozen=True)
class Trap:
    """An attack: carries itself out, and yields a sentence for each way in which it worked."""

    what: str
    spring: Callable[[Ground], Iterator[str]]


@dataclass(frozen=True)
class Ground:
    """Directories of both accounts, commands of the victim, and real servers by their major version."""

    campaign: Campaign
    commands: Commands
    clusters: Callable[[int], Cluster]
    root: Path
    """A directory of the victim's that everybody may enter; it holds all others."""

    @classmethod
    def make(cls, campaign: Campaign, commands: Commands, clusters: Callable[[int], Cluster], root: Path) -> Ground:
        """Makes the directories of both accounts."""
        ground = cls(campaign, commands, clusters, root)
        root.mkdir(mode=0o755)
        ground.marks.mkdir()
        ground.marks.chmod(0o1777)
        ground.victim.mkdir(mode=0o700)
        (ground.victim / "secret").write_text(SECRET)
        ground.enemy.mkdir(mode=0o755)
        ground.give(ground.enemy)
        return ground

    @property
    def marks(self) -> Path:
        """The directory in which an attack leaves a file if it worked; every account may write there."""
        return self.root / "marks"

    @property
    def mark(self) -> Path:
        """The file that the attack in progress leaves if it works."""
        return self.marks / "sprung"

    @property
    def victim(self) -> Path:
        """A directory that the victim alone may enter."""
        return self.root / "victim"

    @property
    def enemy(self) -> Path:
        """The directory of the account that attacks."""
        return self.root / "enemy"

    @property
    def work(self) -> Path:
        """The directory of the attack in progress, the current one of its commands."""
        return self.root / "work"

    @staticmethod
    def give(path: Path) -> None:
        """Give a file or a tree to the account that attacks."""
        account = pwd.getpwnam(ENEMY)
        for each in (path, *path.rglob("*")):
            os.chown(each, account.pw_uid, account.pw_gid, follow_symlinks=False)

    def program(self, path: Path) -> Path:
        """Write a program that leaves the mark."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nid > {self.mark}\ncat\n")
        path.chmod(0o755)
        return path

    def pgtrial(self, *words: object, cwd: Path | None = None, program: Path | None = None, **variables: str) -> Ended:
        """Run a command of the victim's to its end; a hang ends it with the status of a kill.

        `program`: what is run in place of a lab that is forked from one that has imported everything.
        """
        kept = (name for name in os.environ if name != "PYTHONPATH" and not name.startswith("GIT_"))
        environment = {name: os.environ[name] for name in kept}
        environment |= {"PGPASSWORD": SECRET, "COLUMNS": "200", **variables}
        command = [str(program or self.commands.folder / "pgtrial"), *map(str, words)]
        try:
            done = subprocess.run(
                command,
                cwd=cwd or self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return Ended(-9, "")
        return Ended(done.returncode, done.stdout + done.stderr)

    def failures(self, ended: Ended) -> Iterator[str]:
        """Yields the failures of a command that are defects whatever its input is."""
        if ended.status == -9:
            yield f"the command did not end within {_PATIENCE_S:.0f} s"
        for word in ("Traceback", "fault of pgtrial"):
            if word in ended.output:
                yield f"the command ended with a traceback: {ended.output[-400:]}"
        if _WRONG.search(ended.output):
            yield f"the command is wrong by itself, so that this attack shows nothing: {ended.output[-200:]}"
        if SECRET in ended.output:
            yield "the command printed the secret"
        if "\x1b" in ended.output:
            yield "the command sent the terminal a sequence of the attacker's"

    def state(self) -> Mapping[str, object]:
        """Returns the victim's files, with owner, mode and content."""
        seen = {}
        for path in (self.victim, *self.victim.rglob("*")):
            found = path.lstat()
            seen[str(path)] = (found.st_uid, found.st_mode, path.read_bytes() if path.is_file() else b"")
        return seen

    def spring(self, trap: Trap, attack: Attack) -> None:
        """Carries out one attack; records a defect for each way in which it worked."""
        before = self.state()
        self.work.mkdir()
        worked = []
        try:
            worked += trap.spring(self)
        except (AssertionError, OSError, subprocess.SubprocessError, psycopg.Error) as error:
            worked.append(f"it could not be carried out: {error!r}")
        sprung = [path.name for path in self.marks.iterdir()]
        for name in sprung:
            (self.marks / name).unlink()
        if sprung:
            worked.append("what the attacker wrote was run")
        if self.state() != before:
            worked.append("files of the victim's were changed")
        for shown in self.showing(SECRET):
            worked.append(f"{shown.relative_to(self.root)} shows the secret")
        for sentence in worked:
            attack.defect(f"{trap.what}: {sentence}")
        shutil.rmtree(self.work, ignore_errors=True)
        attack.done()

    def showing(self, secret: str) -> list[Path]:
        """Returns the files of the attack's directory that hold a text."""
        found = []
        for path in self.work.rglob("*"):
            with suppress(OSError):
                if path.is_file() and not path.is_symlink() and path.stat().st_size < _MOST_BYTES:
                    found += [path] if secret.encode() in path.read_bytes() else []
        return found


def by_command(what: str, make: Callable[[Ground], Iterator[tuple[object, ...]]]) -> Trap:
    """Returns an attack whose commands are the victim's: `make` sets the trap and yields the words of each command."""

    def spring(ground: Ground) -> Iterator[str]:
        for words in make(ground):
            yield from ground.failures(ground.pgtrial(*words))

    return Trap(what, spring)
