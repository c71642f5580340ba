"""A study of somebody else is shown before it runs, and runs only if the user says so."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from pgtrial.cli.output import say, warn
from pgtrial.model.errors import StudyError
from pgtrial.model.study.cut_values import cut, kept
from pgtrial.model.study.effects import KINDS, SQL, Effect
from pgtrial.model.study.spec import StudySpec

Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Run a study that somebody else has made without asking. What it does is still shown first."
    ),
]
Allow = Annotated[
    str | None,
    typer.Option(
        help="What a study that somebody else has made is allowed to do besides SQL on servers that "
        "pgtrial makes, separated by commas: commands (start programs), servers (connect to "
        "given servers), machine (change this machine), sources (build from source), files (read "
        "files).",
        metavar="KINDS",
        show_default=False,
    ),
]

_MOST_LINES = 60
"""The lines that are shown of one script; a longer script is cut, and the cut is told."""


_STRANGE = "was not made by this account on this machine"


def check_trust(what: str, effects: Sequence[Effect], *, trust: bool, allow: str | None, why: str = _STRANGE) -> None:
    """Shows what a study of somebody else does, and asks whether it may run. Raises StudyError unless the user agrees.

    `why` is the end of a sentence that begins with `what`: the reason for which the study counts as somebody else's. A
    yes permits SQL on servers that pgtrial makes. Everything else needs its word in `allow`.
    """
    allowed = _kinds(allow)
    say(f"{what} {why}; this is what it does:")
    if not effects:
        say("  a load that comes with pgtrial, on servers that pgtrial makes")
    for kind, of_kind in groupby(effects, key=lambda effect: effect.kind):
        say(f"  {kind}: {KINDS[kind]}:")
        for effect in of_kind:
            for text in _cut(effect.text):
                say(f"    {text}")
    refused = [kind for kind in KINDS if kind not in (SQL, *allowed) and any(one.kind == kind for one in effects)]
    if refused:
        raise StudyError(
            f"nothing of {what} runs, since a study of somebody else may do no such thing unless you allow it: "
            f"{', '.join(refused)}; read what is shown, and add --trust --allow {','.join(refused)} if you want that"
        )
    if trust:
        return
    if not sys.stdin.isatty():
        raise StudyError(
            f"nothing of {what} runs: it {why}, and there is no terminal to ask at; read what is shown, and add "
            "--trust if you want that"
        )
    if not typer.confirm("Run it?", err=True):
        raise StudyError(f"nothing of {what} runs")


def _kinds(allow: str | None) -> list[str]:
    kinds = [] if allow is None else [word.strip() for word in allow.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            raise StudyError(f"--allow {kind!r} is nothing that a study does; write one or more of {', '.join(KINDS)}")
    return kinds


def _cut(text: str) -> list[str]:
    lines = text.splitlines()
    more = len(lines) - _MOST_LINES
    return (
        lines if more <= 0 else [*lines[:_MOST_LINES], f"... and {more} lines more: read the file before you trust it"]
    )


def warn_of_cut_values(spec: StudySpec) -> None:
    """Tells the user who passes on a bundle which values it does not contain, and how a reader can supply them."""
    if variables := cut(spec)[1]:
        found = "; ".join(f"{', '.join(where)} ({name})" for name, where in variables.items())
        warn(
            f"the bundle holds marks in place of values that may be secrets: {found}; who runs its study sets "
            "these environment variables to them"
        )
    if places := kept(spec):
        warn(f"the bundle holds these values as they are written; look whether one is a secret: {', '.join(places)}")
