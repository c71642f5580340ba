"""The machines of a fleet as the rest of the lab sees them: named, asked, and perhaps lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from pgtrial.loads.fleet import agent

ANSWER_S = 10.0
"""How long an answer may take that costs no work; a machine that takes longer is lost."""


class MachineLost(Exception):
    """A machine, or the agent on it, is not there any more: why, in a few words."""


class Caller(Protocol):
    """How a machine's agent is called: the answer comes later, or MachineLost does."""

    def __call__(self, method: str, *arguments: Any) -> Future[Any]:
        """Call a method of pgtrial.loads.fleet.agent.Agent."""
        ...


@dataclass(eq=False)
class Member:
    """One machine of a fleet. `place` is its number among those asked for, from 0."""

    place: int
    address: str
    host: str
    kind: str
    identity: str
    kernel: str
    cpus: int
    call: Caller = field(repr=False)
    name: str = ""
    lost: str | None = None
    """Why it is not there any more."""

    @property
    def with_lab(self) -> bool:
        """Whether it takes the CPUs of the lab's machine: it is that, or a container there."""
        return self.identity == agent.identity() or bool(self.kernel and self.kernel == agent.kernel())

    def ask(self, method: str, *arguments: Any, patience_s: float = ANSWER_S) -> Any:
        """The answer of its agent. Raises MachineLost, and knows it from then on."""
        return self.answer(self.call(method, *arguments), patience_s)

    def answer(self, coming: Future[Any], patience_s: float = ANSWER_S) -> Any:
        """An answer that is under way. Raises MachineLost, and knows it from then on."""
        try:
            return coming.result(patience_s)
        except Late:
            self.lost = f"it has not answered for {patience_s:.0f}s"
        except MachineLost as lost:
            self.lost = str(lost)
        raise MachineLost(self.lost)


class Hiring(Protocol):
    """Where machines come from."""

    def hire(self, places: Sequence[int], patience_s: float) -> list[Member]:
        """The machines of these places, each with a new agent. Raises MachineLost for one that does not come."""
        ...

    def share(self, content: bytes) -> Any:
        """What stands for the content in calls, so that it travels to each machine once."""
        ...

    def dismiss(self, member: Member) -> None:
        """End the agent by force."""
        ...


def name_all(members: Iterable[Member]) -> None:
    """Call each by its host's name; those that share one are numbered: `node-1`, `node-2`."""
    members = list(members)
    hosts = Counter(member.host for member in members)
    taken = {member.name for member in members if member.name}
    for member in members:
        if member.name:
            continue
        names = (f"{member.host}-{number}" for number in count(1))
        plain = member.host.replace(",", "_")
        member.name = (
            plain
            if hosts[member.host] == 1 and plain not in taken
            else next(name for name in names if name not in taken)
        )
        taken.add(member.name)
