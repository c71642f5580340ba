"""The agent, an object that runs on a machine of the fleet: it starts engines there, passes on their output to the lab,
and removes all its files at its end.

Ray sends the class itself to the machines, so that they need Ray but not pgtrial. Therefore this module imports only
the standard library.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import platform
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from typing import IO, Any

_NAME = "pgtrial-engine"
_TAIL_LINES = 40
_MOST_LINES = 5000
_TRY_S = 30.0
_ADDRESSES = 4
_NO_CARD = 1 << 40

_STOP_GRACE_S = 5.0

_WATCHDOG = """
import os, shutil, signal, subprocess, sys, time
if os.fork():
    os._exit(0)
os.setsid()
engines = {}
def born(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19]
    except OSError:
        return subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], stdout=subprocess.PIPE).stdout
for line in sys.stdin:
    word, pid = line.split()
    if word == "begun":
        engines[int(pid)] = born(int(pid))
    else:
        engines.pop(int(pid), None)
def send(pid, number):
    try:
        if born(pid) != engines[pid]:
            raise ProcessLookupError
        os.kill(pid, number)
    except ProcessLookupError:
        engines.pop(pid, None)
deadline = time.monotonic() + float(sys.argv[2])
for pid in list(engines):
    send(pid, signal.SIGTERM)
while engines and time.monotonic() < deadline:
    time.sleep(0.05)
    for pid in list(engines):
        send(pid, 0)
for pid in list(engines):
    send(pid, signal.SIGKILL)
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
"""The program of a watchdog process. When the agent's end of the pipe is closed, the watchdog ends the engines and
removes the agent's folder.

The watchdog first sends SIGTERM, so that an engine can cancel its statements on the server, and kills engines that do
not end in time.
"""


def identity() -> str:
    """Returns a text that identifies this machine. All processes on the machine get the same text. A container counts
    as a machine of its own."""
    known = [socket.gethostname(), kernel()]
    card = uuid.getnode()
    # without a network card, uuid.getnode() returns a random number in each process, with this bit set (RFC 9562,
    # section 6.10)
    if not card & _NO_CARD:
        known.append(str(card))
    with contextlib.suppress(OSError):
        known += [str(os.stat(f"/proc/self/ns/{kind}").st_ino) for kind in ("net", "mnt")]
    return " ".join(known)


def kernel() -> str:
    """Returns a text that identifies the running kernel, and thus the CPUs; empty if it is not known.

    Containers on one machine share a kernel.
    """
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
        return boot.read().strip()
    return ""


def kind_of_machine() -> str:
    """Returns the operating system and the processor architecture of this machine, such as `Linux x86_64`. A program
    runs here only if it is built for both."""
    return f"{platform.system()} {platform.machine()}"


class Agent:
    """The agent of one machine of a fleet: an object in a process there, whose methods the lab calls through Ray. The
    methods return problems of the engine and of the network as texts, and do not raise exceptions for them."""

    def __init__(self) -> None:
        self._scratch = tempfile.mkdtemp(prefix="pgtrial-")
        self._watchdog: subprocess.Popen[str] | None = None
        if hasattr(os, "fork"):
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _WATCHDOG, self._scratch, str(_STOP_GRACE_S)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._watchdog.wait()
        self._engine = ""
        self._running: dict[str, _Running] = {}
        """The engines, by the names that the lab gave them. Engines that have ended stay in this dictionary, so that
        their messages can be read, until another one begins."""

    def describe(self) -> dict[str, Any]:
        """Returns a description of the machine: host name, system and processor, identity, kernel, and the number of
        CPUs."""
        return {
            "host": socket.gethostname(),
            "kind": kind_of_machine(),
            "identity": identity(),
            "kernel": kernel(),
            "cpus": os.cpu_count() or 1,
        }

    def clock(self) -> tuple[float, float]:
        """Returns the times at which this call arrived and was answered, in Unix seconds by this machine's clock. The
        lab measures the difference between the clocks by them."""
        came = time.time()
        return came, time.time()

    def find_engine(self, digest: str) -> bool:
        """Looks for an engine that is installed on this machine and whose file has this SHA-256. If there is one, uses
        it from now on and returns true; otherwise returns false."""
        beside = os.path.join(os.path.dirname(sys.executable), _NAME)
        for path in (os.environ.get("PGTRIAL_ENGINE"), beside, shutil.which(_NAME)):
            if path and os.access(path, os.X_OK) and _digest(path) == digest:
                self._engine = os.path.abspath(path)
                return True
        return False

    def take_engine(self, binary: bytes) -> None:
        """Stores an engine that the lab has sent, readable and executable only for this account, and uses it from now
        on."""
        self._engine = os.path.join(self._scratch, _NAME)
        with open(os.open(self._engine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as file:
            file.write(binary)

    def complaint_of_engine(self) -> str | None:
        """Returns why the engine cannot run on this machine; None if it can."""
        command = [self._engine, "--version"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_TRY_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return getattr(error, "strerror", None) or str(error)
        lines = (done.stderr or done.stdout).strip().splitlines()
        return None if done.returncode == 0 else lines[-1] if lines else f"it ended with status {done.returncode}"

    def complaint_about(self, host: str, port: int, patience_s: float) -> str | None:
        """Returns why this machine cannot connect to the server's address within `patience_s` seconds; None if it
        can."""
        try:
            with socket.create_connection((host, port), timeout=patience_s):
                return None
        except OSError as error:
            return error.strerror or str(error) or type(error).__name__

    def round_trips(self, host: str, port: int, times: int, patience_s: float) -> list[float]:
        """Returns the times, in microseconds, of `times` TCP connects, each of which takes one network round trip; []
        if one fails.

        The host name is resolved beforehand, and its first address that answers is used, as clients do. The kernel of
        the server's machine accepts the connections, so the time of PostgreSQL is not part of these times.
        """
        with contextlib.suppress(OSError):
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for family, kind, protocol, _, address in addresses[:_ADDRESSES]:
                trips = []
                with contextlib.suppress(OSError):
                    for _ in range(times):
                        with socket.socket(family, kind, protocol) as probe:
                            probe.settimeout(patience_s)
                            begin = time.perf_counter()
                            probe.connect(address)
                            trips.append((time.perf_counter() - begin) * 1e6)
                    return trips
        return []

    def begin(self, name: str, order: dict[str, Any]) -> str | None:
        """Starts an engine under a name, by which later calls refer to it. Returns the reason if the engine cannot be
        started; otherwise None.

        The order has the keys `arguments`, `environment`, `files` (contents by name, which are written into the
        engine's working directory), `cpus` (a list of CPU numbers, or None for all), and `one_output` (true if standard
        error is merged into standard output).
        """
        for ended in [begun for begun, running in list(self._running.items()) if running.is_over]:
            self._running.pop(ended, None)
        here = tempfile.mkdtemp(dir=self._scratch)
        for path, content in order["files"].items():
            with open(os.open(os.path.join(here, path), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(content)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        try:
            with _running_on(order["cpus"]):
                process = subprocess.Popen(
                    [self._engine, *order["arguments"]],
                    env={**kept, **order["environment"]},
                    cwd=here,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if order["one_output"] else subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                )
        except (OSError, ValueError) as error:
            shutil.rmtree(here, ignore_errors=True)
            return str(error)
        self._notify_watchdog("begun", process.pid)
        self._running[name] = _Running(process, here)
        return None

    def lines(self, name: str, longest_s: float) -> tuple[list[str], bool]:
        """Returns the lines of output since the last call, and true if the output has ended. Waits up to `longest_s`
        seconds for the first line."""
        running = self._running.get(name)
        return running.lines(longest_s) if running is not None else ([], True)

    def go(self, name: str, at: float) -> None:
        """Sends an engine its start time, in Unix seconds by this machine's clock."""
        running = self._running.get(name)
        if running is not None and running.process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                running.process.stdin.write(f"{at:.6f}\n")
                running.process.stdin.close()

    def interrupt(self, name: str) -> None:
        """Asks an engine to stop. The engine still reports what it has measured."""
        running = self._running.get(name)
        if running is not None and running.process.poll() is None:
            # SIGTERM, since processes that Ray starts block SIGINT
            running.process.terminate()

    def end(self, name: str, patience_s: float) -> dict[str, Any]:
        """Waits until an engine has ended, and kills it after `patience_s` seconds. Returns its exit `status`, negative
        for a signal, and its last `messages`."""
        running = self._running.get(name)
        if running is None:
            return {"status": None, "messages": []}
        status = running.end(patience_s)
        self._notify_watchdog("over", running.process.pid)
        return {"status": status, "messages": list(running.tail)}

    def close(self) -> None:
        """Ends all engines that the agent has started, and removes the agent's files."""
        for running in list(self._running.values()):
            running.kill()
        shutil.rmtree(self._scratch, ignore_errors=True)
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.close()

    def _notify_watchdog(self, word: str, pid: int) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with contextlib.suppress(OSError):
                self._watchdog.stdin.write(f"{word} {pid}\n")
                self._watchdog.stdin.flush()


class _Running:
    """A running engine with its output and its working directory."""

    def __init__(self, process: subprocess.Popen[str], here: str) -> None:
        self.process = process
        self.tail: collections.deque[str] = collections.deque(maxlen=_TAIL_LINES)
        """The engine's last lines on standard error."""
        self.is_over = False
        self._here = here
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        messages = (line.strip() for line in process.stderr or () if line.strip())
        self._readers = [
            threading.Thread(target=_read_lines, args=(process.stdout, self._lines), daemon=True),
            threading.Thread(target=self.tail.extend, args=(messages,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def lines(self, longest_s: float) -> tuple[list[str], bool]:
        lines: list[str] = []
        with contextlib.suppress(queue.Empty):
            line = self._lines.get(timeout=longest_s)
            while line is not None and len(lines) < _MOST_LINES:
                lines.append(line)
                line = self._lines.get_nowait()
            if line is None:
                return lines, True
            lines.append(line)
        return lines, False

    def end(self, patience_s: float) -> int:
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
        for reader in self._readers:
            reader.join(patience_s)
        shutil.rmtree(self._here, ignore_errors=True)
        self.is_over = True
        return self.process.returncode

    def kill(self) -> None:
        """Ends the engine: first by SIGTERM, on which it cancels its statements on the server, and some seconds later
        by SIGKILL."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _read_lines(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _digest(path: str) -> str | None:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


@contextlib.contextmanager
def _running_on(cpus: list[int] | None) -> Any:
    """A context in which started processes may run on these CPUs only."""
    if cpus is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError("this system does not let a process choose its CPUs")
    former = os.sched_getaffinity(0)
    if missing := sorted(set(cpus) - former):
        raise ValueError(f"the machine does not let the engine use these CPUs: {', '.join(map(str, missing))}")
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, former)
