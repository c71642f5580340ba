"""`pgtrial pack`: checks the files of a pack (a workload in a folder of SQL files) and runs the pack on a new server,
or lists the packs that come with pgtrial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pgtrial.cli.output import line
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.conduct.packs import study_of, try_out
from pgtrial.model.errors import StudyError
from pgtrial.model.study.packs import BUNDLED
from pgtrial.model.units import plural
from pgtrial.report.table import Table, by_position
from pgtrial.store.workloads import FoundPack, described_packs, find_pack


def pack_command(
    action: Annotated[
        Literal["check", "list"],
        typer.Argument(
            help="What to do. check: check whether a pack works. list: list the packs that come with pgtrial."
        ),
    ],
    pack: Annotated[
        str | None,
        typer.Argument(
            help="For check: the folder of a pack, or the name of a pack that comes with pgtrial (NAME or pack:NAME)."
        ),
    ] = None,
    *,
    postgres: Annotated[
        str,
        typer.Option(help="The PostgreSQL server with which the pack is checked: a major version or a bin directory."),
    ] = "18",
    scale: Annotated[
        int | None,
        typer.Option(
            help="The scale of the data for the check. Default: the scale that a study with this pack has by default.",
            min=1,
            show_default=False,
        ),
    ] = None,
    files_only: Annotated[bool, typer.Option("--files-only", help="Check the files only, without a server.")] = False,
) -> None:
    """Check a pack, which is a workload in a folder of SQL files, or list the packs that come with pgtrial.

    `check` reads the files of the pack, loads its data into a new server, and runs all its checks and some transactions
    of each script. It prints each step. At the first error it prints the error and ends with exit status 3.
    """
    if action == "list":
        if pack is not None:
            raise StudyError(
                "`pgtrial pack list` does not take the name of a pack; to check the pack, run `pgtrial pack check "
                f"{pack}`"
            )
        _list()
        return
    if pack is None:
        raise StudyError("name the pack to check: a folder, or a pack that `pgtrial pack list` shows")
    workload, chosen = _found(pack)
    line(f"{chosen.name}: {chosen.pack.description}")
    line(f"files: {plural(len(chosen.files), 'file')}, {plural(len(chosen.pack.all_scripts), 'script')}")
    workloads = [workload if mix is None else f"{workload}/{mix}" for mix in chosen.pack.by_mix]
    spec = study_of(workloads, scale)
    if not files_only:
        try_out(spec, postgres, line)
    line("the pack can be used")


def _found(pack: str) -> tuple[str, FoundPack]:
    """Returns the name by which a study calls the workload, and the pack (a workload in a folder of SQL files) itself.
    `pack` is the text that the user typed: a folder or a name. Raises StudyError if there is no such pack."""
    bundled = not Path(pack).exists() and "/" not in pack and not pack.startswith(BUNDLED)
    workload = f"{BUNDLED}{pack}" if bundled else pack if pack.startswith((BUNDLED, "/")) else f"./{pack}"
    folder = find_pack(workload, Path(), "pgtrial pack check")
    if folder is None or folder.mix is not None:
        raise StudyError(f"{pack} is not the folder of a pack; name the folder that contains the file pack.toml")
    return workload.rstrip("/"), folder


def _list() -> None:
    rows = [
        (f"{BUNDLED}{name}", pack.description, ", ".join(mix for mix in pack.by_mix if mix is not None), pack.scale)
        for name, pack in described_packs().items()
    ]
    Terminal().print(
        for_terminal(Table("", rows, by_position("workload", "", "mixes", "one unit of scale", whole=[0])))
    )
