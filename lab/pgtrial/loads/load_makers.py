"""The loads and data that a study asks for, and their makers: one engine on this machine, or a fleet."""

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
"""How long sent rows may remain unacknowledged by the server, milliseconds (tcp_user_timeout): a server may stop
reading for a while when its disk is slow."""

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Each:
    """The engines of a load: their number, and the number of CPUs for the threads of each.

    By default one engine shares this machine with the server, which needs half of the CPUs.
    """

    engines: int = 1
    cpus: int = max(1, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True)
class LoadOrder:
    """One load. `options` returns those of the front end, as a person would write them.

    Engines that share the load add which part is theirs.
    """

    front_end: FrontEnd
    options: Callable[[Each], Sequence[str]]
    target: Target
    events_file: Path
    most_parts: int = 1
    """The number of engines that can share the load."""
    folder: Path | None = None
    """The folder with the files of a workload of the study's own: a script and what it requires, or those of a pack."""
    cpus: str | None = None
    """The CPUs on which an engine may run; None for all of them."""
    inbox: Inbox | None = None
    """The queue in which the load's events arrive, together with those of loads that run at the same time."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment that leads to the server, with its password, and to the modules of a script."""
        lua = lua_environment(self.folder) if self.folder else {}
        return {**self.target.environment(), **lua}

    def command(self, engine: Each) -> list[str]:
        """Returns the words after the engine's path."""
        return load_command(self.front_end, self.options(engine), self.variables)


@dataclass(frozen=True)
class DataOrder:
    """A command of the engine that makes data, which ends when the data is there."""

    what: str
    """The words for the order in messages, such as `loading the tables at scale 10`."""
    command: Sequence[str]
    """The words after the engine's path, the front end first. Engines that share the order get `--shard` after that."""
    env: Mapping[str, str] = field(repr=False)
    """PG* values of the server, with its password, and what else the engine has to find in its environment."""
    most_parts: int = 1
    """The largest number of engines that can share the order."""
    folder: Path | None = None
    """The folder with the files to which the command and the environment refer."""


class LoadMaker:
    """The maker of a study's loads and its data: one engine on this machine, unless a fleet makes them."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses from which loads come; empty if they come from this machine alone."""
        return ()

    def check_cpus(self, cpus: str) -> None:
        """Finds out whether engines can have these CPUs. Raises StudyError if not."""
        try:
            parse_numbers(cpus, usable_cpus(LOCAL))
        except ValueError as error:
            raise StudyError(f"{marks.key('load', 'cpus')}: {error}") from None

    def check_reaches(self, arm: str, targets: Sequence[Target] | None) -> None:
        """Finds out whether an arm's servers can be reached from where loads are made; this machine has reached them.

        `targets` is None if the server will be one of the lab's own, on this machine. Raises StudyError and ArmError.
        """

    def check_slices(self, slice_s: float) -> None:
        """Finds out whether engines can keep to slices of this length together; on this machine all have one clock.

        Raises StudyError.
        """

    def ready(self, report: OnLine) -> list[str]:
        """Prepares the next load. Returns notes for its trial. Raises ArmError if no load is possible."""
        return []

    @contextmanager
    def started(self, order: LoadOrder) -> Iterator[EngineRun]:
        """Runs a load from its start to its end. Raises TrialError, and ArmError for what no repetition mends."""
        command = order.command(Each())
        fed = AT_A_WORD in command or PAUSE in command
        load = EngineRun(command, order.variables, events_file=order.events_file, inbox=order.inbox, fed=fed)
        with ExitStack() as stack:
            with running_on(order.cpus):
                run = stack.enter_context(load)
            yield run

    @property
    def engines(self) -> int:
        """The number of engines that share what can be shared."""
        return 1

    def make(self, order: DataOrder, on_line: OnLine | None = None) -> None:
        """Makes data, and passes each line on its progress to `on_line`. Raises ArmError."""
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
"""The beginnings of messages of a server that report no trouble; client_min_messages may ask for all of them."""

ENGINE_HERE = LoadMaker()
"""The maker of loads and data where no other is named."""


def is_progress(line: str) -> bool:
    """True if a line of an engine reports progress, and is no message of the server, such as a notice."""
    return not line.startswith(_MESSAGES)


def noticing(env: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the variables for the same server, with sessions that end some minutes after it has fallen silent.

    Without this, an order would wait for ever for a server that is silent, since it has no deadline. libpq has no
    variables for such parameters, but takes a connection string in place of a database's name.
    """
    host, database = env.get("PGHOST", "/"), env.get("PGDATABASE")
    if database is None or host.startswith(("/", "@")):
        return env
    parameters = {**KEEPALIVES, "tcp_user_timeout": _UNANSWERED_MS}
    notices_silence = " ".join(f"{name}={value}" for name, value in parameters.items())
    quoted = database.replace("\\", "\\\\").replace("'", "\\'")
    return {**env, "PGDATABASE": f"dbname='{quoted}' {notices_silence}"}
