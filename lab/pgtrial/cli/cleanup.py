"""`pgtrial cleanup`: stop and remove what a lab that ended abruptly left behind."""

from __future__ import annotations

from typing import Annotated

import typer

from pgtrial.loads.fleet import scratch
from pgtrial.servers.templates import Templates
from pgtrial.servers.workspace import clean, leftovers, state_root


def command(
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
