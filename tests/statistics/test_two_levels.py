"""Two levels between which a machine switches, and series without them."""

from __future__ import annotations

import numpy as np
import pytest

from pgtrial.statistics.two_levels import two_levels


def test_a_machine_that_switches_has_two_levels():
    upper = [True, True, False, False, False, True, True, False]
    values = [(10.0 if is_upper else 9.0) + 0.05 * number % 0.1 for number, is_upper in enumerate(upper)]
    levels = two_levels(values)
    assert levels is not None
    assert list(levels.is_upper) == upper
    assert levels.switches == [2, 5, 7]
    assert (levels.lower, levels.upper) == (pytest.approx(9.0, abs=0.1), pytest.approx(10.0, abs=0.1))


@pytest.mark.parametrize("values", [8, 9, 12, 20])
def test_noise_rarely_has_two_levels(values):
    rng = np.random.default_rng(values)
    found = sum(two_levels(rng.standard_normal(values).tolist()) is not None for _ in range(1000))
    assert found <= 20


@pytest.mark.parametrize(
    "values",
    [
        [],
        [3.0] * 12,
        [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
        [1.0, *[2.0 + 0.01 * (number % 3) for number in range(11)]],
        list(range(12)),
    ],
    ids=["nothing", "one level", "too few values", "a single value apart", "a line"],
)
def test_a_series_without_two_levels_has_none(values):
    assert two_levels(values) is None


def test_the_levels_do_not_depend_on_the_order():
    values = [1.0, 1.1, 2.0, 2.1, 1.05, 2.05, 1.0, 2.0]
    levels, reverse = two_levels(values), two_levels(values[::-1])
    assert levels is not None
    assert reverse is not None
    assert levels.is_upper == reverse.is_upper[::-1]
    assert (levels.lower, levels.upper) == (reverse.lower, reverse.upper)
