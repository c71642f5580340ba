"""This machine as one behind a shell, which is how another host is seen."""

from __future__ import annotations

import os
import signal
import subprocess

from pgtrial.machines.machine import Done, HostError
from pgtrial.machines.posix import PosixMachine


class ShellMachine(PosixMachine):
    """This machine, by nothing but its /bin/sh. It counts the scripts in `round_trips`."""

    label = "somebody@somewhere"
    round_trips = 0

    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        """Runs a script with a shell, as an sshd would."""
        self.round_trips += 1
        with subprocess.Popen(
            ["/bin/sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        ) as shell:
            try:
                output, errors = shell.communicate(script.encode(), timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                raise HostError(f"a command on {self.label} did not end within {timeout_s:g} s") from None
        return Done(shell.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))
