"""Data made by all machines of a fleet at once, each by an engine for its shard; packing an engine for a machine."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgtrial.loads.data_makers import DataOrder, is_told
from pgtrial.loads.engine import TAIL_LINES, last_words
from pgtrial.loads.fleet.members import ANSWER_S, MachineLost, Member
from pgtrial.machines.cpus import cpu_numbers
from pgtrial.model.errors import ArmError

_LINES_S = 2.0
_END_S = 5.0


def make_shared(members: Sequence[Member], order: DataOrder, on_line: Callable[[str], None] | None) -> None:
    """Have each of the machines make a part; lines come with the machine's name where there are several.

    The first machine that fails or is lost ends it for all. Raises ArmError with its reason.
    """
    _Shared(members, order, on_line).make()


class _Shared:
    def __init__(self, members: Sequence[Member], order: DataOrder, on_line: Callable[[str], None] | None):
        self._members = members
        self._order = order
        self._on_line = on_line
        self._packed: Packed = pack(order.command, dict(order.env), order.folder)
        self._one_at_a_time = threading.Lock()
        self._over = threading.Event()
        """Whatever is still made is of no use."""
        self._complaints: list[str] = []
        """With the machines' names, in the order of time."""

    def make(self) -> None:
        with ThreadPoolExecutor(len(self._members)) as workers:
            try:
                for _ in workers.map(self._part, range(len(self._members))):
                    pass
            except BaseException:
                self._over.set()
                raise
        if self._complaints:
            raise ArmError(f"{self._order.what} failed on the machine {self._complaints[0]}")

    def _part(self, index: int) -> None:
        """One machine's part, in a thread of its own."""
        member = self._members[index]
        try:
            complaint = self._carried_out(member, f"--shard={index + 1}/{len(self._members)}")
        except MachineLost as lost:
            complaint = f"the machine was lost: {lost}"
        except BaseException:
            self._over.set()
            member.call("interrupt")
            # whoever begins again finds the machine free
            with suppress(MachineLost):
                member.ask("end", _END_S, patience_s=_END_S + ANSWER_S)
            raise
        if complaint is not None:
            with self._one_at_a_time:
                self._complaints.append(f"{member.name}: {complaint}")
            self._over.set()

    def _carried_out(self, member: Member, shard: str) -> str | None:
        """What is wrong with a part once its engine has ended; None if nothing is. Raises MachineLost."""
        complaint = member.ask("begin", self._packed.order(shard, one_output=True))
        if complaint is not None:
            return str(complaint)
        tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        last = False
        while not last:
            if self._over.is_set():
                member.call("interrupt")
            lines, last = member.ask("lines", _LINES_S, patience_s=_LINES_S + ANSWER_S)
            for line in [line.strip() for line in lines if line.strip()]:
                tail.append(line)
                self._hear(member, line)
        ended = member.ask("end", _END_S, patience_s=_END_S + ANSWER_S)
        if ended["status"] == 0 or self._over.is_set():
            return None
        return last_words(tail, ended["status"])

    def _hear(self, member: Member, line: str) -> None:
        if self._on_line is None or not is_told(line):
            return
        with self._one_at_a_time:
            self._on_line(f"{member.name}: {line}" if len(self._members) > 1 else line)


HERE = "."
"""The folder that the files lie in: the engine works there, so that it has the same name on all machines."""

_CERTIFICATES = ("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL")


@dataclass(frozen=True)
class Packed:
    """Arguments, variables and files of an engine; the first two speak of the files as lying in HERE."""

    arguments: Sequence[str]
    environment: dict[str, str] = field(repr=False)
    files: dict[str, bytes] = field(repr=False)
    cpus: Sequence[int] | None = None

    def order(self, *more: str, one_output: bool = False) -> dict[str, Any]:
        """As an agent takes it, with further arguments behind the front end's name."""
        front_end, *rest = self.arguments
        return {
            "arguments": [front_end, *more, *rest],
            "environment": self.environment,
            "files": self.files,
            "cpus": self.cpus,
            "one_output": one_output,
        }


def pack(arguments: Sequence[str], variables: dict[str, str], folder: Path | None, cpus: str | None = None) -> Packed:
    """Take along the files of a folder that arguments and variables speak of, and the certificates."""
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
    return Packed(arguments, variables, files, sorted(cpu_numbers(cpus)) if cpus is not None else None)
