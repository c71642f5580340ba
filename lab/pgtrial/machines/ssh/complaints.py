"""Explains in one sentence why a host cannot be reached by ssh, and what to do."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

import asyncssh

from pgtrial.machines.machine import HostLost

_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


class Unreachable(HostLost):
    """There is no connection, and none could be made."""


class Dropped(HostLost):
    """The connection was lost while a command ran: whether the command was carried out is not known."""


class Restarted(HostLost):
    """The host was restarted: all that ran there has ended, and what does not survive a restart is gone."""


@dataclass(frozen=True)
class Where:
    """The address that was tried: the login as the study has it, and the host and port that ssh's configuration gives
    for it."""

    login: str
    host: str
    port: int

    @property
    def command(self) -> str:
        """The command that a person types to reach the same host."""
        return f"ssh {self.login}" if self.port == 22 else f"ssh -p {self.port} {self.login}"


def may_pass(error: BaseException, *, was_there: bool = False) -> bool:
    """True if another attempt may succeed: the network or the host failed, and a person has nothing to settle.

    A host that accepted the login before refuses logins for a while when it starts or shuts down.
    """
    if isinstance(error, asyncssh.PermissionDenied):
        return was_there
    if isinstance(error, asyncssh.HostKeyNotVerifiable | asyncssh.KeyExchangeFailed):
        return False
    return isinstance(error, OSError | TimeoutError | asyncssh.DisconnectError) and not isinstance(
        error, socket.gaierror | FileNotFoundError | PermissionError
    )


def why(error: BaseException, where: Where, *, known: bool) -> str:
    """Returns the sentence for a failed attempt to connect. `known`: known_hosts has another key of that host."""
    match error:
        case asyncssh.HostKeyNotVerifiable():
            reason = _about_key(str(error), where, known)
        case asyncssh.PermissionDenied():
            reason = (
                "it accepts none of your keys; put yours into its authorized_keys (`ssh-copy-id "
                f"{where.login}`), or load it into the agent (`ssh-add`): pgtrial asks for no password or passphrase"
            )
        case asyncssh.KeyExchangeFailed():
            reason = f"no common algorithm: {_said(error)}; look at `{where.command} -v`"
        case asyncssh.ConfigParseError() | asyncssh.KeyImportError():
            reason = f"ssh's configuration or a key cannot be read: {_said(error)}; correct ~/.ssh"
        case OSError() | TimeoutError():
            reason = _about_network(error, where)
        case _:
            reason = f"{_said(error)}; see whether `{where.command}` works"
    return f"{where.login} cannot be reached by ssh: {reason}"


def no_posix_shell(login: str, words: str) -> str:
    """Returns the sentence for a login that has no POSIX shell, such as a login to Windows; `words` is what it said."""
    return (
        f"{login} does not answer as a POSIX shell, which pgtrial needs to make a server there; start the server of a "
        "host with Windows yourself and name it by dsn, with ssh beside the dsn for looking at the host; "
        f"it said {words!r}"
    )


def _about_key(words: str, where: Where, known: bool) -> str:
    if "revoked" in words:
        return f"the key of {where.host} is revoked in known_hosts; ask who runs that host"
    if known:
        # the host as known_hosts writes it
        host = where.host if where.port == 22 else f"'[{where.host}]:{where.port}'"
        return (
            f"the key of {where.host} is not the one in known_hosts: the host was reinstalled, or another answers in "
            f"its place; find out which, then `ssh-keygen -R {host}` and `{where.command}` once"
        )
    return (
        f"the key of {where.host} is not in known_hosts, and pgtrial trusts no key by itself; `{where.command}` once "
        f"and compare the fingerprint, or `ssh-keyscan -p {where.port} {where.host} >> ~/.ssh/known_hosts` on a "
        "network that you trust"
    )


def _about_network(error: BaseException, where: Where) -> str:
    if isinstance(error, socket.gaierror):
        return f"no address is known for {where.host}; correct the name, or ~/.ssh/config"
    number = error.errno if isinstance(error, OSError) else None
    if number in _NO_WAY:
        return f"there is no route to {where.host}; check the address, and that the host and the network are up"
    if isinstance(error, TimeoutError):
        trouble = "does not answer"
    elif isinstance(error, ConnectionError) or "onnect call failed" in str(error):
        trouble = "refuses connections"
    else:
        return f"{_said(error)}; see whether `{where.command}` works"
    return (
        f"{where.host} {trouble} on port {where.port}; check that sshd runs there and that no firewall closes the port"
    )


def _said(error: BaseException) -> str:
    return str(error).strip().removesuffix(".") or type(error).__name__
