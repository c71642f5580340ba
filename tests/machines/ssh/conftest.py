import pwd
import shutil
import socket
from pathlib import Path

import pytest

from tests.conftest import require, require_root, require_server
from tests.machines.ssh.hosts import UNPRIVILEGED, WINDOWS_PORT, two_hosts


@pytest.fixture(scope="package", autouse=True)
def names_that_are_none():
    """Names below .invalid have no address (RFC 6761), though this machine's name server may be silent about them."""
    asked = socket.getaddrinfo

    def answer(host, *more, **named):
        if isinstance(host, str) and host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return asked(host, *more, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", answer)
        yield


@pytest.fixture(scope="package")
def ssh_home(tmp_path_factory):
    """Yields the home of a user whose keys and known_hosts lead to the hosts, and to no others."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.delenv("SSH_AUTH_SOCK", raising=False)
        yield home


@pytest.fixture(scope="package")
def hosts(state_root, ssh_home):
    """Yields two hosts, which are removed at the end."""
    require_root()
    require(Path("/usr/sbin/sshd").exists(), "sshd (package openssh-server)")
    require(shutil.which("ip"), "ip (package iproute2)")
    require(_exists(UNPRIVILEGED), f"a user {UNPRIVILEGED} (package postgresql-15)")
    folder = state_root / "hosts"
    with two_hosts(folder, ssh_home) as made:
        yield made
    shutil.rmtree(folder)


def _exists(user):
    try:
        return pwd.getpwnam(user)
    except KeyError:
        return None


@pytest.fixture(scope="package")
def postgres(workspace):
    """Returns a bin directory that the account of servers can reach."""
    return str(workspace.reachable(require_server(18)).bin)


@pytest.fixture
def windows(hosts, ssh_home):
    """Yields a host name of the ssh configuration. It leads to the sshd of the first host that answers as
    Windows does.
    """
    configuration = ssh_home / ".ssh/config"
    configuration.write_text(f"Host windows\n  HostName {hosts[0].address}\n  User root\n  Port {WINDOWS_PORT}\n")
    yield "windows"
    configuration.unlink()


@pytest.fixture
def known_hosts(hosts, ssh_home):
    """Yields the file with the keys of the hosts, which a test may change."""
    file = ssh_home / ".ssh/known_hosts"
    text = file.read_text()
    yield file
    file.write_text(text)
