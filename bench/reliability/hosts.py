"""A host that labs reach by ssh: a network namespace of this machine, with an sshd."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.machines.ssh.hosts import Host, two_hosts

from bench.reliability.kind import Campaign, Missing


@contextmanager
def host(campaign: Campaign) -> Iterator[Host]:
    """Yields a host on which root can log in by ssh. While the context lasts, HOME of this process is a directory with
    the key for it. Raises Missing."""
    if not Path("/usr/sbin/sshd").exists() or shutil.which("ip") is None:
        raise Missing("hosts behind ssh need sshd (package openssh-server) and ip (package iproute2)")
    home, before = campaign.scratch / "home", os.environ["HOME"]
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home)
        stack.callback(os.environ.__setitem__, "HOME", before)
        os.environ["HOME"] = str(home)
        folder = campaign.scratch / "hosts"
        stack.callback(shutil.rmtree, folder)
        yield stack.enter_context(two_hosts(folder, home))[0]
