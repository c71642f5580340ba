"""A host with Windows that is reached by ssh. Each question is one command of PowerShell, on a connection that stays
open."""

from __future__ import annotations

from pgtrial.machines.machine import HostError
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.machines.ssh.complaints import Unreachable
from pgtrial.machines.ssh.connection import Connection
from pgtrial.machines.ssh.machine import RemoteMachine, asked, short, uname
from pgtrial.machines.windows import WindowsHost, command_line, parse_reply, reply_script


class RemoteWindows(WindowsHost):
    """A host with Windows that is reached by ssh. PowerShell gets its script on the command line, since a PowerShell
    that is the login's own shell may already have read the standard input."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.label = connection.login

    def powershell(self, script: str) -> str:
        """Runs a script and returns what it prints. Raises HostLost, and HostError if PowerShell failed."""
        status, output, errors = asked(self.connection, command_line(script))
        if status != 0 and not output.strip():
            raise HostError(f"PowerShell on {self.label} ended with status {status}: {' '.join(errors.split())[:200]}")
        return output

    def close(self) -> None:
        """Ends the connection to the host."""
        self.connection.close()


def machine_to_look_at(ssh: str, *, sudo: bool, patience_s: float = PATIENCE_S) -> RemoteMachine | RemoteWindows:
    """Connects to the host of a given server, where pgtrial only reads. Raises HostTrouble, with a sentence for the
    user."""
    machine = RemoteMachine(ssh, sudo=sudo, patience_s=patience_s)
    try:
        if not answers_to_powershell(machine.connection):
            machine.check()
            return machine
        if sudo:
            raise HostError(f"{ssh} runs Windows, which has no sudo as pgtrial knows it; leave sudo out")
    except BaseException:
        machine.close()
        raise
    return RemoteWindows(machine.connection)


def answers_to_powershell(connection: Connection) -> bool:
    """True if the host is no POSIX system and has PowerShell. Raises HostLost if it has neither."""
    system, words = uname(connection)
    if system is not None:
        return False
    _, output, errors = asked(connection, command_line(reply_script({"windows": "$env:OS"})))
    if parse_reply(output).get("windows") != "Windows_NT":
        raise Unreachable(
            f"{connection.login} answers neither as a POSIX shell nor with PowerShell, by which pgtrial would look at "
            f"the host; give it another login, or leave ssh out; it said {short(words or output + errors)!r}"
        )
    return True
