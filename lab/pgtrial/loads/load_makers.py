"""A load as a trial asks for it, and who makes it: one engine on this machine, or a fleet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgtrial.loads.data.sysbench_tables import lua_environment
from pgtrial.loads.data_makers import DataMaker, OnLine
from pgtrial.loads.engine import AT_A_WORD, EngineRun, FrontEnd, Inbox, load_command
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import parse_cpus, running_on, usable_cpus
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError


@dataclass(frozen=True)
class Each:
    """What each engine of a load has: how many there are, and how many threads of its own are worth while.

    By default it shares this machine with the server, which needs half of the CPUs.
    """

    engines: int = 1
    cpus: int = max(1, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True)
class LoadOrder:
    """One load. `options` gives the front end's, as a person would write them; engines that share it say their part."""

    front_end: FrontEnd
    options: Callable[[Each], Sequence[str]]
    target: Target
    events_file: Path
    most_parts: int = 1
    """How many engines can share it."""
    folder: Path | None = None
    """Where the files of a workload of the study's own are: a script and what it requires, or those of a pack."""
    cpus: str | None = None
    """CPUs that an engine may run on; None: all."""
    inbox: Inbox | None = None
    """Where its events arrive, together with those of loads that run at the same time."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment that leads to the server, with its password, and to a script's modules."""
        lua = lua_environment(self.folder) if self.folder else {}
        return {**self.target.environment(), **lua}

    def command(self, each: Each) -> list[str]:
        """The words after the engine's path."""
        return load_command(self.front_end, self.options(each), self.variables)


class LoadMaker(DataMaker):
    """Who makes the loads of a study, and its data: one engine on this machine, unless a fleet does."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where loads come from, where that is not this machine alone."""
        return ()

    def check_cpus(self, cpus: str) -> None:
        """Find out whether engines can have these CPUs. Raises StudyError."""
        try:
            parse_cpus(cpus, usable_cpus(LOCAL))
        except ValueError as error:
            raise StudyError(f"[load] cpus: {error}") from None

    def check_reaches(self, arm: str, targets: Sequence[Target] | None) -> None:
        """Find out whether an arm's servers can be reached from where loads are made; this machine has reached them.

        None: it will be a server of the lab's own, on this machine. Raises StudyError and ArmError.
        """

    def check_slices(self, slice_s: float) -> None:
        """Find out whether engines can keep to slices of this length together; here all have one clock.

        Raises StudyError.
        """

    def ready(self, report: OnLine) -> list[str]:
        """Be ready for the next load; what a reader of its trial should know. Raises ArmError when none is possible."""
        return []

    @contextmanager
    def started(self, order: LoadOrder) -> Iterator[EngineRun]:
        """A load from its start to its end. Raises TrialError, and ArmError for what no repetition mends."""
        command = order.command(Each())
        load = EngineRun(
            command, order.variables, events_file=order.events_file, inbox=order.inbox, fed=AT_A_WORD in command
        )
        with ExitStack() as stack:
            with running_on(order.cpus):
                run = stack.enter_context(load)
            yield run
