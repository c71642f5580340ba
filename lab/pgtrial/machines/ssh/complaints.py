"""Explains in one sentence why a host cannot be reached by ssh, and what to do."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

import asyncssh

from pgtrial.machines.machine import HostLost
from pgtrial.model.quoting import quoted

_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


class Unreachable(HostLost):
    """Raised when there is no connection to the host, and pgtrial could not make one."""


class Dropped(HostLost):
    """Raised when the connection was lost while a command ran, so that pgtrial does not know whether the command was
    carried out."""


class Restarted(HostLost):
    """Raised when the host was restarted: all processes of pgtrial there have ended, and changes that do not survive a
    restart are gone."""


@dataclass(frozen=True)
class Where:
    """The address to which pgtrial tried to connect: the login as the study has it, and the host and port that ssh's
    configuration gives for this login."""

    login: str
    host: str
    port: int

    @property
    def command(self) -> str:
        """The ssh command that a person can type to reach the same host."""
        return f"ssh {self.login}" if self.port == 22 else f"ssh -p {self.port} {self.login}"


def may_pass(error: BaseException, *, was_there: bool = False) -> bool:
    """True if another attempt to connect may succeed, since the network or the host failed. False if a person has to
    correct something first.

    If pgtrial has reached the host before (`was_there`), a refused login counts as temporary too: a host refuses logins
    for a while when it starts or shuts down.
    """
    if isinstance(error, asyncssh.PermissionDenied):
        return was_there
    if isinstance(error, asyncssh.HostKeyNotVerifiable | asyncssh.KeyExchangeFailed):
        return False
    return isinstance(error, OSError | TimeoutError | asyncssh.DisconnectError) and not isinstance(
        error, socket.gaierror | FileNotFoundError | PermissionError
    )


def why(error: BaseException, where: Where, *, known: bool) -> str:
    """Returns the sentence that tells the user why an attempt to connect failed, and what to do. `known` is true if
    known_hosts has a key of this host."""
    match error:
        case asyncssh.HostKeyNotVerifiable():
            reason = _about_key(str(error), where, known)
        case asyncssh.PermissionDenied():
            reason = (
                "the host accepts none of your keys; add your key to its authorized_keys (`ssh-copy-id "
                f"{where.login}`), or load your key into the agent (`ssh-add`): pgtrial asks for no password or "
                "passphrase"
            )
        case asyncssh.KeyExchangeFailed():
            reason = (
                f"this machine and the host have no common algorithm ({_said(error)}); see the output of "
                f"`{where.command} -v`"
            )
        case asyncssh.ConfigParseError() | asyncssh.KeyImportError():
            reason = f"ssh's configuration or a key cannot be read: {_said(error)}; correct the file in ~/.ssh"
        case OSError() | TimeoutError():
            reason = _about_network(error, where)
        case _:
            reason = f"{_said(error)}; see whether `{where.command}` works"
    return f"{where.login} cannot be reached by ssh: {reason}"


def no_posix_shell(login: str, words: str) -> str:
    """Returns the sentence for a login that has no POSIX shell, such as a login to Windows; `words` is the output of
    that login."""
    return (
        f"{login} does not answer as a POSIX shell, which pgtrial needs to make a server there; if the host has "
        "Windows, "
        "start its server yourself and name the server by dsn, with ssh beside the dsn for looking at the host; "
        f"the login printed {quoted(words)}"
    )


def _about_key(words: str, where: Where, known: bool) -> str:
    if "revoked" in words:
        return f"the key of {where.host} is marked as revoked in known_hosts; ask the person who runs that host"
    if known:
        # the host as known_hosts writes it
        host = where.host if where.port == 22 else f"'[{where.host}]:{where.port}'"
        return (
            f"the key of {where.host} is not the one in known_hosts: the host was reinstalled, or another host answers "
            "in "
            f"its place; find out which is true, then run `ssh-keygen -R {host}` and `{where.command}` once"
        )
    return (
        f"the key of {where.host} is not in known_hosts, and pgtrial trusts no key by itself; run `{where.command}` "
        "once "
        f"and compare the fingerprint, or run `ssh-keyscan -p {where.port} {where.host} >> ~/.ssh/known_hosts` on a "
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
