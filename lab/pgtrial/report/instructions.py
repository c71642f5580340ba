"""Writes the comparison of counted instructions in words: how many more instructions an arm executes for a transaction,
and in which functions."""

from __future__ import annotations

from pgtrial.model.records.instructions import SAME, FunctionDifference, InstructionComparison
from pgtrial.model.records.results import StudyResult
from pgtrial.model.units import percent, plural
from pgtrial.verdict.rules.case import listed

_MOST_NAMED = 3
_LARGE_SHARE = 0.1
"""The share of the whole difference from which on a function is named."""

_MANY_UNNAMED = 0.05
"""The share of instructions in functions without names from which on the text says so."""


def instructions_of(result: StudyResult, arm: str) -> list[InstructionComparison]:
    """Returns the comparisons of an arm with the baseline, one for each load."""
    return [one for one in result.instructions if one.arm == arm]


def instruction_texts(result: StudyResult, arm: str) -> list[str]:
    """Returns a text for each load, such as `96,578 and 98,310 instructions per transaction (1.8% more)`. It names the
    functions that differ, and the load if there are several."""
    of_arm = instructions_of(result, arm)
    loads = {one.load for one in result.instructions}
    return [f"{f'{one.load}: ' if len(loads) > 1 else ''}{_text(one)}" for one in of_arm]


def instruction_sentences(result: StudyResult, arm: str) -> list[str]:
    """Returns a sentence for each load, such as `On select-only, scale 10, base executes 96,578 and head 98,310
    instructions per transaction (1.8% more).`"""
    return [
        f"On {one.load}, {one.baseline} executes {one.baseline_instructions:,.0f} and {one.arm} "
        f"{one.instructions:,.0f} instructions per transaction ({'; '.join([difference_text(one), *_remarks(one)])})."
        for one in instructions_of(result, arm)
    ]


def _text(one: InstructionComparison) -> str:
    numbers = f"{one.baseline_instructions:,.0f} and {one.instructions:,.0f} instructions per transaction"
    return "; ".join([f"{numbers} ({difference_text(one)})", *_remarks(one)])


def difference_text(one: InstructionComparison) -> str:
    """Returns the difference as text: `1.8% more`, `0.25% fewer`, or `the same within 0.02%`."""
    if not one.repeats:
        return f"two counts of one arm differ by {percent(one.spread)}, so this load cannot be counted"
    if one.is_same:
        return f"the same within {percent(max(one.spread, SAME))}"
    return f"{percent(abs(one.difference))} {'more' if one.difference > 0 else 'fewer'}"


def _remarks(one: InstructionComparison) -> list[str]:
    remarks = []
    if one.repeats and not one.is_same and (named := _named(one)):
        remarks.append(named)
    if one.unnamed > _MANY_UNNAMED:
        remarks.append(
            f"{percent(one.unnamed, 0)} of them in functions without names, since the program or a library was "
            "stripped of its names"
        )
    return remarks


def _named(one: InstructionComparison) -> str:
    """Returns the functions that account for the difference as text: `most of it in heap_getnext (+1,540)`. The text is
    empty if no function is known to differ."""
    whole = one.instructions - one.baseline_instructions
    grown = [function for function in one.functions if function.difference * whole > 0]
    large = [function for function in grown if abs(function.difference) >= _LARGE_SHARE * abs(whole)][:_MOST_NAMED]
    if not grown:
        return ""
    if not large:
        return f"spread over {plural(len(grown), 'function')}, {function_text(grown[0])} differs most"
    most = abs(sum(function.difference for function in large)) >= abs(whole) / 2
    return f"{'most' if most else 'part'} of it in {listed(function_text(function) for function in large)}"


def function_text(function: FunctionDifference) -> str:
    """Returns a function with its difference as text: `heap_getnext (+1,540)`. A function of a library, such as memcpy,
    is named with the function that calls it."""
    by = f", called by {function.caller}" if is_of_library(function) and function.caller is not None else ""
    return f"{function.name} ({function.difference:+,.0f}{by})"


def is_of_library(function: FunctionDifference) -> bool:
    """True if a library that many programs use, such as libc, has the function. The name of such a function says less
    than the name of its caller."""
    return function.program.startswith(("lib", "ld-"))
