"""A PostgreSQL server as a change of a host: started by pg_ctl, and stopped by whoever finds it running."""

from __future__ import annotations

import shlex
from pathlib import Path

from pgtrial.machines.change import Change
from pgtrial.machines.machine import HostError, Machine

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 120

_STOP = """
pid=$(head -n 1 {pid_file} 2>/dev/null)
{stop} || exit
polls=0
while [ $polls -lt 150 ]; do
    case $(ps -p "$pid" -o args= 2>/dev/null) in *defunct*) exit ;; *postgres*|*postmaster*) ;; *) exit ;; esac
    sleep 0.1
    polls=$((polls + 1))
done
"""
"""pg_ctl waits until postmaster.pid is gone, and the postmaster ends a moment later: until then it works in its data
directory, whose file system cannot be unmounted."""

_STOPPED = """
pid=$(head -n 1 {pid_file} 2>/dev/null) || exit 0
[ -n "$pid" ] || exit 0
case $(ps -p "$pid" -o args= 2>/dev/null) in *postgres*|*postmaster*) ;; *) exit 0 ;; esac
kill -QUIT "$pid" 2>/dev/null
polls=0
while kill -0 "$pid" 2>/dev/null && [ $polls -lt 150 ]; do sleep 0.1; polls=$((polls + 1)); done
kill -0 "$pid" 2>/dev/null || exit 0
backends=$(ps -A -o pid= -o ppid= | awk -v parent="$pid" '$2 == parent {{ print $1 }}')
kill -9 "$pid" $backends 2>/dev/null
sleep 0.5
! kill -0 "$pid" 2>/dev/null
"""
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
        stop = [self.bin / "pg_ctl", "-D", self.data, "-s", "-m", mode, "-w", "-t", str(STOP_TIMEOUT_S), "stop"]
        script = _STOP.format(pid_file=self._pid_file, stop=shlex.join(str(word) for word in stop))
        machine.run(["sh", "-c", script], user=self.user)

    def undo(self, machine: Machine) -> None:
        """End it, if it runs."""
        script = _STOPPED.format(pid_file=self._pid_file)
        if machine.run(["sh", "-c", script]).status != 0:
            raise HostError(f"the server in {self.data} on {machine.label} does not end; end it there")

    @property
    def _pid_file(self) -> str:
        """In the words of a shell."""
        return shlex.quote(str(self.data / "postmaster.pid"))

    def __str__(self) -> str:
        return f"PostgreSQL server in {self.data}"
