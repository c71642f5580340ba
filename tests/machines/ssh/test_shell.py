"""Tests of what pgtrial concludes about a host when the shell that it started there has ended."""

from __future__ import annotations

import asyncio

import pytest

from pgtrial.machines.ssh.shell import Ended, Shell

pytestmark = pytest.mark.machine


class Gone:
    """A process of a connection that was gone before it had said anything; it is its own streams, too."""

    def __init__(self, exit_status):
        self.exit_status = exit_status
        self.stdin = self.stdout = self.stderr = self

    def write(self, script):
        del script

    async def read(self, size=-1):
        del size
        return b""

    async def wait_closed(self):
        return


@pytest.mark.parametrize(
    ("exit_status", "refused"),
    [(127, 127), (0, 0), (None, None), (-1, None)],
    ids=["no such shell", "another kind of shell", "its connection is lost", "killed, as when its host shuts down"],
)
def test_only_a_shell_that_ended_of_itself_has_refused(exit_status, refused):
    with pytest.raises(Ended) as ended:
        asyncio.run(Shell(Gone(exit_status)).run(b"true"))
    assert ended.value.status == refused
