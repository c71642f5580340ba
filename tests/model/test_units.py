"""Quantities as people read and write them."""

import pytest

from pgtrial.model.records.claims import Estimate
from pgtrial.model.units import change, format_duration, parse_duration, parse_share, three_digits
from pgtrial.report.words import change_text


@pytest.mark.parametrize(
    ("difference", "text"), [(0.41, "+41%"), (0.994, "+99%"), (1.0, "2 times"), (47.76, "49 times"), (-0.98, "-98%")]
)
def test_a_difference_is_a_percentage_below_twice_and_a_ratio_from_there_on(difference, text):
    assert change(difference) == text


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((46.9, 47.76, 49.3), "48..50 times"),
        ((1.0, 1.5, 2.1), "2.0..3.1 times"),
        ((-0.2, 1.5, 2.1), "1..3 times"),
        ((0.3, 0.4, 0.5), "+30..+50%"),
        ((None, -0.32, -0.133), "at most -13%"),
        ((0.05, 0.07, None), "at least +5.0%"),
        ((None, 0.02, None), "not bounded yet"),
    ],
)
def test_the_bounds_of_a_ratio_have_the_unit_of_its_estimate(bounds, text):
    low, value, high = bounds
    assert Estimate(low=low, value=value, high=high).text() == text


@pytest.mark.parametrize(
    ("metric", "difference", "baseline", "text"),
    [
        (None, 47.76, "on", "off is 49 times as fast as on"),
        (None, 47.76, "", "off is 49 times as fast"),
        ("tps", -0.8, "on", "off takes 5 times as long as on"),
        (None, -1.0, "on", "off is 100% slower than on"),
        ("p99", 11.0, "on", "p99 of off is 12 times that of on"),
        ("p99", 11.0, "", "p99 of off is 12 times as high"),
        ("p99", -0.8, "on", "p99 of off is 80% lower than that of on"),
    ],
)
def test_a_change_of_twice_and_more_is_told_in_times(metric, difference, baseline, text):
    assert change_text(metric, "off", difference, baseline) == text


@pytest.mark.parametrize(("text", "seconds"), [("5 minutes", 300), ("1 hour 30 seconds", 3630), ("2 days", 172800)])
def test_units_of_time_may_be_written_out(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.75, "750ms"),
        (1.25, "1.25s"),
        (1.5, "1.5s"),
        (2.0, "2s"),
        (12.75, "12.75s"),
        (1.234, "1.2s"),
        (75.25, "1min 15s"),
    ],
)
def test_quarters_of_a_second_are_shown_exactly(seconds, text):
    assert format_duration(seconds) == text


def test_a_share_of_more_than_the_whole_is_refused_with_the_right_form():
    with pytest.raises(ValueError, match="5 is more than the whole, which is 1; write 5% in quotes for 5 per cent"):
        parse_share(5)
    with pytest.raises(ValueError, match="'5' is more than the whole, which is 1; write 5% for 5 per cent"):
        parse_share("5")
    assert parse_share("150%") == 1.5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.000012345, "0.0000123"),
        (0.1, "0.1"),
        (1.5, "1.5"),
        (9.999, "10"),
        (12.34, "12.3"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1234.5, "1,230"),
        (-1234567, "-1,230,000"),
        (float("inf"), "inf"),
    ],
)
def test_three_digits_of_a_number_are_written_without_an_exponent(value, text):
    assert three_digits(value) == text
