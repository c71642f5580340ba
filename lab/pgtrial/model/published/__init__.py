"""Types for comparisons that others have published. Each article is one TOML file, and a study can show the article's
figures next to its own results.

A file holds only the numbers that the article's text gives. Numbers that the article calls `about` or `more than` are
marked as approximate or as a lower bound, and a result without a number is stored as a claim.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field, model_validator

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.resources import table
from pgtrial.model.units import nearest

Exactness = Literal["stated", "approximate", "lower bound"]
"""The exactness of a number: the article states it (`stated`), calls it approximate, or says that the true value is
higher (`lower bound`)."""

Unit = Literal["tps", "transactions per minute", "times the baseline", "s", "tasks"]

_PER_SECOND = {"tps": 1.0, "transactions per minute": 1 / 60}


class Source(Record):
    """The publication that the figures come from."""

    title: str
    by: str = Field(description="The author or publisher of the article.")
    year: str
    url: str | None = Field(None, description="The address of the publication; None if it is not certain.")


class Point(Record):
    """One number of a series."""

    at: float | str | None = Field(
        None,
        description="The position on the x axis of the figure, such as a number of clients, or a word for a "
        "statistic; None if the number applies to the whole axis.",
    )
    value: float


class Series(Record):
    """The values of one arm in a published figure."""

    name: str
    arms: list[str] = Field(
        [], description="The names that a study may use for the arm that this series shows; see `same_arm`."
    )
    exact: Exactness = "stated"
    points: list[Point] = Field(min_length=1)


class Figure(Record):
    """One chart or table of the article."""

    title: str
    unit: Unit
    over: Literal["clients", "scale", "minute", "statistic"] = Field(
        description="The quantity on the x axis, such as the number of clients."
    )
    workload: str | None = Field(
        None,
        description="The workload of pgtrial that corresponds to the figure's load; None if pgtrial has no such "
        "workload.",
    )
    baseline: str | None = Field(None, description="The series with which the others are compared.")
    note: str = ""
    series: list[Series] = Field(min_length=1)

    @model_validator(mode="after")
    def _baseline_is_a_series(self) -> Figure:
        if self.baseline is not None and self.baseline not in [series.name for series in self.series]:
            raise ValueError(f"the baseline {quoted(self.baseline)} of {quoted(self.title)} is not one of its series")
        return self

    @property
    def per_second(self) -> float | None:
        """Returns the factor that turns a value of the figure into transactions per second; None if the unit is not a
        rate."""
        return _PER_SECOND.get(self.unit)

    def ratio(self, value: float, baseline: float) -> float | None:
        """Returns how many times as fast as the baseline an arm is. `value` and `baseline` are their values in the
        figure; if the values are times, the shorter time is the faster one. Returns None if the values are counts,
        which say nothing about speed."""
        if self.unit == "tasks":
            return None
        return baseline / value if self.unit == "s" else value / baseline


class Claim(Record):
    """A published result that is stated in words. `arms` and `baseline` list names that a study may use for the set-ups
    which the result compares."""

    text: str
    arms: list[str] = Field([])
    baseline: list[str] = Field([])
    workload: str | None = None


class Published(Record):
    """A whole published study."""

    source: Source
    machine: dict[str, str] = Field(description="The machine on which the authors of the article measured, in words.")
    parameters: dict[str, str] = Field(
        description="The parameters with which the authors of the article measured, in words."
    )
    figures: list[Figure] = Field([])
    claims: list[Claim] = Field([])

    @model_validator(mode="after")
    def _says_something(self) -> Published:
        if not self.figures and not self.claims:
            raise ValueError("a published study must have a figure or a claim")
        return self


def published_names() -> list[str]:
    """Returns the names by which a study can ask for published figures, in alphabetical order."""
    return sorted(
        file.name.removesuffix(".toml") for file in files(__package__).iterdir() if file.name.endswith(".toml")
    )


@cache
def read_published(name: str) -> Published:
    """Returns the published study with this name, one of `published_names()`."""
    return Published.model_validate(table(f"{name}.toml", __package__))


def known_name(name: str) -> str:
    """Returns the name unchanged if published figures have it. Otherwise raises ValueError, whose message proposes the
    nearest known name."""
    names = published_names()
    if name not in names:
        raise ValueError(f"no published figures are called {quoted(name)}; {nearest(name, names, 'there are')}")
    return name


def same_arm(names: list[str], arms: list[str]) -> str | None:
    """Returns the arm of the study that a published series is about. The series' `names` are tried in their order, and
    the first name that matches an arm decides. Returns None if no name matches.

    Case, and all characters except letters and digits, are ignored: `ext4-nobarrier` matches `ext4 (nobarrier)`.
    """
    plain = {_plain(arm): arm for arm in reversed(arms)}
    return next((plain[key] for name in names if (key := _plain(name)) in plain), None)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
