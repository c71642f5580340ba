"""One engine on a machine of the fleet, from its start to its end, and what travels there with it."""

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
"""The folder of the files, in which the engine works, so that it has the same name on all machines."""

_CERTIFICATES = ("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL")

_LINES_S = 2.0
"""How long an agent waits for the next line before it answers that there is none, seconds."""

END_S = 5.0
"""The time limit for the end of an engine that has nothing more to do, seconds."""


@dataclass(frozen=True)
class Packed:
    """Arguments, variables and files of an engine; the first two refer to the files in HERE."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)
    cpus: Sequence[int] | None = None

    def order(self, *more: str, one_output: bool = False) -> dict[str, Any]:
        """Returns the order that an agent takes, with further arguments behind the front end's name."""
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
    """Packs the certificates, and the files of a folder to which arguments and variables refer."""
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
    """One engine of a member, which may have several at once. Where it waits for an answer, it raises MachineLost."""

    member: Member
    name: str = field(default_factory=lambda: uuid4().hex)
    """The name by which its agent knows the engine."""

    def begin(self, order: Mapping[str, Any]) -> Future[Any]:
        """Starts the engine. The answer is why that is not possible, or None."""
        return self.member.call("begin", self.name, order)

    def go(self, at: float) -> None:
        """Lets the engine begin at this instant, in Unix seconds by its machine's clock."""
        self.member.call("go", self.name, at)

    def lines(self) -> Iterator[list[str]]:
        """Yields the engine's lines in batches, some of them empty, until its output ends."""
        last = False
        while not last:
            lines, last = self.member.ask("lines", self.name, _LINES_S, patience_s=_LINES_S + ANSWER_S)
            yield lines

    def interrupt(self) -> None:
        """Asks the engine to stop; it still reports what it measured."""
        self.member.call("interrupt", self.name)

    def end(self) -> tuple[int | None, list[str]]:
        """Waits for the engine's end, which is forced after END_S.

        Returns the exit status, negative for a signal, and the last messages.
        """
        ended = self.member.ask("end", self.name, END_S, patience_s=END_S + ANSWER_S)
        return ended["status"], ended["messages"]

    def end_now(self) -> Future[Any]:
        """Ends the engine by force; the answer comes when it has ended."""
        return self.member.call("end", self.name, 0.0)
