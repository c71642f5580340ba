"""The host of a given server, where the study names one: it is looked at through ssh, and nothing is made there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgtrial.machines.machine import HostTrouble
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import Given

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine
    from pgtrial.machines.ssh.windows import RemoteWindows


class GivenHost:
    """Reached by `look` and let go of by `close`; what there is between the two is an ssh connection."""

    def __init__(self, name: str, setup: Given, patience_s: float) -> None:
        self._name = name
        self._setup = setup
        self._patience_s = patience_s or PATIENCE_S
        self.machine: RemoteMachine | RemoteWindows | None = None

    def look(self) -> None:
        """Reach the host, if the study names one. Raises StudyError where it cannot be looked at."""
        if self.machine is None and self._setup.ssh is not None:
            # ssh takes a fifth of a second to import, and most studies reach no other host
            from pgtrial.machines.ssh.windows import machine_to_look_at  # noqa: PLC0415

            try:
                self.machine = machine_to_look_at(self._setup.ssh, sudo=self._setup.sudo, patience_s=self._patience_s)
            except HostTrouble as error:
                raise StudyError(f"arms.{self._name}: {error}") from None

    def again(self) -> None:
        """Look at a host again that was lost before: nothing of a trial depends on it."""
        if self.machine is not None:
            self.machine.connection.forget_loss()

    def close(self) -> None:
        """End the connection."""
        machine, self.machine = self.machine, None
        if machine is not None:
            machine.close()
