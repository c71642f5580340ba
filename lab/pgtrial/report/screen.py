"""The result of a screening study in words: which factors matter, the winning set-up, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.screens import FactorPair, Screen
from pgtrial.model.units import and_more, plural
from pgtrial.report.words import bounds_text, headline, interval_name, measure_text, measured_text, signed
from pgtrial.verdict.rules.case import listed

_NAMED = 3
"""The number of undecided factors that the short result names."""


def is_decided(claim: Claim) -> bool:
    """True if a screening study has decided that a factor matters."""
    return claim.verdict in ("better", "worse")


def headline_claims(result: StudyResult) -> list[Claim]:
    """Returns the claims that get a headline of their own. In a screening study these are the claims on factors that
    matter and those whose verdict is withheld for a reason of their own or, if there are none, the one with the largest
    estimate; in other studies they are all primary claims."""
    if result.screen is None:
        return result.primary
    shown = [claim for claim in result.primary if is_decided(claim) or claim.verdict == "withheld"]
    return shown if any(claim.verdict != "withheld" for claim in result.primary) and shown else result.primary[:1]


def factor_sentence(claim: Claim, plan: Plan, *, withheld: list[str]) -> str:
    """Returns the complete sentence about a factor. `withheld` are the reasons why it has no verdict."""
    if claim.verdict == "withheld":
        return f"{headline(claim, plan)}: {' '.join(withheld)}"
    difference = claim.difference
    value = "" if difference is None or is_decided(claim) else f"{signed(difference.value)}, "
    interval = f", {value}{interval_name(plan)} {difference.text(sign=False)}" if difference is not None else ""
    return f"{headline(claim, plan)} ({measure_text(plan)}){interval}, {measured_text(claim, plan)}."


def rest_text(result: StudyResult) -> str:
    """Returns the factors that have no headline as text: those whose effect is smaller than the margin, and those that
    are undecided with their intervals, the largest estimate first. The text is empty if there are none."""
    shown = headline_claims(result)
    rest = [claim for claim in result.primary if claim not in shown and claim.verdict in ("equivalent", "undecided")]
    same = [claim.arm.partition("=")[0] for claim in rest if claim.verdict == "equivalent"]
    undecided = [claim for claim in rest if claim.verdict == "undecided"]
    named = [
        f"{claim.arm} {f'({bounds_text(claim.difference)})' if claim.difference else '(no interval yet)'}"
        for claim in undecided[:_NAMED]
    ]
    texts = [f"{listed(same)} within the margin"] if same else []
    if undecided:
        names = ", ".join(and_more(named, len(undecided)))
        texts.append(f"{plural(len(undecided), 'factor')} undecided: {names}")
    return "; ".join(texts)


def pair_text(pair: FactorPair) -> str:
    """Returns a hint about two factors as text, such as `jit=off has a further effect of +4% with work_mem=64MB, beyond
    that with work_mem=4MB`. The sign is that of the effects on single factors, so that it means the same for
    gains and losses, and for speeds and response times."""
    first, second = pair.other.labels
    further = f"{pair.one.labels[1]} has a further effect of {signed(pair.difference)}"
    return f"{further} with {second}, beyond that with {first}"


def pairs_text(screen: Screen) -> str:
    """Returns the pairs of factors that seem to interact as text; empty if there are none."""
    return "; ".join(map(pair_text, screen.pairs))


def changed_levels(result: StudyResult) -> list[str]:
    """Returns the levels in which the winning set-up differs from the first levels, such as `jit=off`."""
    return [claim.arm for claim in result.primary if claim.verdict == "better"]


def next_steps(result: StudyResult, plan: Plan, directory: Path | None) -> Iterator[str]:
    """Yields the next steps: to confirm the winning set-up, or how to find more factors."""
    study = shlex.quote(str(directory)) if directory is not None else "DIRECTORY"
    is_open = any(claim.verdict == "undecided" for claim in result.primary)
    if is_open and result.trials_stored < result.trials_planned and result.blocks_complete < plan.end:
        yield f"pgtrial run {study} goes on: {result.blocks_complete} of {plural(plan.end, 'block')} are complete"
    elif levels := changed_levels(result):
        yield (
            f"pgtrial run {study} --confirm compares {', '.join(levels)} with the first levels, in a study of its own"
        )
    elif not is_open and not any(map(is_decided, result.primary)):
        yield "keep the first levels: no factor changes more than the margin"
    elif any(map(is_decided, result.primary)):
        yield "keep the first levels: each factor that matters is better with its first level"
    elif plan.is_final:
        yield "a new study with a longer budget: this one has reached the end of its plan and cannot be continued"
    else:
        yield f"pgtrial run {study} --more TIME measures more blocks; fewer factors or longer trials help too"
