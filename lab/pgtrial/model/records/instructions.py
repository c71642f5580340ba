"""Types for instructions.json, the counted CPU instructions of the servers of a study, and for the differences between
arms that follow from them."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from pgtrial.model.records import Record

UNNAMED = "(functions without names)"
"""Stands for all functions of a program or library that have no names there, because it was stripped of them."""


class Counted(Record):
    """A record of counted instructions, whose numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class FunctionCount(Counted):
    """The instructions that one function of a server executes for a transaction."""

    name: str = Field(description="The name of the function. Functions that the compiler has inlined have none.")
    program: str = Field(description="The file name of the program or library that has the function.")
    own: float = Field(description="The instructions of the function itself, for each transaction.")
    below: float = Field(
        description="The instructions of the function and of all functions that it calls, for each transaction."
    )
    callers: dict[str, float] = Field(
        description="The instructions of the function and of all functions that it calls, by the name of the function "
        "that has called it."
    )


class InstructionCount(Counted):
    """The instructions that the server of an arm executes in user mode for a transaction of one load."""

    arm: str
    load: str = Field(description="The workload with its data, such as `tpcb-like, scale 10`.")
    transactions: int = Field(
        description="The number of transactions of the shorter run. The longer run has three times as many, and the "
        "difference of the two runs is the cost of twice this number."
    )
    runs: list[Annotated[float, Field(gt=0)]] = Field(
        min_length=2,
        description="The instructions for each transaction, in two counts on two fresh copies of the data, which show "
        "how well a count repeats.",
    )
    functions: list[FunctionCount] = Field(
        description="The functions that execute the most instructions themselves or call such functions, as the mean "
        "of the two counts. Functions with a share of less than 0.001% are left out."
    )

    @property
    def mean(self) -> float:
        """Returns the instructions for each transaction, as the mean of the counts."""
        return sum(self.runs) / len(self.runs)

    @property
    def spread(self) -> float:
        """Returns the difference between the counts, as a share of their mean."""
        return (max(self.runs) - min(self.runs)) / self.mean

    @property
    def unnamed(self) -> float:
        """Returns the share of the instructions that belong to functions without names."""
        return sum(function.own for function in self.functions if function.name == UNNAMED) / self.mean


class InstructionCounts(Counted):
    """The content of instructions.json: the counts of all arms of a study, and the program that has counted."""

    counter: str = Field(description="The program that has counted, with its version.")
    counts: list[InstructionCount]


class FunctionDifference(Counted):
    """A function that executes more or fewer instructions on an arm than on the baseline."""

    name: str
    program: str
    baseline_own: float = Field(description="The function's own instructions for each transaction on the baseline.")
    own: float = Field(description="The function's own instructions for each transaction on the arm.")
    below: float = Field(
        description="How many more instructions the function and all functions that it calls execute for each "
        "transaction on the arm; negative if they execute fewer."
    )
    caller: str | None = Field(
        description="The function whose calls account for most of the difference; None if no caller is known."
    )

    @property
    def difference(self) -> float:
        """Returns how many more instructions the function itself executes for each transaction on the arm."""
        return self.own - self.baseline_own


class InstructionComparison(Counted):
    """The instructions that two arms execute for a transaction of one load. They are counts and not samples, so they
    have no interval; `spread` says how well they repeat."""

    arm: str
    baseline: str
    load: str
    transactions: int = Field(description="The number of transactions of the shorter run.")
    baseline_instructions: float = Field(description="The instructions for each transaction on the baseline.")
    instructions: float = Field(description="The instructions for each transaction on the arm.")
    spread: float = Field(
        description="How well the counts repeat: the larger difference between two counts of one arm, as a share."
    )
    unnamed: float = Field(
        description="The larger share of the instructions of an arm that belong to functions without names."
    )
    functions: list[FunctionDifference] = Field(
        description="The functions that differ, the largest difference of their own instructions first."
    )

    @property
    def difference(self) -> float:
        """Returns the difference as a share of the baseline's instructions: 0.018 for 1.8% more on the arm."""
        return self.instructions / self.baseline_instructions - 1

    @property
    def repeats(self) -> bool:
        """True if two counts of each arm agree well enough to compare the arms."""
        return self.spread <= REPEATS

    @property
    def is_same(self) -> bool:
        """True if the difference is not larger than the difference between two counts of one arm, or is too small to
        matter."""
        return abs(self.difference) <= max(self.spread, SAME)


REPEATS = 0.005
"""Counts of one arm that differ by more than this share do not repeat: the load or the server does something that
depends on time or chance."""

SAME = 0.0002
"""Arms whose counts differ by no more than this share count as the same. Two builds of the same source differ by less.
"""
