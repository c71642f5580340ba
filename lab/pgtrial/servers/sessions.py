"""Arms that are sessions of one server: each has settings that a session may set for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.target import Target
from pgtrial.machines.windows import AnyMachine
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import Server
from pgtrial.servers.arm import Arm, Needs

_OWN = "set [load] share_server = false, which gives each arm a server of its own"


_FOREIGN = "SELECT name FROM pg_settings WHERE lower(name) = ANY (%s) AND context NOT IN ('user', 'superuser')"


class SharedServer:
    """The server of all arms, served for the first of them that asks for it until that one has ended."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.target: Target | None = None
        """While it is served."""
        self.checked = False


class SessionArm:
    """One arm: its sessions have these settings, beside those of the server."""

    def __init__(self, name: str, setup: Server, settings: Mapping[str, str], server: SharedServer) -> None:
        self.name = name
        self.setup = setup
        self.notes: list[str] = []
        self._settings = settings
        self._server = server

    @property
    def data_directory(self) -> Path | None:
        """The server's."""
        return self._server.arm.data_directory

    @property
    def host_seen(self) -> dict[str, dict[str, int]]:
        """The server's."""
        return self._server.arm.host_seen

    @property
    def machine(self) -> AnyMachine | None:
        """The server's."""
        return self._server.arm.machine

    @property
    def targets(self) -> Sequence[Target] | None:
        """The server's."""
        return self._server.arm.targets

    def check(self, needs: Needs) -> None:
        """Check the server, once, with the sessions of all arms. Raises StudyError or ArmError."""
        if not self._server.checked:
            self._server.arm.check(needs)
            self._server.checked = True

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """See to it that the server has this data. Raises StudyError or ArmError."""
        self._server.arm.prepare(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], place: int | None = None) -> Iterator[Target]:
        """Sessions of the server, which is started for the first arm and stopped when that one has ended, the last."""
        server = self._server
        if server.target is not None:
            log.write_text("The arms are sessions of one server. Its log is in the trial that was the first.\n")
            self.notes = []
            yield server.target.with_settings(self._settings)
            return
        with server.arm.serve(tables, log, timings, place) as target:
            server.target, self.notes = target, server.arm.notes
            try:
                yield target.with_settings(self._settings)
            finally:
                server.target = None

    def fetch_log(self, log: Path) -> None:
        """Bring the log of the first arm's trial up to now. Raises TrialError."""
        self._server.arm.fetch_log(log)

    def close(self) -> None:
        """Let go of the server."""
        self._server.arm.close()


def check_sessions(needs: Needs, target: Target) -> None:
    """Find out whether sessions can have the settings of each arm. Raises StudyError in the server's words."""
    for arm, settings in needs.sessions.items():
        try:
            with target.with_settings(settings).connect() as connection:
                rows = connection.execute(_FOREIGN, ([name.lower() for name in settings],)).fetchall()
        except psycopg.OperationalError as error:
            said = str(error).strip().splitlines()[-1].rpartition("FATAL:")[2].strip() or str(error)
            raise StudyError(
                f"arms.{arm}: a session cannot have these settings: {said}; correct them, or {_OWN}"
            ) from None
        if rows:
            names = " and ".join(name for (name,) in rows)
            raise StudyError(f"arms.{arm}: {names} cannot be set by a session of this server; {_OWN}")
