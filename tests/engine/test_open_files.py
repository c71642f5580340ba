"""The limit of open files: the programs raise it to what their threads and connections need."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require_engine
from tests.engine.programs import TIMEOUT_S

SOFT, HARD = 128, 4096
"""The limits with which the programs start. The threads of each test need more files than `SOFT`."""


def limited(*arguments: str) -> list[str]:
    """Returns the command line that starts the engine with the limits of open files."""
    limits = f"ulimit -Sn {SOFT} && ulimit -Hn {HARD}"
    return ["bash", "-c", f'{limits} && exec "$@"', "bash", str(require_engine()), *arguments]


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        limited(*arguments), cwd=directory, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )


@pytest.fixture
def null_server(tmp_path: Path) -> Iterator[Path]:
    """Starts a null server of 100 threads for 100 clients, and yields the directory of its socket."""
    command = limited("null-server", "--socket-dir", str(tmp_path), "--threads", "100", "--max-connections", "110")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        listens = process.stdout.readline()
        yield tmp_path
        process.terminate()
        said = process.communicate(timeout=TIMEOUT_S)[1]
    assert (process.returncode, said) == (0, "")
    assert listens.startswith("null-server: listening on ")


def test_a_test_of_the_machine_has_many_threads(tmp_path: Path) -> None:
    done = run(tmp_path, "sysbench", "cpu", "--threads=100", "--events=100", "--cpu-max-prime=3", "run")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "total number of events:              100" in done.stdout


@pytest.mark.parametrize("log", [(), ("--log",)])
def test_each_client_has_a_thread_and_a_connection(null_server: Path, tmp_path: Path, log: tuple[str, ...]) -> None:
    load = ["-n", "-S", "-c", "100", "-j", "100", "-t", "2", *log]
    done = run(tmp_path, "pgbench", *load, "-h", str(null_server), "-p", "5432", "-U", "me", "postgres")
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 200/200" in done.stdout
