"""A PostgreSQL server as a change of a host: started by pg_ctl, and stopped by whoever finds it running."""

from __future__ import annotations

from pathlib import Path

from pgtrial.machines.change import Change
from pgtrial.machines.machine import HostError, Machine
from pgtrial.model.resources import resource

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 120

_STOP = resource("stop_server.sh", __package__)
"""pg_ctl waits until postmaster.pid is gone, and the postmaster ends a moment later: until then it works in its data
directory, whose file system cannot be unmounted."""

_END = resource("end_server.sh", __package__)
"""A postmaster takes its backends with it: those of one that has to be killed are killed as well."""


class RunningServer(Change):
    """The server of a data directory."""

    bin: Path
    data: Path
    log: Path
    user: str | None = None
    """The account that it runs as; None: the login's own."""
    runner: tuple[str, ...] = ()
    """What pg_ctl is run by, such as `env NAME=VALUE taskset -c 0-3`."""

    def make(self, machine: Machine) -> None:
        """Start it and wait until it answers, or waits for nothing but its start to end."""
        options = ["-D", str(self.data), "-l", str(self.log), "-s", "-w", "-t", str(START_TIMEOUT_S)]
        done = machine.run([*self.runner, self.bin / "pg_ctl", *options, "start"], user=self.user)
        if done.status != 0:
            raise HostError(" ".join((done.stderr or done.stdout).split()) or f"pg_ctl ended with status {done.status}")

    def stop(self, machine: Machine, *, immediate: bool) -> None:
        """Stop it, fast (its data stays clean) or immediate; whatever becomes of that, `undo` ends it."""
        mode = "immediate" if immediate else "fast"
        stop: list[str | Path] = [
            self.bin / "pg_ctl",
            "-D",
            self.data,
            "-s",
            "-m",
            mode,
            "-w",
            "-t",
            str(STOP_TIMEOUT_S),
            "stop",
        ]
        machine.run(["sh", "-c", _STOP, "sh", self.data / "postmaster.pid", *stop], user=self.user)

    def undo(self, machine: Machine) -> None:
        """End it, if it runs."""
        if machine.run(["sh", "-c", _END, "sh", self.data / "postmaster.pid"]).status != 0:
            raise HostError(f"the server in {self.data} on {machine.label} does not end; end it there")

    def __str__(self) -> str:
        return f"PostgreSQL server in {self.data}"
