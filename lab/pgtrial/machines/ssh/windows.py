"""A host with Windows that pgtrial reaches by ssh and only reads. Each request is one PowerShell command, on a
connection that stays open."""

from __future__ import annotations

from pgtrial.machines.machine import HostError
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.machines.ssh.complaints import Unreachable
from pgtrial.machines.ssh.connection import Connection
from pgtrial.machines.ssh.machine import RemoteMachine, asked, short, uname
from pgtrial.machines.windows import WindowsHost, command_line, parse_reply, reply_script
from pgtrial.model.quoting import quoted


class RemoteWindows(WindowsHost):
    """A host with Windows that pgtrial reaches by ssh. PowerShell gets its script on the command line and not on the
    standard input, which PowerShell may already have read if it is also the login's own shell."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.label = connection.login

    def powershell(self, script: str) -> str:
        """Runs a PowerShell script and returns its standard output. Raises HostLost, and HostError if PowerShell
        failed."""
        status, output, errors = asked(self.connection, command_line(script))
        if status != 0 and not output.strip():
            raise HostError(f"PowerShell on {self.label} ended with status {status}: {' '.join(errors.split())[:200]}")
        return output

    def close(self) -> None:
        """Ends the connection to the host."""
        self.connection.close()


def machine_to_look_at(ssh: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> RemoteMachine | RemoteWindows:
    """Connects to the host of a given server, where pgtrial only reads, and returns that host. Raises HostTrouble, with
    a sentence for the user."""
    machine = RemoteMachine(ssh, sudo=sudo, patience_s=patience_s)
    try:
        if not answers_to_powershell(machine.connection):
            machine.check()
            return machine
        if sudo:
            raise HostError(f"{ssh} runs Windows, where pgtrial does not use sudo; leave sudo out")
    except BaseException:
        machine.close()
        raise
    return RemoteWindows(machine.connection)


def answers_to_powershell(connection: Connection) -> bool:
    """True if the host has PowerShell and is not a POSIX system. Raises HostLost if it has neither a POSIX shell nor
    PowerShell."""
    system, words = uname(connection)
    if system is not None:
        return False
    _, output, errors = asked(connection, command_line(reply_script({"windows": "$env:OS"})))
    if parse_reply(output).get("windows") != "Windows_NT":
        raise Unreachable(
            f"{connection.login} answers neither as a POSIX shell nor with PowerShell, by which pgtrial would look at "
            f"the host; name another login, or leave ssh out; the login printed "
            f"{quoted(short(words or output + errors))}"
        )
    return True
