"""One ssh connection to a host, with the user's keys and configuration. pgtrial connects on the first use, and again
after the connection was lost."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Coroutine
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from pgtrial.machines.machine import HostLost
from pgtrial.machines.posix import ASK_START, Start, now_s, parse_start
from pgtrial.machines.ssh import HURRY_S, PATIENCE_S
from pgtrial.machines.ssh.complaints import Dropped, Restarted, Unreachable, Where, may_pass, no_posix_shell, why
from pgtrial.machines.ssh.shell import Ended, Shell

_CONNECT_TIMEOUT_S = 10.0
_LOGIN_TIMEOUT_S = 20.0
_CLOSE_TIMEOUT_S = 5.0
_KEEPALIVE = {"keepalive_interval": 5, "keepalive_count_max": 3}
"""Settings of asyncssh by which a broken network connection is noticed within 20 s."""

Result = TypeVar("Result")
_RETRY_S = 0.5
_CONFIGURATIONS = ("~/.ssh/config", "/etc/ssh/ssh_config")
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


class Connection:
    """A connection to `[user@]host`, where the host may be a name of ssh's configuration. Several threads can use it.

    If a host was reached before and cannot be reached again within `patience_s` seconds, it is *lost*: from then on
    every call fails at once, until `rejoin` or `forget_loss` is called. A host that was restarted is lost as well.
    """

    def __init__(self, login: str, patience_s: float = PATIENCE_S) -> None:
        self.login = login
        self.patience_s = patience_s
        self.lost: HostLost | None = None
        """The reason why every call fails from now on; None while the host is not lost."""
        self._was_there = False
        self._start: Start | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._idle: list[Shell] = []
        self._making = asyncio.Lock()

    @property
    def where(self) -> Where:
        """The host and port that ssh's configuration gives for the login. Raises Unreachable if the configuration
        cannot be read."""
        options = self._options
        host = str(options.host or self.login.rpartition("@")[2])
        return Where(self.login, host, int(options.port or 22))

    def run(self, script: bytes, timeout_s: float | None = None) -> tuple[int, bytes, bytes]:
        """Runs a script in a POSIX shell of the login. Returns its exit status (128 + n after signal n), its standard
        output and its standard error.

        Raises Unreachable if the script could not be started, Restarted if the host was restarted, Dropped if the
        connection was lost while the script ran, and TimeoutError.
        """
        try:
            return wait_for(self._run(script), timeout_s)
        except KeyboardInterrupt:
            self.hurry()
            raise

    def note_start(self) -> None:
        """Remembers the current boot of the host. After a restart of the host, calls raise Restarted."""
        self._start = _parsed_start(self.run(ASK_START.encode())[1])

    def rejoin(self) -> bool:
        """Tries to reach the host, even if it is lost. Returns true if the host was restarted since `note_start`.

        Raises HostLost if the host cannot be reached; the host then counts as lost.
        """
        before, self._start, self.lost = self._start, None, None
        try:
            try:
                self.note_start()
            except Dropped:
                self.note_start()
        except BaseException as error:
            self._start = before
            if isinstance(error, HostLost):
                self.lost = error
            raise
        return _started_anew(before, self._start)

    def forget_loss(self) -> None:
        """Allows the next call to try a lost host again, once and without waiting."""
        if self.lost is not None:
            self.lost, self._was_there = None, False

    def hurry(self) -> None:
        """Limits the time for reaching the host again to HURRY_S from now on, since the user waits for pgtrial to
        end."""
        self.patience_s = min(self.patience_s, HURRY_S)

    def execute(self, command: str, timeout_s: float | None = None) -> tuple[int, bytes, bytes]:
        """Runs a command line in the login's own shell, of whatever kind that shell is, with an empty standard input.
        Otherwise the same as `run`."""
        return wait_for(self._execute(command), timeout_s)

    def close(self) -> None:
        """Ends the connection. A later `run` would make a new one."""
        if self._connection is not None:
            wait_for(self._close())

    async def _run(self, script: bytes) -> tuple[int, bytes, bytes]:
        connection = await self._connected()
        shell = self._idle.pop() if self._idle else await self._opened(connection, Shell.open(connection))
        try:
            answer = await shell.run(script)
        except Ended as ended:
            if ended.status is not None:
                raise Unreachable(no_posix_shell(self.login, ended.words)) from None
            raise self._dropped(connection) from None
        except BaseException:
            shell.close()  # a shell in the middle of a script cannot be used again
            raise
        if self._connection is connection:
            self._idle.append(shell)
        return answer

    async def _execute(self, command: str) -> tuple[int, bytes, bytes]:
        connection = await self._connected()
        opening = connection.create_process(command, stdin=asyncssh.DEVNULL, encoding=None)
        process = await self._opened(connection, opening)
        try:
            output, errors = await process.communicate()
        except (asyncssh.Error, OSError):
            raise self._dropped(connection) from None
        finally:
            process.close()
        status = process.returncode
        if status is None:
            raise self._dropped(connection)
        return status if status >= 0 else 128 - status, bytes(output or b""), bytes(errors or b"")

    async def _opened(self, connection: asyncssh.SSHClientConnection, opening: Awaitable[Result]) -> Result:
        """Waits until a session of the connection is open, and returns the session. Raises Unreachable if the host
        refuses a session, and Dropped if the connection was lost."""
        try:
            return await opening
        except asyncssh.ChannelOpenError as error:
            if error.code != asyncssh.OPEN_CONNECT_FAILED:
                raise Unreachable(
                    f"{self.login} opens no ssh session: {error.reason}; see the log of its sshd"
                ) from None
            raise self._dropped(connection) from None
        except (asyncssh.Error, OSError):
            raise self._dropped(connection) from None

    def _dropped(self, connection: asyncssh.SSHClientConnection) -> Dropped:
        if self._connection is connection:
            self._connection = None  # asyncssh may notice the loss only later
            self._idle.clear()
        connection.abort()
        return Dropped(f"the ssh connection to {self.login} was lost while a command ran there")

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._making:
            if self.lost is not None:
                raise type(self.lost)(str(self.lost))
            if self._connection is None or self._connection.is_closed():
                self._idle.clear()
                connection = await self._connect()
                self._was_there = True
                await self._look_at_start(connection)
                self._connection = connection
            return self._connection

    async def _look_at_start(self, connection: asyncssh.SSHClientConnection) -> None:
        """Raises Restarted if the host was restarted since `note_start` remembered its boot."""
        if self._start is None:
            return
        try:
            shell = await Shell.open(connection)
            _, printed, _ = await shell.run(ASK_START.encode())
        except (Ended, asyncssh.Error, OSError):
            raise self._dropped(connection) from None
        if not _started_anew(self._start, _parsed_start(printed)):
            self._idle.append(shell)
            return
        connection.abort()
        self.lost = Restarted(f"{self.login} was restarted")
        raise Restarted(str(self.lost))

    async def _connect(self) -> asyncssh.SSHClientConnection:
        began = time.monotonic()
        where = self.where
        while True:
            try:
                return await asyncssh.connect(self.login.rpartition("@")[2], options=self._options)
            except (asyncssh.Error, OSError, TimeoutError, ValueError) as error:
                over = time.monotonic() >= began + (self.patience_s if self._was_there else 0.0)
                if over or not may_pass(error, was_there=self._was_there):
                    unreachable = Unreachable(why(error, where, known=self._is_known(where)))
                    self.lost = unreachable if self._was_there else None
                    raise unreachable from None
            await asyncio.sleep(_RETRY_S)

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._idle.clear()
        if connection is not None:
            connection.close()
            try:
                await asyncio.wait_for(connection.wait_closed(), _CLOSE_TIMEOUT_S)
            except TimeoutError:
                connection.abort()

    @cached_property
    def _options(self) -> asyncssh.SSHClientConnectionOptions:
        user, _, host = self.login.rpartition("@")
        settings: dict[str, Any] = {
            "host": host,
            "config": _readable(_CONFIGURATIONS),
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "login_timeout": _LOGIN_TIMEOUT_S,
            # nobody can answer a password prompt
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
        """True if known_hosts has a key of this host."""
        name = self._options.host_key_alias or where.host
        with suppress(asyncssh.Error, OSError, ValueError):
            return bool(asyncssh.match_known_hosts(self._options.known_hosts, name, "", where.port)[0])
        return False


def _parsed_start(printed: bytes) -> Start | None:
    return parse_start(printed.decode(errors="replace"), now_s())


def _started_anew(before: Start | None, now: Start | None) -> bool:
    return before is not None and (now is None or not before.is_same(now))


def _readable(files: list[str] | tuple[str, ...]) -> list[str]:
    paths = [str(Path(file).expanduser()) for file in files]
    return [file for file in paths if os.access(file, os.R_OK) and Path(file).is_file()]


def wait_for(work: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
    """Runs a coroutine in the event loop of the ssh thread and returns its result. After `timeout_s` seconds it cancels
    the coroutine and raises TimeoutError; an interrupt cancels the coroutine too."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result(timeout_s)
    except NotInTime:
        if future.done():
            raise  # the coroutine itself raised it
        future.cancel()
        raise TimeoutError from None
    except BaseException:
        future.cancel()
        raise


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="pgtrial ssh", daemon=True).start()
    return loop
