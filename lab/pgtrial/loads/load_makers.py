"""Describes the loads and the data that a study needs (`LoadOrder`, `DataOrder`), and makes them with one engine on
this machine (`LoadMaker`). A fleet is another `LoadMaker`."""

from __future__ import annotations

import collections
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.loads.engine import AT_A_WORD, PAUSE, EngineRun, FrontEnd, load_command
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.process import TAIL_LINES, begun, last_words, lines_of, lua_environment
from pgtrial.loads.target import KEEPALIVES, Target
from pgtrial.machines.cpus import parse_numbers, running_on, usable_cpus
from pgtrial.machines.interrupt import held_off
from pgtrial.machines.machine import LOCAL
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, StudyError

_UNANSWERED_MS = 300_000
"""The value of tcp_user_timeout, in milliseconds: how long rows that were sent may remain unacknowledged. It is long,
because a server may stop reading for a while when its disk is slow."""

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Each:
    """The number of engines that make a load, and the number of CPUs for the threads of each engine.

    The defaults are for one engine on the machine of the server: it gets half of that machine's CPUs, since the server
    needs the other half.
    """

    engines: int = 1
    cpus: int = max(1, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True)
class LoadOrder:
    """The description of a load that a LoadMaker is to make. `options` returns the options of the engine's front end
    for the whole load, as a person would write them on the command line.

    If several engines share the load, each gets a further option that names its share.
    """

    front_end: FrontEnd
    options: Callable[[Each], Sequence[str]]
    target: Target
    events_file: Path
    most_parts: int = 1
    """The largest number of engines that can share the load."""
    folder: Path | None = None
    """The folder with the user's files for the load: a script with the modules that it requires, or the files of a
    pack. None for built-in workloads."""
    cpus: str | None = None
    """The CPUs on which an engine may run; None for all of them."""
    inbox: Inbox | None = None
    """The queue in which the load's events arrive, together with those of loads that run at the same time."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the engine: the server's address with its password, and the paths of Lua
        modules."""
        lua = lua_environment(self.folder) if self.folder else {}
        return {**self.target.environment(), **lua}

    def command(self, engine: Each) -> list[str]:
        """Returns the arguments with which an engine is started for this load."""
        return load_command(self.front_end, self.options(engine), self.variables)


@dataclass(frozen=True)
class DataOrder:
    """A command of the engine that makes data, and that ends as soon as the data is complete."""

    what: str
    """The phrase for the command in messages, such as `loading the tables at scale 10`."""
    command: Sequence[str]
    """The arguments of the engine, beginning with the name of the front end, such as `pgbench`. If several engines
    share the command, the option `--shard` for each engine is inserted after this name."""
    env: Mapping[str, str] = field(repr=False)
    """The PG* variables of the server, with its password, and all other variables that the engine needs."""
    most_parts: int = 1
    """The largest number of engines that can share the command."""
    folder: Path | None = None
    """The folder with the files to which the command and the environment refer; None if they refer to none."""


class LoadMaker:
    """Makes the loads and the data of a study with one engine on this machine. A fleet overrides the methods."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the machines that make loads; empty if this machine alone makes them."""
        return ()

    def check_cpus(self, cpus: str) -> None:
        """Checks that engines can run on these CPUs. Raises StudyError if they cannot."""
        try:
            parse_numbers(cpus, usable_cpus(LOCAL))
        except ValueError as error:
            raise StudyError(f"{marks.key('load', 'cpus')}: {error}") from None

    def check_reaches(self, arm: str, targets: Sequence[Target] | None) -> None:
        """Checks that the machines that make loads can connect to the servers of an arm. Here this does nothing,
        because this machine has already connected to them.

        `targets` is None if pgtrial will start the server itself on this machine. Raises StudyError if the machines can
        never connect to a server, and ArmError if one of them does not reach its address now.
        """

    def check_slices(self, slice_s: float) -> None:
        """Checks that the clocks of the engines agree well enough for slices of this length. Here this does nothing,
        because engines on this machine have one clock.

        Raises StudyError if the clocks do not agree well enough.
        """

    def ready(self, report: OnLine) -> list[str]:
        """Prepares the machines for the next load. Returns notes (sentences for the report) that are stored with its
        trial. Raises ArmError if no load is possible."""
        return []

    @contextmanager
    def started(self, order: LoadOrder) -> Iterator[EngineRun]:
        """Runs a load for the duration of the context. Raises StudyError if the engine cannot be started. A fleet also
        raises TrialError if a machine cannot start its engine, and ArmError if a machine cannot reach the server."""
        command = order.command(Each())
        fed = AT_A_WORD in command or PAUSE in command
        load = EngineRun(command, order.variables, events_file=order.events_file, inbox=order.inbox, fed=fed)
        with ExitStack() as stack:
            with running_on(order.cpus):
                run = stack.enter_context(load)
            yield run

    @property
    def engines(self) -> int:
        """The number of engines that make data together, if the command that makes the data can be shared."""
        return 1

    def make(self, order: DataOrder, on_line: OnLine | None = None) -> None:
        """Makes data, and calls `on_line` with each line in which the engine reports progress. Raises ArmError if the
        engine fails."""
        tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        with ExitStack() as stack:
            with held_off():
                process = stack.enter_context(begun(order.command, order.env, stderr=subprocess.STDOUT))
                stack.callback(process.kill)
            for line in lines_of(process.stdout):
                tail.append(line)
                if on_line is not None and is_progress(line):
                    on_line(line)
            process.wait()
        if process.returncode != 0:
            raise ArmError(f"{order.what} failed: {last_words(tail, process.returncode)}")


_LEVELS = ("NOTICE", "INFO", "LOG", "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5")
_MESSAGES = tuple(f"{word}:" for word in (*_LEVELS, "DETAIL", "HINT", "CONTEXT", "LOCATION"))
"""The prefixes of messages of the server that report no error. The engine prints those messages of the server that the
setting client_min_messages lets through."""

ENGINE_HERE = LoadMaker()
"""The default maker of loads and data: one engine on this machine."""


def is_progress(line: str) -> bool:
    """True if a line that an engine printed reports its progress. False for messages of the server, such as notices."""
    return not line.startswith(_MESSAGES)


def noticing(env: Mapping[str, str]) -> Mapping[str, str]:
    """Returns PG* variables for the same server, with parameters that end a session some minutes after the server has
    stopped answering.

    A command that makes data has no deadline, so without these parameters it would wait for ever for a server that does
    not answer. libpq has no environment variables for such parameters, but accepts a connection string in place of the
    database's name.
    """
    host, database = env.get("PGHOST", "/"), env.get("PGDATABASE")
    if database is None or host.startswith(("/", "@")):
        return env
    parameters = {**KEEPALIVES, "tcp_user_timeout": _UNANSWERED_MS}
    notices_silence = " ".join(f"{name}={value}" for name, value in parameters.items())
    quoted = database.replace("\\", "\\\\").replace("'", "\\'")
    return {**env, "PGDATABASE": f"dbname='{quoted}' {notices_silence}"}
