"""What kind of host an sshd lets us in to: one with a POSIX shell, or one with Windows."""

from __future__ import annotations

from pgtrial.machines.ssh.complaints import Dropped, Unreachable, no_posix_shell
from pgtrial.machines.ssh.connection import Connection
from pgtrial.machines.windows import command_line, parse_reply, reply_script

_TIMEOUT_S = 60.0
"""Of the first PowerShell after a start of Windows, too."""

_POSIX_ON_WINDOWS = ("CYGWIN", "MINGW", "MSYS", "UWIN")
"""How uname names what Git and Cygwin bring: a shell whose processes and files are not those of Windows."""


def posix_system(connection: Connection) -> str:
    """What `uname -s` says. Raises HostLost where no POSIX system answers.

    The login's own shell is asked, and its input is at an end: PowerShell would wait for more.
    """
    system, said = _uname(connection)
    if system is None:
        raise Unreachable(no_posix_shell(connection.login, said))
    return system


def answers_to_powershell(connection: Connection) -> bool:
    """Whether it is no POSIX system and has PowerShell. Raises HostLost where it can do neither."""
    system, said = _uname(connection)
    if system is not None:
        return False
    _, output, errors = asked(connection, command_line(reply_script({"windows": "$env:OS"})))
    if parse_reply(output).get("windows") != "Windows_NT":
        raise Unreachable(
            f"{connection.login} answers neither as a POSIX shell nor with PowerShell, by which pgtrial would look at "
            f"the host; give it another login, or leave ssh out; it said {_short(said or output + errors)!r}"
        )
    return True


def asked(connection: Connection, command: str) -> tuple[int, str, str]:
    """Status, output and errors of a command line that only looks, once more after a drop. Raises HostLost."""
    try:
        try:
            status, output, errors = connection.execute(command, _TIMEOUT_S)
        except Dropped:
            status, output, errors = connection.execute(command, _TIMEOUT_S)
    except TimeoutError:
        raise Unreachable(f"a command on {connection.login} did not end within {_TIMEOUT_S:g} s") from None
    return status, output.decode("utf-8-sig", errors="replace"), errors.decode(errors="replace")


def _uname(connection: Connection) -> tuple[str | None, str]:
    """The system, or None, and what was said."""
    status, output, errors = asked(connection, "uname -s")
    lines = output.split()
    # start-up files may have had their say before
    system = lines[-1] if status == 0 and lines else ""
    known = system and not system.upper().startswith(_POSIX_ON_WINDOWS)
    return system if known else None, _short(errors + output)


def _short(said: str) -> str:
    """The end: start-up files may have had their say before."""
    return " ".join(said.split())[-200:]
