"""A shell on another host that stays open and runs many scripts, one after the other.

A separate login for each command would run the user's start-up files each time, which would load the host more than the
command itself.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from contextlib import suppress

import asyncssh

_CHUNK = 65536
_STATUS_TIMEOUT_S = 5.0


class Ended(Exception):
    """Raised when the shell has ended: by itself, with an exit status and last words, or because its connection was
    lost (`status` is None)."""

    def __init__(self, status: int | None = None, words: str = "") -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Shell:
    """A `/bin/sh` that runs in its own session of an ssh connection. It starts a child shell for each script."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process
        self._answered = False

    @classmethod
    async def open(cls, connection: asyncssh.SSHClientConnection) -> Shell:
        """Opens a shell on a connection. Raises asyncssh.ChannelOpenError."""
        return cls(await connection.create_process("exec /bin/sh", encoding=None))

    async def run(self, script: bytes) -> tuple[int, bytes, bytes]:
        """Runs a script and returns its exit status, standard output and standard error. Raises Ended if the shell has
        ended."""
        if not self._answered:
            await self._answer(b":")  # discards the output of the user's start-up files
        return await self._answer(script)

    async def _answer(self, script: bytes) -> tuple[int, bytes, bytes]:
        mark = secrets.token_hex(16).encode()
        try:
            self._process.stdin.write(
                b"/bin/sh -s <<'%(mark)s'\n%(script)s\n%(mark)s\n"
                b"printf '\\n%(mark)s %%s\\n' $?; printf '\\n%(mark)s 0\\n' >&2\n"
                % {b"mark": mark, b"script": script.removesuffix(b"\n")}
            )
            (output, status), (errors, _) = await asyncio.gather(
                _until(self._process.stdout, mark), _until(self._process.stderr, mark)
            )
        except (EOFError, OSError, asyncssh.Error):
            raise await self._ended() from None
        self._answered = True
        return status, output, errors

    def close(self) -> None:
        """Closes the shell. A script that it runs at that moment continues."""
        self._process.close()

    async def _ended(self) -> Ended:
        if self._answered:
            return Ended()
        with suppress(TimeoutError):  # the end of the output may arrive before the exit status
            await asyncio.wait_for(self._process.wait_closed(), _STATUS_TIMEOUT_S)
        status = self._process.exit_status
        if status is None or status < 0:  # killed by a signal: its output does not explain why
            return Ended()
        words = (await self._process.stderr.read() + await self._process.stdout.read()).decode(errors="replace")
        return Ended(status, " ".join(words.split())[:200])


async def _until(reader: asyncssh.SSHReader[bytes], mark: bytes) -> tuple[bytes, int]:
    """Reads the shell's output up to a line with the mark, a text by which the shell shows that a script has ended.
    Returns the bytes before that line, and the number that follows the mark in it. Raises EOFError if the output ends
    without such a line."""
    end = re.compile(rb"\n%s (\d+)\n\Z" % mark)
    content = bytearray()
    while True:
        chunk = await reader.read(_CHUNK)
        if not chunk:
            raise EOFError
        content += chunk
        # search only the new bytes, and before them as many bytes as the line with the mark has
        match = end.search(content, max(0, len(content) - len(mark) - 16))
        if match is not None:
            return bytes(content[: match.start()]), int(match[1])
