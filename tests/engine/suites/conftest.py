"""The generator, and the rows by the rules."""

from __future__ import annotations

import functools

import polars as pl
import pytest

from tests.conftest import require_engine
from tests.engine.programs import Program
from tests.engine.suites import joins, reports

_RULES = {"joins": joins.tables, "reports": reports.tables}


@pytest.fixture(scope="session")
def generate() -> Program:
    """Returns the front end that generates data."""
    return Program("generate", (str(require_engine()), "generate"))


@functools.cache
def tables_by_rules(suite: str) -> dict[str, pl.DataFrame]:
    """Returns the tables of a suite at scale 0.01, made without the engine."""
    return _RULES[suite](1)
