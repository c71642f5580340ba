"""`pgtrial rerun`: runs the study of a bundle on this machine, and says whether the two results agree."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from pgtrial.cli.by_options import by_options
from pgtrial.cli.conduct import Conclusion, start
from pgtrial.cli.invocation import same_command
from pgtrial.cli.output import json_text, print_message
from pgtrial.cli.study_options import Seed, parsed
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.cli.trust import Allow, Trust, check_trust
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.planning.stopping import as_option
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import parse_duration, plural
from pgtrial.report.brief import brief
from pgtrial.report.build import build_report
from pgtrial.report.data import StudyData, read_measured
from pgtrial.report.rerun import STATUSES, Rerun, blocks_to_disagree, rerun_of, table
from pgtrial.statistics.p9 import first_look
from pgtrial.store.bundle import open_study
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import values_of
from pgtrial.verdict.pace import block_time

_by_options = by_options({"verdict.budget": "--budget", "study.seed": "--seed"})

_LONGEST = 4
"""A rerun without --budget has at most this many times the blocks of the first study."""


def rerun_command(
    bundle: Annotated[Path, typer.Argument(help="A bundle, or the directory of a study.")],
    *,
    budget: Annotated[
        str | None,
        typer.Option(
            help=(
                "The time for all blocks, e.g. 30min. Default: as much time as the blocks of the first study need "
                "on this machine."
            ),
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="The directory of the new study. Default: results/NAME-DATE-TIME.", show_default=False),
    ] = None,
    seed: Seed = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new rerun even if an unfinished rerun of the same study could go on.")
    ] = False,
    trust: Trust = False,
    allow: Allow = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison of the two studies as JSON.")] = False,
) -> int:
    """Run the study of a bundle on this machine, in a new random order, and compare the two results.

    The results agree if each comparison has the same verdict and intervals that fit together. If no arm was better or
    worse, the estimates must also differ by less than the margin. The results disagree if a verdict is the opposite, if
    the intervals are further apart than the margin, or if the rerun does not find "better" or "worse" again and the two
    intervals do not overlap. Exit status: 0 the results agree, 1 they disagree, 2 neither can be said, 3 an error.

    Without --budget the rerun has as many blocks as the first study. It has up to four times as many if fewer blocks
    could not contradict the first result.

    A study that was not made by this account on this machine counts as somebody else's. pgtrial first shows what the
    study does, and runs it only after you answer yes at the terminal or give --trust. If the study starts programs,
    connects to servers that it names, changes this machine, builds from source or reads files, it needs --allow as
    well; the message names the words for --allow.
    """
    with open_study(bundle) as opened, values_of(bundle):
        then, spec = read_measured(opened), opened.spec
    if not any(claim.difference is not None for whole in then.result.primary for claim in whole.read):
        raise StudyError(
            f"{bundle} has no interval with which a rerun could be compared, since its study was not finished; "
            "run that study to its end first"
        )
    needed = blocks_to_disagree(then)
    again = _again(spec, then, budget, seed, needed)
    for sentence in _too_short(again, then, needed):
        print_message(sentence)
    if not opened.made_here:
        check_trust(str(bundle), effects_of(again), trust=trust, allow=allow)
    ended: list[Rerun] = []

    def conclude(study: StudyDirectory) -> Conclusion:
        result = build_report(study)
        now = read_measured(study)
        rerun = rerun_of(then, now, str(bundle), str(study.path))
        ended.append(rerun)
        short = in_short(brief(now.result, now.plan, study.path, now.trials))
        return Conclusion(result, Group(short, "", *_lines(rerun)))

    console = Terminal(file=sys.stderr) if json else None
    try:
        status = start(
            again, results, anew=new, conclude=conclude, console=console, reword=_by_options, again=same_command
        )
    except BudgetError as error:
        enough = as_option(error.needed_s)
        print_message(
            "the budget is too short for a verdict, so the rerun could not agree with the first result; use "
            f"--budget {enough} or more"
        )
        return STATUSES["cannot say"]
    if not ended:
        return status
    if json:
        json_text(ended[0].model_dump_json(indent=1))
    return STATUSES[ended[0].agreement]


def _again(spec: StudySpec, then: StudyData, budget: str | None, seed: int | None, needed: int | None) -> StudySpec:
    """Returns the study of the rerun: the first study with a newly drawn order of the trials.

    With `budget` it has as many blocks as fit into that time. Without `budget` it has as many blocks as the first
    study, or `needed` blocks if that is more, because a rerun with fewer blocks could not contradict the first result,
    but at most `_LONGEST` times the blocks of the first study.
    """
    first = then.plan.max_blocks
    limits: dict[str, float | None] = {"blocks": min(_LONGEST * first, max(first, needed or first))}
    if budget is not None:
        limits = {"blocks": None, "budget": parsed("--budget", parse_duration, budget)}
    return spec.model_copy(
        update={
            "study": spec.study.model_copy(update={"seed": seed}),
            "verdict": spec.verdict.model_copy(update=limits),
        }
    )


def _too_short(again: StudySpec, then: StudyData, needed: int | None) -> Iterator[str]:
    """Yields a sentence if the rerun has too few blocks to contradict the first result, or if it has more blocks than
    the first study for this reason. `needed` is the number of blocks that can contradict the first result. If the
    budget is too short for any verdict, this function yields nothing, and `rerun_command` prints a message of its own.
    """
    if needed is None:
        return
    each_s = block_time(then.plan, then.trials)
    blocks = again.verdict.blocks or int((again.verdict.budget or 0.0) / each_s)
    if first_look() <= blocks < needed:
        yield (
            f"{plural(blocks, 'block')} are too few to tell the first result from no difference, so this rerun can "
            f"hardly disagree; use --budget {as_option(1.1 * needed * each_s)}, which holds the {needed} blocks that "
            "are needed"
        )
    elif again.verdict.blocks is not None and blocks > then.plan.max_blocks:
        yield (
            f"the rerun has up to {blocks} blocks in place of {then.plan.max_blocks}, because fewer blocks could not "
            "tell the first result from no difference"
        )


def _lines(rerun: Rerun) -> Iterator[RenderableType]:
    yield for_terminal(table(rerun))
    yield from (Text(pair.sentence) for pair in rerun.pairs)
    for fact in rerun.facts:
        yield Text(f"{fact.key} of {fact.arm} was {fact.then} and is {fact.now}")
    yield Text(f"rerun: {rerun.agreement}", "bold")
