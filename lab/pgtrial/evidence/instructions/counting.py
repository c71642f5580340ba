"""Counts the instructions that a server executes for transactions: runs the server under callgrind, valgrind's tool
that counts the instructions of each function of each process, and runs a load of one client.

A session costs instructions before its first transaction. So a load runs twice, with a number of transactions and with
three times as many, each in a session of its own, and the difference belongs to the transactions alone.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgtrial.evidence.instructions.callgrind import FormatError, Profile, read_profile
from pgtrial.loads.engine import FrontEnd
from pgtrial.loads.load_makers import ENGINE_HERE, LoadOrder
from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.model import marks
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.units import format_duration

_COUNTED = "PostgresMain"
"""The function that serves a session from its beginning to its end. Only its instructions are counted, and those of all
functions that it calls, since a session's process inherits the counts of the process that has made it."""

_NOT_COUNTED = ("secure_read", "pgstat_report_stat")
"""Functions within a session whose instructions depend on time: the session waits for its client, and writes its
statistics to shared memory at most once a second."""

SETTINGS = {
    # the log then tells the process of each session
    "log_connections": "on",
    "log_line_prefix": "%m [%p] ",
    "log_min_messages": "warning",
    # the plans stay the same, but each session executes all of its plan itself
    "max_parallel_workers": "0",
    "huge_pages": "off",
}
"""The settings of a server whose instructions are counted."""

USUAL_SETTINGS = {"autovacuum": "off"}
"""The settings of such a server unless the arm sets them: a vacuum at a moment that depends on chance would change what
the transactions find."""

_PAUSED = "SELECT pid FROM pg_stat_activity WHERE backend_type IN ('walwriter', 'background writer')"
"""The query for the background processes that pause. They do a part of the sessions' work, such as preparing buffers
for the WAL, at moments that depend on chance."""

_SESSION = re.compile(rb"\[(\d+)\] LOG:  connection received")
_END = re.compile(rb"^totals:.*\n", re.MULTILINE)

_WRITTEN_S = 120.0
"""The time in seconds within which callgrind must have written the counts of a session that has ended."""
_POLL_S = 0.1

LIMIT_S = 900.0
"""The longest time, in seconds, that a load may take. Under valgrind a server executes some 50 million instructions a
second."""


def valgrind_version() -> str:
    """Returns the name of valgrind with its version, such as `valgrind-3.19.0`. Raises StudyError if valgrind is not
    installed."""
    try:
        done = LOCAL.looked(["valgrind", "--version"])
    except HostError as error:
        raise StudyError(f"{marks.key('load', 'instructions')}: {error}, or remove the key") from None
    if done.status != 0:
        words = " ".join(done.stderr.split()) or f"it exits with status {done.status}"
        raise StudyError(f"{marks.key('load', 'instructions')}: valgrind does not run on this machine: {words}")
    return done.stdout.strip()


def command(folder: Path) -> tuple[str, ...]:
    """Returns the words in front of the command of a server whose instructions are counted. callgrind writes the counts
    of each process into a file of `folder`, whose name is the number of the process."""
    toggles = (f"--toggle-collect={function}" for function in (_COUNTED, *_NOT_COUNTED))
    return (
        "env",
        # otherwise the first call of each function of a library would search for it
        "LD_BIND_NOW=1",
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        "--vgdb=no",
        "--dump-line=no",
        *toggles,
        f"--callgrind-out-file={folder}/%p",
    )


@contextmanager
def paused(target: Target, account: str | None) -> Iterator[None]:
    """Stops background processes of a server within the context. The signals are sent by the server's account, which
    can reach its own processes only. Raises psycopg.Error."""
    with target.connect() as session:
        processes = [str(process) for (process,) in session.execute(_PAUSED).fetchall()]
    LOCAL.run(["sh", "-c", 'kill -STOP "$@"', "sh", *processes], user=account)
    try:
        yield
    finally:
        LOCAL.run(["sh", "-c", 'kill -CONT "$@"', "sh", *processes], user=account)


@dataclass(frozen=True)
class CountedServer:
    """A running server whose instructions are counted, and the load that runs on it."""

    target: Target
    log: Path
    """The log of the server."""
    folder: Path
    """The folder in which callgrind writes its files."""
    account: str | None
    """The account as which the server runs; None for that of the lab."""
    front_end: FrontEnd
    load_folder: Path | None
    """The folder with the user's files for the load; None for built-in workloads."""

    def run(self, options: Sequence[str], transactions: int) -> Profile:
        """Runs a load of this number of transactions, and returns the instructions that its sessions have executed.
        Raises TrialError if the load fails.

        The load begins just after a checkpoint, so that it writes as many full pages to the WAL each time.
        """
        with self.target.connect() as session:
            session.execute("CHECKPOINT")
        begin = self.log.stat().st_size
        self._run_load(options, transactions)
        sessions = _SESSION.findall(LOCAL.read_from(self.log, begin))
        counted = Profile()
        for process in sessions:
            counted += self._profile(int(process))
        if not counted.total:
            raise TrialError(
                f"callgrind has not found the function {_COUNTED} in the server, as in a program that was stripped of "
                "all names"
            )
        return counted

    def _run_load(self, options: Sequence[str], transactions: int) -> None:
        order = LoadOrder(self.front_end, lambda _: options, self.target, Path(os.devnull), folder=self.load_folder)
        committed, message = 0, None
        with ENGINE_HERE.started(order) as run:
            for event in run.events(time.monotonic() + LIMIT_S):
                if event["event"] == "error" and message is None:
                    message = event.get("message")
                if event["event"] == "done" and (measured := event.get("measure")):
                    committed = measured["transactions"]
            status = run.finish()
            if status != 0 or committed < transactions:
                why = " ".join((message or run.last_words()).split()) or f"the engine ended with status {status}"
                raise TrialError(f"{committed} of {transactions} transactions were committed: {why}")

    def _profile(self, process: int) -> Profile:
        """Returns the counts of a process, once it has ended and callgrind has written them."""
        file, deadline = self.folder / str(process), time.monotonic() + _WRITTEN_S
        while not _END.search(content := LOCAL.read_from(file, 0, self.account)):
            if time.monotonic() > deadline:
                raise TrialError(
                    f"callgrind has not written the counts of a session within {format_duration(_WRITTEN_S)} of its end"
                )
            time.sleep(_POLL_S)
        try:
            return read_profile(content.decode(errors="replace").splitlines())
        except FormatError as error:
            raise TrialError(f"a file of callgrind cannot be read: {error}") from None
