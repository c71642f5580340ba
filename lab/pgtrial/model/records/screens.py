"""Types for a screening study, which finds out which of many factors (settings or other keys of a server) matter."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record


class Factor(Record):
    """A factor of a screening study: a setting, or another key of an arm, with its two levels."""

    name: str
    first: str = Field(description="The first level, which the factor has at present.")
    second: str = Field(description="The second level, which is compared with the first one.")

    @property
    def labels(self) -> tuple[str, str]:
        """Returns the two levels with the name of the factor: `jit=on` and `jit=off`."""
        return f"{self.name}={self.first}", f"{self.name}={self.second}"


class FactorPair(Record):
    """Two factors of a screening study that seem to interact: the effect of one depends on the level of the other. This
    is a hint, not a verdict."""

    one: Factor
    other: Factor
    difference: float = Field(
        description="By how much the effect of `one` is larger, as a share, with the second level of `other` than with "
        "its first level."
    )


class Screen(Record):
    """The parts of a screening study's result that only such a study has. Its claims on the factors are its primary
    claims."""

    winner: dict[str, str] = Field(
        description="The winning set-up: the better level of each factor on which the study has decided, by the name "
        "of the factor. Factors that are not in it keep their first level."
    )
    pairs: list[FactorPair] = Field(description="The pairs of factors that seem to interact, the strongest one first.")
