"""What tests of other things need not pay for: a real probe of flushes and a digest of the server for each arm, initdb
for each study, clusters with much WAL and two databases that nobody opens, tables that are read into the buffers
before each trial, and canaries of a second.

pg_test_fsync takes seconds of processor time where flushes are fast, the digest of a server's program 40 ms each time
that facts are collected, and initdb 400 ms. A template of a small scale consists mostly of WAL, and each trial copies
it: 1,000 files, of which 600 are template0 and template1. To read the tables takes a sixth of what the smallest trial
does. A study begins with six canaries.

And what they must not take from the tests beside them: huge pages.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pgtrial.conduct import run_trial
from pgtrial.evidence.collect import flush
from pgtrial.evidence.collect import server as server_facts
from pgtrial.evidence.collect.flush import Rates
from pgtrial.evidence.observe import canary
from pgtrial.loads.data.data import SEGMENT_MB, Data
from pgtrial.loads.target import Session
from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.model.study.servers import Given, Server
from pgtrial.servers import made
from pgtrial.servers.cluster import LAB_SETTINGS
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.postmaster import DATABASE
from pgtrial.servers.room import Room, copy_directory

INITIALISED = "INITIALISED_CLUSTERS"
"""Variable with the directory of clusters that the processes of a run of the tests share, and their labs."""

WAITING = {"commit_delay": "20000", "commit_siblings": "0"}
"""Each commit waits 20 ms, with fsync alone: how fast these servers are matters to no test, and a load that takes all
processors slows the tests beside it. A study's own value wins."""

CHEAPER = f"""
import atexit, gc, sys
atexit.register(gc.freeze)
sys.path.append({str(Path(__file__).parents[1])!r})
from tests.cheaper import LAB_SETTINGS, PATCHES, WAITING, spare_huge_pages
LAB_SETTINGS.update(WAITING)
spare_huge_pages()
for module, name, cheaper in PATCHES:
    setattr(module, name, cheaper)
"""
"""Python code by which a lab that is a process of its own has it cheaper. It ends without Python's last search
for garbage, which takes 0.2 s."""

_WITHOUT_TEMPLATES = """
UPDATE pg_database SET datistemplate = false;
DROP DATABASE template0;
DROP DATABASE template1;
"""
"""A statement each line, as a server without clients takes them."""

PROGRAM = server_facts._PROGRAM
_LISTED_PROGRAM = PROGRAM.partition("sha256sum")[0] + 'ls -lLi "$program" | sha256sum'
"""The shell script of facts, with a digest of what ls prints: it differs from program to program, too."""

_flush_rate = flush.flush_rate
_create_cluster = made.create_cluster
_warm_relations = run_trial.warm_relations
_known: dict[int, Rates] = {}


def flush_rate(machine: Machine, directory: Path, program: Path | None = None) -> Rates:
    """By dd; each volume of this machine is measured once."""
    if machine is not LOCAL:
        return _flush_rate(machine, directory)
    volume = directory.stat().st_dev
    if volume not in _known:
        _known[volume] = _flush_rate(machine, directory)
    return dict(_known[volume])


def prefilled_wal_mb(data: Data) -> int:
    """One file, whatever the data."""
    return SEGMENT_MB


def create_cluster(room: Room, server: ServerBinaries, data: Path, options: Sequence[str] = ()) -> None:
    """A copy of the cluster that was made first for this account with the server and the options."""
    shared = os.environ.get(INITIALISED)
    if room.machine is not LOCAL or shared is None or not os.access(shared, os.W_OK):
        _small_cluster(room, server, data, options)
        return
    kind = repr((str(server.bin), server.version, room.account, *options))
    first = Path(shared) / hashlib.sha256(kind.encode()).hexdigest()
    with first.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.exists():
            staged = first.with_suffix(".new")
            shutil.rmtree(staged, ignore_errors=True)  # of a lab that was killed
            _small_cluster(room, server, staged, options)
            staged.rename(first)
    copy_directory(room, first, data, flush=False)


def _small_cluster(room: Room, server: ServerBinaries, data: Path, options: Sequence[str]) -> None:
    """Files of WAL have 1 MB, where PostgreSQL can be told so; an arm's own options come later and win. The only
    database is the one that a lab uses."""
    of_one_mb = ("--wal-segsize=1",) if server.major >= 11 else ()
    _create_cluster(room, server, data, (*of_one_mb, *options))
    # pgtrial.conf, which postgresql.conf includes, is not there yet
    configuration = ("-c", f"config_file={data / 'postgresql.auto.conf'}")
    done = room.run([server.bin / "postgres", "--single", "-D", data, *configuration, DATABASE], _WITHOUT_TEMPLATES)
    assert done.status == 0, done.stderr


def warm_relations(session: Session, server: Server, data: Data) -> str | None:
    """Reads tables on given servers only: these may refuse it, and the trial then says so."""
    return _warm_relations(session, server, data) if isinstance(server, Given) else None


PATCHES = (
    (flush, "flush_rate", flush_rate),
    (server_facts, "_PROGRAM", _LISTED_PROGRAM),
    (made, "prefilled_wal_mb", prefilled_wal_mb),
    (made, "create_cluster", create_cluster),
    (run_trial, "warm_relations", warm_relations),
    (canary, "_HASHED_MIB", 16),
    (canary, "_FLUSH_S", 0.02),
    (canary, "_TRANSACTIONS", 2_000),
)


def spare_huge_pages() -> None:
    """A server whose arm asks for none takes none: a test beside it may have reserved them."""
    LAB_SETTINGS["huge_pages"] = "off"


@pytest.fixture(scope="package", autouse=True)
def cheaper() -> Iterator[None]:
    """A conftest.py that imports this has it for its folder."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, function in PATCHES:
            patch.setattr(module, name, function)
        for name, value in WAITING.items():
            patch.setitem(LAB_SETTINGS, name, value)
        yield
