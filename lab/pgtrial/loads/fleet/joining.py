"""Joins a Ray cluster, or says in one sentence why it cannot: what Ray prints meanwhile is read, not shown."""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import socket
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from pgtrial.model.errors import StudyError
from pgtrial.model.study.fleet import AUTO, LOCAL, FleetSection

_CONNECT_S = 5.0

_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The bytes with which a client of gRPC begins: the preface of HTTP/2 with empty settings (RFC 9113, section 3.4)."""
_FRAME, _SETTINGS = 9, 4
"""The number of bytes of a frame's header, and the kind of frame with which a server answers."""

EXTRA = "pip install 'pgtrial[ray]'"

_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")
_TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_TOKEN = "Ray reads it from ~/.ray/auth_token or RAY_AUTH_TOKEN where RAY_AUTH_MODE=token is set"


def import_ray() -> Any:
    """Returns the module of Ray. Raises StudyError if it is not installed."""
    former = sys.excepthook
    try:
        import ray  # noqa: PLC0415
    except ImportError:
        raise StudyError(f"a fleet needs ray, which is not installed; install it with: {EXTRA}") from None
    finally:
        sys.excepthook = former
    return ray


def resolved(address: str) -> str:
    """Returns the address of the cluster; `auto` is this machine's, as Ray's own tools find it. Raises StudyError."""
    if address != AUTO:
        return address
    # Ray's own "auto" takes any cluster whose processes it finds here; in Ray 2.60 actors of such drivers are cancelled
    noted = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    with suppress(FileNotFoundError):
        if address_of_cluster := os.environ.get("RAY_ADDRESS") or _read_own(noted).strip():
            _take_token()
            return address_of_cluster
    raise StudyError(
        "this machine belongs to no Ray cluster that runs; start one (`ray start --head`), name another by "
        '--fleet ray://HOST:10001, or take "local" for one made for the run'
    )


def _read_own(noted: Path) -> str:
    """Returns the text of Ray's note of the cluster on this machine.

    Ray lets all accounts write in its directory, so the account of the file itself is checked. Raises
    FileNotFoundError, and StudyError if another account could have written it.
    """
    try:
        folder = os.open(noted.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            # relative to the folder that was looked at: another one cannot take its place in between
            with open(noted.name, opener=partial(_open_own, folder)) as file:
                return file.read(_LONGEST_NOTE)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StudyError(
            f"{noted} is not believed: {why}; name the Ray cluster, --fleet HOST:PORT or --fleet ray://HOST:10001, or "
            "remove the file"
        ) from None


def _open_own(folder: int, name: str, flags: int) -> int:
    if (owner := os.fstat(folder).st_uid) not in (0, os.geteuid()):
        raise ValueError(f"its directory belongs to another account (number {owner})")
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode):
            raise ValueError("it is no file")
        if there.st_uid not in (0, os.geteuid()):
            raise ValueError(f"it belongs to another account (number {there.st_uid})")
        if there.st_mode & stat.S_IWOTH or (there.st_mode & stat.S_IWGRP and there.st_gid not in (0, os.getegid())):
            raise ValueError("it can be written by other accounts")
    except ValueError:
        os.close(descriptor)
        raise
    return descriptor


_LONGEST_NOTE = 4096
"""The largest number of characters that are read of Ray's note."""


def check_listens(address: str) -> None:
    """Raises StudyError if Ray does not listen at the address: Ray itself would try to connect for minutes."""
    if address == LOCAL:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S) as probe:
            # with TLS the hello would have to be encrypted
            if os.environ.get("RAY_USE_TLS", "0") == "0" and not _speaks_grpc(probe):
                raise no_cluster(address, "what listens there is not Ray")
    except (OSError, OverflowError) as error:
        raise no_cluster(address, getattr(error, "strerror", None) or str(error)) from None


def connect(ray: Any, section: FleetSection, folder: str | None) -> None:
    """Joins the cluster. One that is made for the run has its files in `folder`. Raises StudyError."""
    address = section.address
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    # no option keeps Ray from printing pages about a node that is lost, which the lab reports in one sentence
    vars(ray._private.worker)["print_to_stdstream"] = lambda *arguments, **options: None
    with _kept_errors() as kept:
        try:
            if address == LOCAL:
                cpus = max(section.machines or 1, os.cpu_count() or 1)
                ray.init(address=LOCAL, num_cpus=cpus, include_dashboard=False, _temp_dir=folder, **quiet)
            else:
                ray.init(address=address, **quiet)
        except Exception as error:  # noqa: BLE001  (Ray raises nothing more special when its start takes too long)
            raise _not_joined(address, error, _read(kept)) from None


@contextmanager
def token_of_its_own() -> Iterator[None]:
    """Gives a cluster that is made for the run its own token.

    Ray would write one into the user's home, and every head that is started from then on would ask for it.
    """
    if any(name in os.environ for name in _TOKENS):
        yield
        return
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        yield
    finally:
        for name in _TOKENS:  # Ray has set the mode
            os.environ.pop(name, None)


def no_cluster(address: str, why: str) -> StudyError:
    """Returns the error that there is no cluster at this address, and what to look at."""
    return StudyError(
        f"there is no Ray cluster at {address}: {why}; check that it runs (`ray status`), its address (of the head "
        "ray://HOST:10001, or HOST:6379 on a machine of the cluster), and that no firewall is between"
    )


def first_sentence(error: BaseException) -> str:
    """Returns the first line of an error of Ray, or the name of its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


@contextmanager
def kept_quiet() -> Iterator[None]:
    """Hides Ray's warnings within the context, and replaces the signal handler that Ray sets by the lab's own again."""
    main = threading.current_thread() is threading.main_thread()
    former = signal.getsignal(signal.SIGTERM) if main else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, former)


def _not_joined(address: str, error: Exception, printed: str) -> StudyError:
    """Returns why the cluster could not be joined, from the error or from what Ray has printed before it."""
    if isinstance(error, ImportError) or "ray[client]" in str(error):
        return StudyError(f"a cluster at ray:// needs Ray's client, which is not installed; {EXTRA} does so")
    versions = _VERSIONS.findall(str(error))
    if len(versions) == 2:
        (rays, pythons), (own_ray, own_python) = versions
        cure = f"pip install 'ray[client]=={rays}'" if rays != own_ray else f"pgtrial in a venv of Python {pythons}"
        return StudyError(
            f"the Ray cluster at {address} has Ray {rays} and Python {pythons}, and this machine Ray {own_ray} and "
            f"Python {own_python}; have the same on both: {cure}"
        )
    if "Unauthenticated" in printed or type(error).__name__ == "AuthenticationError":
        return StudyError(f"the Ray cluster at {address} asks for a token that the lab has not; {_TOKEN}")
    return no_cluster(address, first_sentence(error))


def _speaks_grpc(connection: socket.socket) -> bool:
    connection.settimeout(_CONNECT_S)
    answer = b""
    with suppress(OSError):
        connection.sendall(_HELLO)
        while len(answer) < _FRAME and (more := connection.recv(_FRAME)):
            answer += more
    return len(answer) >= _FRAME and answer[3] == _SETTINGS


def _take_token() -> None:
    """Shows the cluster of this machine the token that Ray keeps here, if there is one, as Ray's own "auto" does."""
    with suppress(ImportError):  # before Ray 2.60 there is no token unless it is asked for
        from ray._private.authentication import authentication_token_setup as tokens  # noqa: PLC0415

        with kept_quiet(), _kept_errors():
            tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


@contextmanager
def _kept_errors() -> Iterator[IO[bytes]]:
    """Returns a context in which everything that this process and its libraries write to the standard error is kept in
    a file."""
    with tempfile.TemporaryFile() as kept:
        try:
            former = os.dup(2)
        except OSError:  # this process has no standard error
            yield kept
            return
        os.dup2(kept.fileno(), 2)
        try:
            yield kept
        finally:
            os.dup2(former, 2)
            os.close(former)


def _read(kept: IO[bytes]) -> str:
    kept.seek(0)
    return kept.read().decode(errors="replace")
