"""Runs one engine on a machine of the fleet, and packs the files that have to be sent there with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from pgtrial.loads.fleet.members import ANSWER_S, Member
from pgtrial.machines.cpus import listed_numbers

HERE = "."
"""The working directory of the engine, which contains the files. It is written as ".", so that it has the same name on
all machines."""

_CERTIFICATES = ("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL")

_LINES_S = 2.0
"""The time, in seconds, for which an agent waits for the engine's next line before it answers that there is none."""

END_S = 5.0
"""The time, in seconds, that an engine has to end by itself after its load is over or it was asked to stop."""


@dataclass(frozen=True)
class Packed:
    """The arguments, environment variables and files of an engine. Arguments and variables name the files by paths
    below HERE, the working directory of the engine on the machine."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)
    cpus: Sequence[int] | None = None

    def order(self, *more: str, one_output: bool = False) -> dict[str, Any]:
        """Returns a dictionary with all that the machine needs to start the engine, in the form that `Agent.begin`
        expects, with the arguments `more` behind the name of the front end."""
        front_end, *rest = self.arguments
        return {
            "arguments": [front_end, *more, *rest],
            "environment": dict(self.environment),
            "files": dict(self.files),
            "cpus": self.cpus,
            "one_output": one_output,
        }


def pack(
    arguments: Sequence[str], variables: Mapping[str, str], folder: Path | None, cpus: str | None = None
) -> Packed:
    """Packs everything that an engine needs on another machine: its arguments and variables, the files in `folder`, and
    certificates that the variables name. Paths of this machine are replaced by paths below HERE, the working directory
    of the engine on the other machine."""
    files: dict[str, bytes] = {}
    if folder is not None:
        files |= {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        arguments = [argument.replace(str(folder), HERE) for argument in arguments]
        variables = {name: value.replace(str(folder), HERE) for name, value in variables.items()}
    for name in _CERTIFICATES:
        path = Path(variables.get(name, ""))
        if path.is_file():
            files[name] = path.read_bytes()
            variables = {**variables, name: f"{HERE}/{name}"}
    return Packed(arguments, variables, files, sorted(listed_numbers(cpus)) if cpus is not None else None)


@dataclass(frozen=True)
class RemoteEngine:
    """One engine on a machine of the fleet; the machine may run several engines at once. Methods that wait for an
    answer raise MachineLost if none comes in time."""

    member: Member
    name: str = field(default_factory=lambda: uuid4().hex)
    """The name by which the agent refers to this engine."""

    def begin(self, order: Mapping[str, Any]) -> Future[Any]:
        """Starts the engine. The future gets the reason if the engine cannot be started, and None once it is
        started."""
        return self.member.call("begin", self.name, order)

    def go(self, at: float) -> None:
        """Sends the engine its start time, in Unix seconds by the clock of its machine."""
        self.member.call("go", self.name, at)

    def lines(self) -> Iterator[list[str]]:
        """Yields the engine's lines in batches, some of them empty, until its output ends."""
        last = False
        while not last:
            lines, last = self.member.ask("lines", self.name, _LINES_S, patience_s=_LINES_S + ANSWER_S)
            yield lines

    def interrupt(self) -> None:
        """Asks the engine to stop. The engine still reports what it has measured."""
        self.member.call("interrupt", self.name)

    def end(self) -> tuple[int | None, list[str]]:
        """Waits until the engine has ended, and kills it after END_S seconds.

        Returns its exit status, negative for a signal, and its last messages.
        """
        ended = self.member.ask("end", self.name, END_S, patience_s=END_S + ANSWER_S)
        return ended["status"], ended["messages"]

    def end_now(self) -> Future[Any]:
        """Kills the engine. The future gets its result when the engine has ended."""
        return self.member.call("end", self.name, 0.0)
