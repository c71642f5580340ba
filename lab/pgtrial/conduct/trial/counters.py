"""Reads how the server's counters change over the measured part of a load."""

from __future__ import annotations

import psycopg

from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.results import sentence
from pgtrial.conduct.trial.sessions import LabSessions
from pgtrial.evidence.observe import views
from pgtrial.evidence.observe.host import read_host
from pgtrial.loads.client_processes import LEAVING_AMONG_OTHERS_S, LEAVING_S, wait_for_clients_to_leave
from pgtrial.model.study.servers import Given


class ServerCounters:
    """The counters of a trial's server and of its host. If several trials share a server, only the first one reads
    them."""

    def __init__(self, order: TrialOrder, sessions: LabSessions, other_clients: int) -> None:
        """`other_clients` is the number of clients of the database that do not belong to the load."""
        self.lost: str | None = None
        """The reason why the session was lost while the load ran; None if it was not."""
        self._order, self._sessions, self._other_clients = order, sessions, other_clients
        self._before: views.Counters | None = None

    def begin(self) -> None:
        """Reads the counters at the begin of the measured part."""
        try:
            self._before = self._read() if self._order.counts_server else None
        except psycopg.OperationalError as error:
            self._lose(error)

    def wait_for_clients(self) -> None:
        """Waits until the clients of the load have left, so that their last counters are known. Raises
        psycopg.Error."""
        wait_for_clients_to_leave(self._sessions.reader, self._other_clients, leaving_s(self._order))

    def changes(self) -> views.Counters:
        """Returns how the counters have changed since `begin`; {} if they were not read then. Raises psycopg.Error."""
        return views.deltas(self._before, self._read()) if self._before is not None else {}

    def changes_of_probe(self) -> views.Counters:
        """Returns how the counters have changed since the begin of a probe, once its clients have left; {} if the
        session was lost."""
        try:
            self.wait_for_clients()
            return self.changes()
        except psycopg.OperationalError as error:
            self._lose(error)
            return {}
        finally:
            self._before = None

    def _read(self) -> views.Counters:
        arm, session, alone = self._order.arm, self._sessions.reader, self._order.turn.of == 1
        network = not self._sessions.target.host.startswith(("/", "@"))
        host = read_host(arm.machine, arm.data_directory, session, network=network, alone=alone)
        return views.read_counters(session) | host

    def _lose(self, error: psycopg.Error) -> None:
        self.lost = self.lost or sentence(error)


def leaving_s(order: TrialOrder) -> float:
    """Returns how long a trial waits until the server processes of the load's clients have ended, in seconds."""
    return LEAVING_AMONG_OTHERS_S if isinstance(order.arm.setup, Given) else LEAVING_S
