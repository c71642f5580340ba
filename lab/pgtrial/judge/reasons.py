"""Sentences on why numbers give no verdict, and on what a reader must know in addition to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.judge.blocks import chance_of
from pgtrial.judge.judgement import Pattern
from pgtrial.model.records.claims import Claim

_MANY_RUNS = 200
"""If an arm has at least this number of runs, pgtrial warns that the values may stand for seconds or transactions and
not for runs."""

_RARE = 0.1
"""If randomly drawn orders would follow a rule, such as `in turn`, with a probability below this value, and the runs do
follow it, the result has a warning about the order."""


_ALIKE = "would look the same as a difference of the arms"


def not_drawn(names: Sequence[str], order: Sequence[str], pattern: Pattern) -> str:
    """Returns a sentence on why an order that was not drawn at random gives no verdict. `order` has the arm of each
    run."""
    if pattern == "one after the other":
        return (
            f"The arms ran one after the other ({', then '.join(dict.fromkeys(order))}): a machine that becomes faster "
            f"or slower, a cache that fills, or other load that comes and goes {_ALIKE}."
        )
    if pattern == "in turn":
        return (
            f"The arms ran strictly in turn ({_beginning(names, order)}): an event that recurs at each "
            f"{_nth(len(names))} run, such as a checkpoint, or traces that a run leaves for the next one, {_ALIKE}."
        )
    if pattern == "back and forth":
        return (
            f"The arms ran back and forth by a rule ({_beginning(names, order)}): an event that recurs at "
            f"each {_nth(2 * len(names))} run, or traces that a run leaves for the next one, {_ALIKE}."
        )
    return (
        f"Nothing says that the order was drawn at random: a change of the machine between the runs {_ALIKE}. If a "
        "coin ordered the arms in each block before the block ran, say so by --order drawn."
    )


def not_like_a_coin(names: Sequence[str], order: Sequence[str], pattern: Pattern, blocks: int) -> str:
    """Returns a sentence on why pgtrial does not believe that an order was drawn at random, although the user says
    so."""
    if pattern == "one after the other":
        found = f"the arms ran one after the other ({', then '.join(dict.fromkeys(order))}), so that blocks lie apart"
    else:
        what = "they ran strictly in turn" if pattern == "in turn" else "they ran back and forth by a rule"
        found = f"{what} in all {blocks} blocks ({_beginning(names, order)}), {_once_in(names, pattern, blocks)}"
    return (
        f"By --order drawn a coin ordered the arms in each block, but {found}. If the lines are not in the order "
        "of the runs, add a column time; otherwise draw an order by `pgtrial judge --draw` and measure again."
    )


def not_consecutive(block: str) -> str:
    """Returns a sentence on why the order within blocks says nothing if runs of other blocks lie between the runs of
    `block`."""
    return (
        "By --order drawn a coin ordered the arms in each block, but runs of other blocks lie between those of block "
        f"{block}, so that a drift within the block {_ALIKE}. If several series number their blocks alike, give each "
        "block a name of its own; if the lines are not in the order of the runs, add a column time."
    )


def cautions_of(claims: Sequence[Claim], pattern: Pattern, blocks: int, runs: int, *, drawn: bool) -> list[str]:
    """Returns what a reader must know in addition to the result, as parts of a sentence. `runs` is the largest number
    of runs of an arm."""
    cautions = []
    arms = len(claims) + 1
    if drawn and pattern in ("in turn", "back and forth") and 2 * chance_of(pattern, arms, blocks) < _RARE:
        cautions.append(f"the arms ran {pattern} in all {blocks} blocks, though a coin is said to have ordered them")
    cautions += ["the effect changes from the first blocks to the last"] if any(c.changing for c in claims) else []
    cautions += ["rare odd blocks pull the mean"] if any(claim.unstable for claim in claims) else []
    if runs >= _MANY_RUNS:
        cautions.append(
            "each value counts as a run of its own; if the values stand for seconds or transactions, the intervals "
            "are far too narrow: give one value for each run"
        )
    return cautions


def _beginning(names: Sequence[str], order: Sequence[str]) -> str:
    return f"{', '.join(order[: 2 * len(names)])}, ..."


def _nth(number: int) -> str:
    words = {2: "second", 3: "third"}
    return words.get(number, f"{number}th")


def _once_in(names: Sequence[str], pattern: Pattern, blocks: int) -> str:
    return f"which a coin does once in {1 / chance_of(pattern, len(names), blocks):,.0f} times"
