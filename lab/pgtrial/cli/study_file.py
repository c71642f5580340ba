"""Reading a study for a command: with the profile that was asked for, and the servers that this machine has.

The options about that are the same for every command that has them.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pgtrial.arm.servers import find_servers
from pgtrial.study.builds import Build
from pgtrial.study.load import profiles_of, read_study
from pgtrial.study.spec import StudySpec

Profile = Annotated[
    str | None, typer.Option(help="The profile of a study that has several; default: its first.", show_default=False)
]
Seed = Annotated[int | None, typer.Option(help="Seed of the order; default: the study's, else drawn.", min=0)]


def read(study: str, profile: str | None) -> StudySpec:
    """The spec of a study file or a bundled study (`@name`); says which profile it is where none was asked for."""
    names = profiles_of(study)
    if profile is None and names:
        profile = names[0]
        others = " or ".join(f"--profile {name}" for name in names[1:]) or "it has no other"
        print(f"pgtrial: profile {profile} of {study}; {others}", file=sys.stderr)
    return read_study(study, profile, builds_here)


def builds_here() -> list[Build]:
    """The server builds that `postgres = "every"` stands for."""
    return [Build(server.version, str(server.bin), server.origin.split()[0]) for server in find_servers()]
