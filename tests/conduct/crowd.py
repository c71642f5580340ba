"""Sessions that take every connection of a server, and leave it again."""

from __future__ import annotations

from contextlib import suppress

import psycopg

from pgtrial.servers.cluster import Cluster
from tests.processes import until

_OTHERS_GO = """SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""
"""A query that ends all other sessions and waits until they are gone. A session that its client has closed still takes
a connection until its process has ended.
"""


class Crowd:
    """The sessions of one crowd."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sessions: list[psycopg.Connection] = []

    def fill(self) -> None:
        """End all sessions of others, and take every connection."""
        self._sessions.append(self._cluster.target.connect_as_user())
        self._sessions[0].execute(_OTHERS_GO)
        # one that is listed no more may yet hold its connection for a while
        until(self._all_taken, "every connection is taken")

    def leave(self) -> None:
        """Ends the crowd's sessions. When this returns, all their connections are free except the one that ended the
        others.
        """
        self._sessions[0].execute(_OTHERS_GO)
        while self._sessions:
            self._sessions.pop().close()

    def _all_taken(self) -> bool:
        most = int(self._cluster.settings["max_connections"])
        with suppress(psycopg.OperationalError):
            while len(self._sessions) < most:
                self._sessions.append(self._cluster.target.connect_as_user())
        return len(self._sessions) == most
