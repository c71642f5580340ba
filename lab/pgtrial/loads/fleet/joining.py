"""Joins a Ray cluster, or says in one sentence why that failed. Ray's own output is not shown, but searched for the
cause."""

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
"""The first bytes that a gRPC client sends: the preface of HTTP/2 with an empty SETTINGS frame (RFC 9113, section
3.4)."""
_FRAME, _SETTINGS = 9, 4
"""The length of a frame's header in bytes, and the type of the frame (SETTINGS) with which a server answers."""

EXTRA = "pip install 'pgtrial[ray]'"

_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")
_TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_TOKEN = "Ray reads it from ~/.ray/auth_token or RAY_AUTH_TOKEN where RAY_AUTH_MODE=token is set"


def import_ray() -> Any:
    """Imports Ray, and returns its module. Raises StudyError if it is not installed."""
    former = sys.excepthook
    try:
        import ray  # noqa: PLC0415
    except ImportError:
        raise StudyError(f"a fleet needs ray, which is not installed; install it with: {EXTRA}") from None
    finally:
        sys.excepthook = former
    return ray


def resolved(address: str) -> str:
    """Returns the address of the cluster. `auto` is replaced by the address of the cluster on this machine, which is
    found in the same way as Ray's own tools find it. Raises StudyError if no cluster runs on this machine, or if
    another account could have written the file that names it."""
    if address != AUTO:
        return address
    # Ray's own "auto" would take any cluster whose processes it finds on this machine; in Ray 2.60, actors of such
    # drivers are cancelled
    noted = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    with suppress(FileNotFoundError):
        if address_of_cluster := os.environ.get("RAY_ADDRESS") or _read_own(noted).strip():
            _take_token()
            return address_of_cluster
    raise StudyError(
        "no Ray cluster runs on this machine; start one (`ray start --head`), name another by --fleet "
        'ray://HOST:10001, or write "local" for a cluster that pgtrial starts for this run'
    )


def _read_own(noted: Path) -> str:
    """Returns the content of the file in which Ray notes the address of the cluster on this machine.

    All accounts can write in Ray's directory, so the owner of the file itself is checked. Raises FileNotFoundError, and
    StudyError if another account could have written the file.
    """
    try:
        folder = os.open(noted.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            # the file is opened relative to the checked folder, so that nobody can replace the folder in between
            with open(noted.name, opener=partial(_open_own, folder)) as file:
                return file.read(_LONGEST_NOTE)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StudyError(
            f"pgtrial does not trust {noted}, in which Ray notes the address of its cluster: {why}; name the Ray "
            "cluster, --fleet HOST:PORT or --fleet ray://HOST:10001, or remove the file"
        ) from None


def _open_own(folder: int, name: str, flags: int) -> int:
    if (owner := os.fstat(folder).st_uid) not in (0, os.geteuid()):
        raise ValueError(f"its directory belongs to another account (number {owner})")
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode):
            raise ValueError("it is not a regular file")
        if there.st_uid not in (0, os.geteuid()):
            raise ValueError(f"it belongs to another account (number {there.st_uid})")
        if there.st_mode & stat.S_IWOTH or (there.st_mode & stat.S_IWGRP and there.st_gid not in (0, os.getegid())):
            raise ValueError("it can be written by other accounts")
    except ValueError:
        os.close(descriptor)
        raise
    return descriptor


_LONGEST_NOTE = 4096
"""The largest number of characters that are read from the file in which Ray notes the address of the cluster."""


def check_listens(address: str) -> None:
    """Raises StudyError if Ray does not listen at the address. Without this check, Ray would try to connect for
    minutes."""
    if address == LOCAL:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S) as probe:
            # a connection with TLS would need an encrypted preface
            if os.environ.get("RAY_USE_TLS", "0") == "0" and not _speaks_grpc(probe):
                raise no_cluster(address, "the program that listens there is not Ray")
    except (OSError, OverflowError) as error:
        raise no_cluster(address, getattr(error, "strerror", None) or str(error)) from None


def connect(ray: Any, section: FleetSection, folder: str | None) -> None:
    """Joins the cluster, or starts a cluster for this run, whose files are in `folder`. Raises StudyError with the
    cause if Ray cannot join or start it."""
    address = section.address
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    # Ray has no option to hide the long messages about a lost node, which the lab reports in one sentence
    vars(ray._private.worker)["print_to_stdstream"] = lambda *arguments, **options: None
    with _kept_errors() as kept:
        try:
            if address == LOCAL:
                cpus = max(section.machines or 1, os.cpu_count() or 1)
                ray.init(address=LOCAL, num_cpus=cpus, include_dashboard=False, _temp_dir=folder, **quiet)
            else:
                ray.init(address=address, **quiet)
        except Exception as error:  # noqa: BLE001  (Ray raises a plain Exception when its start takes too long)
            raise _not_joined(address, error, _read(kept)) from None


@contextmanager
def token_of_its_own() -> Iterator[None]:
    """Provides a token for a cluster that is started for this run.

    Otherwise Ray would write a token into the user's home directory, and every cluster that is started later would ask
    for it.
    """
    if any(name in os.environ for name in _TOKENS):
        yield
        return
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        yield
    finally:
        for name in _TOKENS:  # RAY_AUTH_MODE is among them, since Ray itself has set it
            os.environ.pop(name, None)


def no_cluster(address: str, why: str) -> StudyError:
    """Returns the error for an address at which no Ray cluster answers, with advice what to check. `why` is the
    cause."""
    return StudyError(
        f"there is no Ray cluster at {address}: {why}; check that the cluster runs (`ray status`), that the address is "
        "right (ray://HOST:10001 of its head node, or HOST:6379 on a machine of the cluster), and that no firewall "
        "blocks the connection"
    )


def first_sentence(error: BaseException) -> str:
    """Returns the first line of an error of Ray, or the name of the error's type if it has no text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


@contextmanager
def kept_quiet() -> Iterator[None]:
    """Hides Ray's warnings within the context, and afterwards restores the lab's signal handler, which Ray replaces."""
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
    """Returns the error for a cluster that could not be joined, with the cause if Ray's error or the text that Ray
    `printed` before it shows the cause."""
    if isinstance(error, ImportError) or "ray[client]" in str(error):
        return StudyError(f"a cluster at ray:// needs Ray's client, which is not installed; install it with: {EXTRA}")
    versions = _VERSIONS.findall(str(error))
    if len(versions) == 2:
        (rays, pythons), (own_ray, own_python) = versions
        cure = f"pip install 'ray[client]=={rays}'" if rays != own_ray else f"pgtrial in a venv of Python {pythons}"
        return StudyError(
            f"the Ray cluster at {address} has Ray {rays} and Python {pythons}, but this machine has Ray {own_ray} and "
            f"Python {own_python}; both need the same versions: {cure}"
        )
    if "Unauthenticated" in printed or type(error).__name__ == "AuthenticationError":
        return StudyError(f"the Ray cluster at {address} asks for a token that pgtrial does not have; {_TOKEN}")
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
    """Makes Ray use the token (its password for a cluster) that it has stored on this machine, if there is one, as
    Ray's own address "auto" does."""
    with suppress(ImportError):  # before Ray 2.60 there are no automatic tokens
        from ray._private.authentication import authentication_token_setup as tokens  # noqa: PLC0415

        with kept_quiet(), _kept_errors():
            tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


@contextmanager
def _kept_errors() -> Iterator[IO[bytes]]:
    """A context in which everything that this process and its libraries write to standard error goes to a temporary
    file, whose text pgtrial can search for the cause of a failure."""
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
