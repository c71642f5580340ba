"""Counted instructions as the store holds them, and what follows from them, without a server."""

from __future__ import annotations

from pgtrial.model.records.instructions import FunctionCount, InstructionCount, InstructionCounts
from pgtrial.verdict.instructions import compare_instructions
from tests.verdict.studies import make_plan, verdict_of

PLAN = make_plan(("base", "head"))


def count(arm, own, *, load="select-only, scale 10", spread=0.0, programs=(), callers=()):
    """Returns a count of an arm whose functions have these own instructions."""
    total = sum(own.values())
    functions = [
        FunctionCount(
            name=name,
            program=dict(programs).get(name, "postgres"),
            own=number,
            below=number,
            callers=dict(callers).get(name, {}),
        )
        for name, number in own.items()
    ]
    runs = [total * (1 - spread / 2), total * (1 + spread / 2)]
    return InstructionCount(arm=arm, load=load, transactions=500, runs=runs, functions=functions)


def compared(*counts):
    """Returns the comparisons of these counts of the arms base and head."""
    return compare_instructions(PLAN, InstructionCounts(counter="valgrind-3.19.0", counts=list(counts)))


def result_of(*counts):
    """Returns the result of a study with these counts, before its first trial."""
    return verdict_of(PLAN, [], instructions=InstructionCounts(counter="valgrind-3.19.0", counts=list(counts)))


BASE = {"heap_getnext": 10_000.0, "ExecScan": 80_000.0, "memcpy": 6_578.0}
GROWN = {"heap_getnext": 11_540.0, "ExecScan": 80_192.0, "memcpy": 6_578.0}
