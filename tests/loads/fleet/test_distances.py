"""Tests of the search for the offset of a machine's clock."""

from __future__ import annotations

import itertools

import pytest

from pgtrial.loads.fleet.members import (
    MOST_ROUND_TRIPS,
    ROUND_TRIPS,
    Offset,
    check_offset,
    doubt_of_clocks,
    known_well_s,
    measure,
)
from pgtrial.model.errors import ArmError


class Wire:
    """A machine whose clock is ahead, behind a wire: the ways there and back take what they are told to, seconds."""

    def __init__(self, ahead, ways):
        self.ahead = ahead
        self.time = 1000.0
        self.ways = itertools.cycle(ways)

    def now(self):
        return self.time

    def ask(self):
        there, back = next(self.ways)
        self.time += there
        arrived = self.time + self.ahead
        self.time += 0.25  # it has other work first
        answered = self.time + self.ahead
        self.time += back
        return arrived, answered


def test_the_time_that_the_machine_takes_to_answer_does_not_count():
    wire = Wire(-3.5, [(0.001, 0.001)])
    offset = measure(wire.ask, wire.now)
    assert offset.offset_s == pytest.approx(-3.5, abs=1e-9)
    assert offset.error_s == pytest.approx(0.001, abs=1e-9)
    assert offset.round_trip_s == pytest.approx(0.252, abs=1e-9)


def test_the_round_trip_with_the_least_delay_tells():
    slow, fast = (0.4, 0.002), (0.001, 0.002)
    wire = Wire(0.0, [slow] * (ROUND_TRIPS - 1) + [fast])
    assert measure(wire.ask, wire.now).offset_s == pytest.approx(-0.0005, abs=1e-9)


def test_a_machine_that_is_busy_for_a_while_is_asked_until_its_clock_is_known_well_enough():
    slow, better, fast = (0.4, 0.4), (0.01, 0.01), (0.001, 0.001)
    wire = Wire(0.0, [slow] * 20 + [better] + [fast] * 1000)
    assert measure(wire.ask, wire.now, enough_s=known_well_s(0.25)).error_s == pytest.approx(0.01)
    hopeless = Wire(0.0, [slow])
    assert measure(hopeless.ask, hopeless.now, enough_s=known_well_s(0.25)).error_s == pytest.approx(0.4)
    assert hopeless.time == pytest.approx(1000.0 + MOST_ROUND_TRIPS * 1.05)


@pytest.mark.parametrize("ways", [(0.02, 0.0), (0.0, 0.02), (0.013, 0.007)])
def test_the_true_offset_is_within_the_error_however_the_delay_is_divided(ways):
    wire = Wire(7.0, [ways])
    offset = measure(wire.ask, wire.now)
    assert abs(offset.offset_s - 7.0) <= offset.error_s + 1e-9


def test_a_clock_that_is_an_hour_off_is_refused_with_the_machines_name():
    check_offset("node-1", Offset(-3599.0, 0.001, 0.002))
    with pytest.raises(ArmError, match="the clock of the machine node-1 is 1h 5min behind the lab's; set that clock"):
        check_offset("node-1", Offset(-3900.0, 0.001, 0.002))
    with pytest.raises(ArmError, match="is 24h ahead of the lab's"):
        check_offset("node-1", Offset(86_400.0, 0.001, 0.002))


def test_slices_are_ten_times_as_long_as_the_two_least_known_clocks_may_be_apart():
    offsets = {name: Offset(5.0, error_s, 2 * error_s) for name, error_s in [("a", 0.01), ("b", 0.002), ("c", 0.016)]}
    assert doubt_of_clocks(offsets, 0.26) is None
    assert known_well_s(0.26) == pytest.approx(0.013)
    assert doubt_of_clocks(offsets, 0.25) == (
        "the difference of the clocks of the machines a and c is known to 26 ms only, which is more "
        "than 10% of a slice of 250ms"
    )


def test_engines_of_one_machine_have_one_clock():
    assert doubt_of_clocks({"a": Offset(5.0, 1.0, 2.0)}, 0.25) is None
