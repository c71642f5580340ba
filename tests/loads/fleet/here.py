"""Machines of a fleet that are all this one, and need no Ray: agents in this process, called from threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pgtrial.loads.fleet.agent import Agent
from pgtrial.loads.fleet.members import MachineLost, Member


class Here:
    """Hires as many machines as there are hosts.

    Those that are `gone` are known to be, those that are `silent` do not answer, and `free` ones replace them.
    """

    def __init__(self, *hosts: str, free: Sequence[str] = ()):
        self.hosts = dict(enumerate(hosts))
        self.free = list(free)
        self.gone: set[str] = set()
        self.silent: set[str] = set()
        self.agents: dict[str, Any] = {}
        self.dismissed: list[str] = []
        self._threads = ThreadPoolExecutor(4 * len(hosts))

    def hire(self, places: Sequence[int], patience_s: float) -> list[Member]:
        return [self._member(place, patience_s) for place in places]

    def share(self, content: bytes) -> bytes:
        return content

    def dismiss(self, member: Member) -> None:
        self.dismissed.append(member.name)

    def close(self) -> None:
        for agent in self.agents.values():
            agent.close()
        self._threads.shutdown()

    def _member(self, place: int, patience_s: float) -> Member:
        if self.hosts[place] in self.gone:
            if not self.free:
                raise MachineLost(f"no machine of the Ray cluster had a free CPU within {patience_s:.0f}s")
            self.hosts[place] = self.free.pop()
        host = self.hosts[place]
        agent = self.agents[host] = Agent()
        about = {**agent.describe(), "host": host}

        def call(method: str, *arguments: Any) -> Future[Any]:
            if host in self.gone:
                broken: Future[Any] = Future()
                broken.set_exception(MachineLost("its node has left the Ray cluster"))
                return broken
            if host in self.silent:
                return Future()
            return self._threads.submit(getattr(self.agents[host], method), *arguments)

        return Member(place, f"10.0.0.{place}", **about, call=call)
