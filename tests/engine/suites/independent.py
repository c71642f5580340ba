"""The rows of the suites' tables by their documented rules, from numpy alone: a second generator beside the engine's.

The lists of words are read from the engine's source, the rules are written here once more.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SOURCE = Path(__file__).parents[3] / "engine" / "tables" / "src" / "suites"

Values = np.ndarray[Any, np.dtype[Any]]

EPOCH = np.datetime64("2000-01-01")
GAMMA = np.uint64(0x9E3779B97F4A7C15)


@cache
def words(name: str) -> Values:
    """Returns a list of words that is a constant of the engine, read from the engine's source."""
    texts = "".join(file.read_text() for file in sorted(SOURCE.rglob("*.rs")))
    match = re.search(rf"const {name}: \[&str; \d+\] =\s*\[(.*?)\];", texts, re.DOTALL)
    assert match is not None, name
    return np.array(re.findall(r'"([^"]*)"', match[1]), dtype=object)


def output(seed: Values | int, number: Values | int) -> Values:
    """Returns output number `number` of splitmix64 with this seed."""
    with np.errstate(over="ignore"):
        state = np.asarray(seed, np.uint64) + (np.asarray(number, np.uint64) + np.uint64(1)) * GAMMA
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


class Draws:
    """Draws the random values of a table's columns, for these rows."""

    def __init__(self, table: int, rows: Values, seed: int = 1) -> None:
        self._seeds = output(output(seed, table), rows)

    def bits(self, column: int) -> Values:
        return output(self._seeds, column)

    def below(self, column: int, count: Values | int) -> Values:
        upper = self.bits(column) >> np.uint64(32)
        return ((upper * np.asarray(count, np.uint64)) >> np.uint64(32)).astype(np.int64)

    def between(self, column: int, least: int, most: int) -> Values:
        return least + self.below(column, most - least + 1)

    def one(self, column: int, name: str) -> Values:
        return words(name)[self.below(column, len(words(name)))]

    def zipf(self, column: int, count: int) -> Values:
        return self.in_octave(column + 1, self.below(column, count.bit_length()), count)

    def in_octave(self, column: int, octave: Values, count: int) -> Values:
        first = 1 << octave
        return first + self.below(column, np.minimum(first, count - first + 1))

    def remark(self, counts: Values, *columns: int) -> list[str]:
        bits = [self.bits(column) for column in columns]
        drawn = np.concatenate(
            [word[:, None] >> np.arange(0, 60, 6, dtype=np.uint64) & np.uint64(63) for word in bits], axis=1
        )
        known = words("REMARKS")
        return [" ".join(known[row[:count]]) for row, count in zip(drawn, counts, strict=True)]


def spread(rank: Values, count: int) -> Values:
    return rank * 20_261_803 % count + 1


def texts(form: str, *columns: Values) -> list[str]:
    return [form.format(*row) for row in zip(*columns, strict=True)]


def money(cents: Values) -> pl.Series:
    """Hundredths as a column with two decimals."""
    return pl.Series([Decimal(value).scaleb(-2) for value in cents.tolist()], dtype=pl.Decimal(12, 2))


def dates(days: Values) -> Values:
    """Days since 2000 as dates."""
    return EPOCH + days.astype("timedelta64[D]")


def nullable(values: Values, there: Values) -> list[Any]:
    return [value if is_there else None for value, is_there in zip(values.tolist(), there.tolist(), strict=True)]


def numbers(count: int) -> Values:
    return np.arange(1, count + 1)
