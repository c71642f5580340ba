"""`pgtrial judge`: says what the numbers of another benchmark can and cannot show, and draws random orders of runs
whose numbers can show a difference."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

import typer

from pgtrial.cli.output import json_line, json_text, line, warn
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.verdict import comparisons_in_short
from pgtrial.judge.comparing import Asked
from pgtrial.judge.draw import draw
from pgtrial.judge.judging import judge
from pgtrial.judge.numbers import is_of_times, read_numbers
from pgtrial.judge.words import in_words
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.units import parse_share
from pgtrial.statistics import p9

_DRAWN_BLOCKS = 12
"""The number of blocks for which `--draw` prints an order if `--blocks` is not given."""


def judge_command(
    file: Annotated[
        str | None,
        typer.Argument(
            help="A CSV file with the columns arm and value, and optionally block and time. With `-` the numbers are "
            "read from the standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    order: Annotated[
        Literal["drawn", "fixed"],
        typer.Option(
            help="How the order of the runs was chosen. drawn: in each block the order of the arms was drawn at random "
            "before the block ran. fixed: the order followed a rule, or is not known."
        ),
    ] = "fixed",
    better: Annotated[
        Literal["more", "less"] | None,
        typer.Option(
            help="Which values are better: larger ones (more, for example for transactions per second) or smaller ones "
            "(less, for example for times). Default: more; it must be given if the column is called like a time.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        str, typer.Option(help="The margin below which a difference counts as equivalent, e.g. 2%.")
    ] = "1%",
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The arm with which the other arms are compared. Default: the first arm in the file.",
            show_default=False,
        ),
    ] = None,
    value: Annotated[str, typer.Option(help="The name of the column with the measured numbers.")] = "value",
    blocks: Annotated[
        int | None,
        typer.Option(
            help="How many blocks were planned before the first run. Default: the number of blocks in the file. With "
            f"--draw: how many blocks to draw. Default: {_DRAWN_BLOCKS}.",
            min=1,
            show_default=False,
        ),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            "--draw",
            help="Draw a random order of runs for these arms, e.g. old,new, and print it as a CSV file to fill in.",
            metavar="ARM,ARM...",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="With --draw: the seed of the order. Default: a random seed.", min=0, show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> int:
    """Judge numbers that another program has measured: what difference they show, and what they cannot show.

    Exit status: 0 no regression, 1 an arm is worse than the baseline, 2 no verdict. If the order of the arms in each
    block was drawn at random, as --order drawn states, the numbers get a verdict by the same rule as a study. Otherwise
    there is no verdict, because a drift of the machine would look like a difference of the arms; the differences are
    then shown under the condition that there was no drift. If there is a single arm, its spread is shown.

    Example: pgtrial judge runs.csv --order drawn --baseline old --value tps
    """
    if arms is not None:
        if file is not None:
            raise StudyError(
                f"--draw prints an order of runs and does not read a file; leave out either {file} or --draw"
            )
        _draw(arms, _DRAWN_BLOCKS if blocks is None else blocks, seed, json=json)
        return 0
    if file is None:
        raise StudyError(
            "name the file with the numbers, or - for the standard input; or draw an order of runs by --draw old,new"
        )
    if seed is not None:
        raise StudyError("--seed applies only to the order that --draw prints; leave --seed out")
    numbers = read_numbers(file, value)
    if better is None and is_of_times(numbers.column):
        raise StudyError(
            f"by its name the column {quoted(numbers.column)} has times, and pgtrial takes larger values for better "
            "ones; add --better less, or --better more if larger values are better"
        )
    asked = Asked(
        drawn=order == "drawn", better=better or "more", margin=_share(margin), baseline=baseline, planned=blocks
    )
    judgement = judge(numbers, asked)
    words = in_words(judgement)
    if json:
        json_text(judgement.model_copy(update={"sentences": words.sentences}).model_dump_json(indent=1))
    else:
        Terminal().print(comparisons_in_short(words.headlines, words.lines))
    return judgement.exit_status


def _share(text: str) -> float:
    try:
        share = parse_share(text)
    except ValueError as error:
        raise StudyError(f"--margin: {error}") from None
    if not 0 < share < 1:
        raise StudyError(f"--margin {quoted(text)} is out of range; write a share above 0% and below 100%, such as 2%")
    return share


def _draw(arms: str, blocks: int, seed: int | None, *, json: bool) -> None:
    drawn = draw(arms.split(","), blocks, secrets.randbelow(2**32) if seed is None else seed)
    if blocks < (fewest := p9.first_look(len(drawn.arms) - 1)):
        warn(f"a verdict on these arms takes at least {fewest} blocks; draw more of them with --blocks")
    if json:
        json_line({"arms": drawn.arms, "seed": drawn.seed, "blocks": drawn.blocks})
        return
    for text in drawn.lines():
        line(text)
