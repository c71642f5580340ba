"""The program that writes captures, as tests call it, and packed logs for it."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from pathlib import Path

from tests.conftest import require, require_engine
from tests.engine import captures
from tests.engine.captures import Capture


def capture(*args: object, typed: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [str(require_engine()), "capture", *map(str, args)]
    return subprocess.run(command, check=False, capture_output=True, input=typed)


def captured(directory: Path, *args: object) -> Capture:
    """Runs a capture with the engine and asserts that it succeeds."""
    done = capture("-o", directory, *args)
    assert done.returncode == 0, done.stderr.decode()
    return captures.read(directory)


def refused(*args: object, typed: bytes | None = None) -> str:
    """Returns the one line with which the program refuses a capture."""
    done = capture(*args, typed=typed)
    line = done.stderr.decode()
    assert (done.returncode, done.stdout, line.count("\n")) == (3, b"", 1), line
    return line.removeprefix("pgtrial-engine capture: error: ").rstrip("\n")


PACKINGS = ("gzip", "xz", "zstd")


def packed(packing: str, text: bytes) -> bytes:
    """Returns a text compressed with gzip, xz or zstd."""
    if packing == "gzip":
        return gzip.compress(text, 1)
    if packing == "xz":
        return lzma.compress(text)
    require(shutil.which("zstd"), "the zstd command")
    return subprocess.run(["zstd", "-q", "-c"], input=text, check=True, capture_output=True).stdout
