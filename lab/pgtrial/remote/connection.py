"""One ssh connection to a host: made on first use, with the user's keys and configuration, and anew after a drop."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import asyncssh

from pgtrial.remote import PATIENCE_S
from pgtrial.remote.complaints import Dropped, Unreachable, Where, may_pass, why
from pgtrial.remote.loop import wait_for
from pgtrial.remote.shell import Ended, Shell

_CONNECT_TIMEOUT_S = 10.0
_LOGIN_TIMEOUT_S = 20.0
_KEEPALIVE = {"keepalive_interval": 5, "keepalive_count_max": 3}
"""A network that is cut is noticed within 20 s."""

_RETRY_S = 0.5
_CONFIGURATIONS = ("~/.ssh/config", "/etc/ssh/ssh_config")
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


class Connection:
    """To `[user@]host`, a name of ssh's configuration included. Safe to use from several threads."""

    def __init__(self, login: str, patience_s: float = PATIENCE_S) -> None:
        self.login = login
        self.patience_s = patience_s
        self._was_there = False
        self._connection: asyncssh.SSHClientConnection | None = None
        self._idle: list[Shell] = []
        self._making: asyncio.Lock | None = None
        self._options: asyncssh.SSHClientConnectionOptions | None = None

    @property
    def where(self) -> Where:
        """What ssh's configuration makes of the login. Raises Unreachable if it cannot be read."""
        options = self._configured()
        host = str(options.host or self.login.rpartition("@")[2])
        return Where(self.login, host, int(options.port or 22))

    def run(self, script: bytes, timeout_s: float | None = None) -> tuple[int, bytes, bytes]:
        """Have a POSIX shell of the login run a script: status (128 + number after a signal), output, errors.

        Raises Unreachable before it began, Dropped when the connection went under it, TimeoutError.
        """
        return wait_for(self._run(script), timeout_s)

    def close(self) -> None:
        """End the connection; another `run` would make a new one."""
        if self._connection is not None:
            wait_for(self._close(), _CONNECT_TIMEOUT_S)

    async def _run(self, script: bytes) -> tuple[int, bytes, bytes]:
        connection = await self._connected()
        shell = await self._shell(connection)
        try:
            answer = await shell.run(script)
        except Ended as ended:
            if ended.status is not None:
                raise Unreachable(
                    f"{self.login} does not answer as a POSIX shell, which pgtrial needs there: a host with Windows "
                    f"can be an arm only as a given server (dsn); it said {ended.said!r}"
                ) from None
            raise self._dropped(connection) from None
        except BaseException:
            shell.close()  # in the middle of a script, it is of no more use
            raise
        if self._connection is connection:
            self._idle.append(shell)
        return answer

    async def _shell(self, connection: asyncssh.SSHClientConnection) -> Shell:
        if self._idle:
            return self._idle.pop()
        try:
            return await Shell.open(connection)
        except asyncssh.ChannelOpenError as error:
            if error.code != asyncssh.OPEN_CONNECT_FAILED:
                raise Unreachable(f"{self.login} opens no session: {error.reason}; see its sshd's log") from None
            raise self._dropped(connection) from None
        except (asyncssh.Error, OSError):
            raise self._dropped(connection) from None

    def _dropped(self, connection: asyncssh.SSHClientConnection) -> Dropped:
        if self._connection is connection:
            self._connection = None  # it may take a while to find out itself
            self._idle.clear()
        connection.abort()
        return Dropped(f"the ssh connection to {self.login} was lost while a command was under way")

    async def _connected(self) -> asyncssh.SSHClientConnection:
        if self._making is None:
            self._making = asyncio.Lock()
        async with self._making:
            if self._connection is None or self._connection.is_closed():
                self._idle.clear()
                self._connection = await self._connect()
                self._was_there = True
            return self._connection

    async def _connect(self) -> asyncssh.SSHClientConnection:
        deadline = time.monotonic() + (self.patience_s if self._was_there else 0.0)
        where = self.where
        while True:
            try:
                return await asyncssh.connect(self.login.rpartition("@")[2], options=self._configured())
            except (asyncssh.Error, OSError, TimeoutError, ValueError) as error:
                if time.monotonic() >= deadline or not may_pass(error):
                    raise Unreachable(why(error, where, known=self._is_known(where))) from None
            await asyncio.sleep(_RETRY_S)

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._idle.clear()
        if connection is not None:
            connection.close()
            await connection.wait_closed()

    def _configured(self) -> asyncssh.SSHClientConnectionOptions:
        if self._options is None:
            self._options = self._read_configuration()
        return self._options

    def _read_configuration(self) -> asyncssh.SSHClientConnectionOptions:
        user, _, host = self.login.rpartition("@")
        settings: dict[str, Any] = {
            "host": host,
            "config": _readable(_CONFIGURATIONS),
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "login_timeout": _LOGIN_TIMEOUT_S,
            # nobody is there to be asked
            "password_auth": False,
            "kbdint_auth": False,
            **_KEEPALIVE,
            **({"username": user} if user else {}),
        }
        try:
            options = asyncssh.SSHClientConnectionOptions(**settings)
            # `UserKnownHostsFile none` would be read as: trust every key
            files = options.known_hosts if isinstance(options.known_hosts, list | tuple) else ()
            known = _readable([str(file) for file in files] or _KNOWN_HOSTS)
            return asyncssh.SSHClientConnectionOptions(**settings, known_hosts=known or b"")
        except (asyncssh.Error, OSError, ValueError) as error:
            raise Unreachable(why(error, Where(self.login, host, 22), known=False)) from None

    def _is_known(self, where: Where) -> bool:
        """Whether known_hosts has a key of this host."""
        options = self._configured()
        name = options.host_key_alias or where.host
        try:
            return bool(asyncssh.match_known_hosts(options.known_hosts, name, "", where.port)[0])
        except (asyncssh.Error, OSError, ValueError):
            return False


def _readable(files: list[str] | tuple[str, ...]) -> list[str]:
    found = [str(Path(file).expanduser()) for file in files]
    return [file for file in found if os.access(file, os.R_OK) and Path(file).is_file()]
