"""The order of slices, which the lab and the engine compute from the same numbers."""

from __future__ import annotations

from itertools import islice

from tests.slice_order import Slices


def test_the_order_is_the_documented_one():
    # splitmix64 with the seed 0 begins e220a8397b1dcdaf, 6e789e6aa1b965f4; 06c45d188009454f, f88bb8a8724c81ec
    assert list(islice(Slices(0.25, 2, 0).turns(), 4)) == [1, 0, 0, 1]


def test_each_round_has_one_slice_of_each_participant():
    slices = Slices(0.25, 3, (1 << 64) - 1)
    orders = [slices.order(number) for number in range(1000)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert len(set(map(tuple, orders))) == 6
