"""Two hosts on one machine: network namespaces, each with its own sshd, and nothing else but the loopback device."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import psutil

from pgtrial.machines.posix import BOOT_ID

_LISTENING = "0A"
_SUDOERS = "/etc/sudoers"
TTL = "/proc/sys/net/ipv4/ip_default_ttl"
"""A value that each host has for itself here."""
WINDOWS_PORT = 2200
"""The port on which each host has an sshd that answers as a Windows host does."""
_WINDOWS = Path(__file__).with_name("windows_shell.py")
UNPRIVILEGED = "postgres"
"""The account with which tests log in on the second host. On the first host they log in as root."""
PATIENCE_S = 60
_PENALTIES_SINCE = (9, 8)
"""The version of OpenSSH from which on an address that is refused often, or whose session dies, is kept out a while."""
_DATA = "its dätä"
"""A name that has to be quoted for a shell."""


@dataclass
class Host:
    """A host: its namespace, its address as the lab sees it, its sshd, and a folder for data."""

    user: str
    namespace: str
    device: str
    address: str
    lab_address: str
    folder: Path
    sshd: psutil.Process = field(init=False)
    run_directories: set[str] = field(default_factory=set)
    _started: subprocess.Popen[bytes] = field(init=False)

    @property
    def login(self) -> str:
        return f"{self.user}@{self.address}"

    @property
    def data(self) -> Path:
        return self.folder / _DATA

    def drop_connections(self) -> None:
        """Kill the processes of sshd that serve a connection each."""
        for session in self.sshd.children():
            with suppress(psutil.NoSuchProcess):  # of a connection that was closed a moment ago
                session.kill()

    def boot(self) -> None:
        """Starts the host, on which nothing runs and nothing is mounted, with a new boot ID."""
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        self._started = started = _start_sshd(self.folder, self.namespace)
        for port in (22, WINDOWS_PORT):
            wait_until(lambda port=port: _answers(self.address, port, started))
        self.sshd = psutil.Process(started.pid)

    def crash(self) -> None:
        """Kills everything that runs on the host. Its mounts disappear with the last process that has them."""
        wait_until(self._kill_all)
        self._started.wait()
        for name in self.note_run_directories():
            shutil.rmtree(f"/tmp/{name}-jobs", ignore_errors=True)

    @contextmanager
    def account_with_sudo(self) -> Iterator[None]:
        """Lets the login's account become root without a password for as long as the context lasts; otherwise no
        account may.
        """
        sudoers = self.folder / "sudoers"
        sudoers.write_text(f"{self.user} ALL=(ALL) NOPASSWD: ALL\n")
        try:
            yield
        finally:
            sudoers.write_text("")

    def on_it(self, *command: str) -> str:
        """Runs a command on the host, and returns its output."""
        return ip("netns", "exec", self.namespace, *command)

    def ttl(self) -> str:
        """Returns the host's present TTL."""
        return self.on_it("cat", TTL).strip()

    def _pids(self) -> list[str]:
        return ip("netns", "pids", self.namespace).split()

    def _kill_all(self) -> bool:
        """Kills the host's processes. Returns True only if there were none, since a process may start another one while
        it is killed.
        """
        pids = self._pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return not pids

    def commands(self) -> list[str]:
        """Returns the commands that run on the host, without sshd's own processes."""
        found = [words for pid in self._pids() if (words := _words(pid))]
        return [" ".join(words) for words in found if not Path(words[0]).name.startswith("sshd")]

    def ports(self) -> set[int]:
        """Returns the TCP ports that somebody listens on."""
        lines = Path(f"/proc/{self.sshd.pid}/net/tcp").read_text().splitlines()[1:]
        fields = [line.split() for line in lines]
        return {int(field[1].rpartition(":")[2], 16) for field in fields if field[3] == _LISTENING}

    def mounts(self) -> list[str]:
        """Mounts of pgtrial's, which only the host's own processes see."""
        lines = Path(f"/proc/{self.sshd.pid}/mountinfo").read_text().splitlines()
        return [target for line in lines if (target := line.split()[4]).startswith(f"{self.folder}/")]

    def asked_windows(self) -> list[str]:
        """Returns the first word of each command that was sent to the sshd that answers as Windows."""
        return (self.folder / "asked").read_text().split()

    def note_run_directories(self) -> set[str]:
        """Records pgtrial's run directories on the host and returns all that were ever recorded. `left` also reports
        the files that these runs have outside of `data`.
        """
        self.run_directories |= {path.name for path in self.data.glob("pgtrial-*")}
        return self.run_directories

    def left(self) -> list[str]:
        """Returns everything of pgtrial that is left on the host: files, commands, mounts and open ports."""
        jobs = [Path("/tmp") / f"{name}-jobs" for name in self.run_directories]
        files = [*self.data.glob("*"), *(path for path in jobs if path.exists())]
        return [*map(str, files), *self.commands(), *self.mounts(), *map(str, self.ports() - {22, WINDOWS_PORT})]

    def left_in_the_end(self) -> list[str]:
        """Returns what is left of pgtrial once the shells of closed connections have ended."""
        deadline = time.monotonic() + PATIENCE_S
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left


@contextmanager
def two_hosts(folder: Path, home: Path) -> Iterator[list[Host]]:
    """Yields two hosts that accept the key in `home`/.ssh; the known_hosts there has the hosts' own keys."""
    ssh = home / ".ssh"
    ssh.mkdir(parents=True, mode=0o700)
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(ssh / "id_ed25519")
    (ssh / "id_ed25519").chmod(0o600)
    with ExitStack() as stack:
        logins = [("a", "root"), ("b", UNPRIVILEGED)]
        hosts = [stack.enter_context(_host(folder / name, user, key)) for name, user in logins]
        known = [(host, (host.folder / "host_key.pub").read_text().split()[:2]) for host in hosts]
        (ssh / "known_hosts").write_text(
            "".join(f"{host.address},[{host.address}]:{WINDOWS_PORT} {' '.join(words)}\n" for host, words in known)
        )
        yield hosts


@contextmanager
def _host(folder: Path, user: str, key: asyncssh.SSHKey) -> Iterator[Host]:
    (folder / _DATA).mkdir(parents=True)
    shutil.chown(folder / _DATA, user)
    folder.chmod(0o755)
    namespace, network = _new_namespace()
    device = namespace
    with ExitStack() as stack:
        stack.callback(ip, "netns", "del", namespace)
        ip("link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        stack.callback(ip, "link", "del", device)
        ip("addr", "add", f"{network}.1/30", "dev", device)
        ip("link", "set", device, "up")
        ip("-n", namespace, "addr", "add", f"{network}.2/30", "dev", "eth0")
        for own in ("lo", "eth0"):
            ip("-n", namespace, "link", "set", own, "up")
        _configure_sshd(folder, f"{network}.2", key)
        host = Host(user, namespace, device, f"{network}.2", f"{network}.1", folder)
        # it would keep the namespace
        stack.callback(host.crash)
        host.boot()
        yield host


def _new_namespace() -> tuple[str, str]:
    """Makes a network namespace, and returns its name with the first three numbers of the addresses that lead to it.

    No other run of these tests uses these addresses, and no earlier run that was killed has left anything of them.
    """
    taken = ip("-o", "addr") + ip("rule") + ip("route")
    for number in range(1, 255):
        name, network = f"pgt213-{number}", f"10.213.{number}"
        if f"{network}." in taken or Path("/run/netns", name).exists():
            continue
        try:
            ip("netns", "add", name)
        except subprocess.CalledProcessError:
            if not Path("/run/netns", name).exists():
                raise
        else:
            return name, network
    raise AssertionError("no namespace of the tests' own is free; see `ip netns`")


def _configure_sshd(folder: Path, address: str, key: asyncssh.SSHKey) -> None:
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    host_key.write_private_key(folder / "host_key")
    (folder / "host_key").chmod(0o600)
    host_key.write_public_key(folder / "host_key.pub")
    key.write_public_key(folder / "authorized_keys")
    settings = {
        "Port": f"22\nPort {WINDOWS_PORT}",
        "ListenAddress": address,
        "HostKey": folder / "host_key",
        "AuthorizedKeysFile": folder / "authorized_keys",
        "PidFile": folder / "sshd.pid",
        "PermitRootLogin": "yes",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "StrictModes": "no",
        "UsePAM": "no",
        # as a user's start-up files might, where the login's shell is bash
        "SetEnv": f"BASH_ENV={folder}/greeting",
        **({"PerSourcePenalties": "no"} if _version_of_sshd() >= _PENALTIES_SINCE else {}),
        f"Match LocalPort {WINDOWS_PORT}\nForceCommand": f"exec {sys.executable} {_WINDOWS} {folder}/asked",
    }
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    (folder / "authorized_keys").chmod(0o644)
    (folder / "greeting").write_text("echo Welcome; echo Mind the step >&2\n")
    (folder / "sudoers").touch(mode=0o440)
    # without PAM, sshd lets nobody in whose password is locked; only this host sees another file
    shadow = Path("/etc/shadow").read_text().replace(f"\n{UNPRIVILEGED}:!", f"\n{UNPRIVILEGED}:*")
    (folder / "shadow").touch(mode=0o600)
    (folder / "shadow").write_text(shadow)


def _version_of_sshd() -> tuple[int, ...]:
    told = subprocess.run(["/usr/sbin/sshd", "-V"], check=False, capture_output=True, text=True)
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", told.stderr + told.stdout)
    assert found is not None
    return tuple(map(int, found.groups()))


def _start_sshd(folder: Path, namespace: str) -> subprocess.Popen[bytes]:
    seen = {"shadow": "/etc/shadow", "boot_id": BOOT_ID, "sudoers": _SUDOERS}
    own = [f"mount --bind {folder}/{name} {path}" for name, path in seen.items() if Path(path).exists()]
    # sshd wants a directory there
    own.append("mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd")
    own.append('exec "$@"')
    command = ["/usr/sbin/sshd", "-D", "-f", folder / "sshd_config", "-E", folder / "sshd.log"]
    return subprocess.Popen(
        ["ip", "netns", "exec", namespace, "sh", "-c", " && ".join(own), "sh", *command], stdin=subprocess.DEVNULL
    )


def wait_until(happened: Callable[[], object]) -> None:
    """Look again and again, for as long as a loaded machine may need."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _answers(address: str, port: int, sshd: subprocess.Popen[bytes]) -> bool:
    assert sshd.poll() is None, "sshd ended at once; see its log"
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def _words(pid: str) -> list[str]:
    """Returns the command line of a process; empty for one that has ended, or has no command line yet."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
