"""The tables of the counted instructions: one of all arms, and one of the functions that differ for each comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgtrial.model.records.instructions import FunctionDifference, InstructionComparison
from pgtrial.report.data import StudyData
from pgtrial.report.instructions import difference_text
from pgtrial.report.table import Column, Table, number


def instruction_tables(data: StudyData) -> list[Table[Any]]:
    """Returns a table with a row for each load and arm, followed by the functions that differ."""
    compared = data.result.instructions
    return [comparison_table(compared), *(function_table(one) for one in compared)]


def comparison_table(compared: Sequence[InstructionComparison]) -> Table[InstructionComparison]:
    """Returns the table of the instructions for each transaction on both arms."""
    return Table(
        "Instructions per transaction. Two counts of an arm differ by as much as the last column says.",
        compared,
        [
            Column("load", lambda one: one.load),
            Column("arm", lambda one: one.arm),
            number("baseline", lambda one: one.baseline_instructions, ",.0f"),
            number("arm's instructions", lambda one: one.instructions, ",.0f"),
            Column("difference", difference_text),
            number("repeats within", lambda one: one.spread, ".3%"),
        ],
        lambda one: one.repeats and not one.is_same,
    )


def function_table(one: InstructionComparison, most: int | None = None) -> Table[FunctionDifference]:
    """Returns the table of the functions whose own instructions differ most, the largest difference first. `most`
    limits the number of rows."""
    return Table(
        f"Functions that differ, {one.arm} against {one.baseline} on {one.load}. Instructions per transaction of the "
        "function itself; the last number includes the functions that it calls.",
        one.functions[:most],
        [
            Column("function", lambda row: row.name),
            Column("in", lambda row: row.program),
            number(one.baseline, lambda row: row.baseline_own, ",.0f"),
            number(one.arm, lambda row: row.own, ",.0f"),
            number("difference", lambda row: row.difference, "+,.0f"),
            number("with what it calls", lambda row: row.below, "+,.0f"),
            Column("called by", lambda row: row.caller),
        ],
    )
