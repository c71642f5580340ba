"""Shows what a study of somebody else does before it runs, and runs it only if the user agrees."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from pgtrial.cli.output import print_message, warn
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.cut_values import cut, kept
from pgtrial.model.study.effects import KINDS, SQL, Effect
from pgtrial.model.study.spec import StudySpec

Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run a study that somebody else has made without asking. pgtrial still shows first what the study does.",
    ),
]
Allow = Annotated[
    str | None,
    typer.Option(
        help="What a study of somebody else is allowed to do, besides SQL on servers that pgtrial starts itself. One "
        "or more of these words, separated by commas: commands (start programs), servers (connect to servers that "
        "the study names), machine (change this machine), sources (build from source), files (read files).",
        metavar="KINDS",
        show_default=False,
    ),
]

_MOST_LINES = 60
"""The largest number of lines of a script that are shown. If a script is longer, a last line says how many lines are
left out."""


_STRANGE = "was not made by this account on this machine"


def check_trust(what: str, effects: Sequence[Effect], *, trust: bool, allow: str | None, why: str = _STRANGE) -> None:
    """Shows what a study of somebody else does, and asks the user whether it may run. Raises StudyError unless the user
    agrees.

    `why` is the reason for which the study counts as somebody else's, as the end of a sentence that begins with `what`.
    If the user answers yes, SQL on servers that pgtrial starts itself is allowed. All other effects need their word in
    `allow`.
    """
    allowed = _kinds(allow)
    print_message(f"{what} {why}; this is what it does:")
    if not effects:
        print_message("  a load that comes with pgtrial, on servers that pgtrial makes")
    for kind, of_kind in groupby(effects, key=lambda effect: effect.kind):
        print_message(f"  {kind}: {KINDS[kind]}:")
        for effect in of_kind:
            for text in _cut(effect.text):
                print_message(f"    {text}")
    refused = [kind for kind in KINDS if kind not in (SQL, *allowed) and any(one.kind == kind for one in effects)]
    if refused:
        raise StudyError(
            f"nothing of {what} runs, since a study of somebody else may not do the following unless you allow it: "
            f"{', '.join(refused)}; read what is shown above, and add --trust --allow {','.join(refused)} if you want "
            "that"
        )
    if trust:
        return
    if not sys.stdin.isatty():
        raise StudyError(
            f"nothing of {what} runs: it {why}, and there is no terminal to ask at; read what is shown above, and add "
            "--trust if you want that"
        )
    if not typer.confirm("Run it?", err=True):
        raise StudyError(f"nothing of {what} runs, since you did not agree")


def _kinds(allow: str | None) -> list[str]:
    kinds = [] if allow is None else [word.strip() for word in allow.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            raise StudyError(f"--allow {quoted(kind)} is not a known word; write one or more of {', '.join(KINDS)}")
    return kinds


def _cut(text: str) -> list[str]:
    lines = text.splitlines()
    more = len(lines) - _MOST_LINES
    return (
        lines if more <= 0 else [*lines[:_MOST_LINES], f"... and {more} more lines: read the file before you trust it"]
    )


def warn_of_cut_values(spec: StudySpec) -> None:
    """Warns the user who makes a bundle. The warning names the values that were replaced by placeholders because they
    may be secrets, and the possible secrets that are still in the bundle."""
    if variables := cut(spec)[1]:
        found = "; ".join(f"{', '.join(where)} ({name})" for name, where in variables.items())
        warn(
            f"in the bundle, names of environment variables replace values that may be secrets: {found}; whoever runs "
            "the study of the bundle must set these environment variables to the values"
        )
    if paths := kept(spec):
        warn(
            "the bundle contains these values unchanged; check whether one of them is a secret before you pass it "
            f"on: {', '.join(paths)}"
        )
