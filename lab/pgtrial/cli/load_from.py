"""The options that say from where the load comes, the same for every command that has them."""

from __future__ import annotations

from typing import Annotated

import typer

from pgtrial.study.load import with_fleet
from pgtrial.study.spec import StudySpec

Fleet = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        help="The Ray cluster whose machines make the load: auto, ray://HOST:10001, or local.",
        metavar="ADDRESS",
        show_default=False,
    ),
]
Machines = Annotated[
    int | None,
    typer.Option("--machines", help="How many of its machines; default: all.", min=1, show_default=False),
]
Pack = Annotated[
    bool,
    typer.Option("--pack", help="Let one machine run several engines, where there are fewer machines than asked for."),
]


def by_fleet(spec: StudySpec, fleet: str | None, machines: int | None, *, pack: bool) -> StudySpec:
    """The study with what was asked for; as it is, where nothing was. Raises StudyError."""
    if fleet is None and machines is None and not pack:
        return spec
    return with_fleet(spec, address=fleet, machines=machines, pack=pack or None)
