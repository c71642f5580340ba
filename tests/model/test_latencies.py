"""Histograms of latencies are read, added up and written as HdrHistogram's own library does it."""

from __future__ import annotations

import base64

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.iterators import RecordedIterator
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.model.latencies import Latencies

LONGEST_NS = 3_600_000_000_000
LONGEST_US = 3_600_000_000
"""The greatest value of a histogram in version 1 of the events, which counts microseconds."""
VALUES = st.dictionaries(
    st.one_of(st.integers(0, 5000), st.integers(0, LONGEST_US)), st.integers(1, 1 << 30), max_size=30
)
LONGEST = st.sampled_from([LONGEST_NS, LONGEST_US])
PERCENT = st.floats(0, 100)


class Recorded(RecordedIterator):
    """The library's iterator. It steps over a run of empty buckets at once; nearly all buckets are empty."""

    def increment_sub_bucket(self) -> None:
        counts = self.histogram.counts
        while self.current_index + 2 < len(counts) and not counts[self.current_index + 1]:
            self.current_index += 1
        super().increment_sub_bucket()


class Library(HdrHistogram):
    """The library's histogram, whose moments and steps are computed by that iterator."""

    def get_recorded_iterator(self) -> Recorded:
        return Recorded(self)


def of_library(counts: dict[int, int], longest: int = LONGEST_NS) -> HdrHistogram:
    histogram = Library(1, longest, 3)
    for value, count in counts.items():
        histogram.record_value(value, count)
    return histogram


@given(VALUES, LONGEST, PERCENT)
def test_a_histogram_has_the_moments_and_percentiles_of_the_library(counts, longest, percent):
    theirs = of_library(counts, longest)
    ours = Latencies.read(theirs.encode().decode())
    units_of_us = 1000 if longest == LONGEST_NS else 1
    assert ours.total == theirs.get_total_count()
    assert ours.mean == pytest.approx(theirs.get_mean_value() / units_of_us, rel=1e-12)
    assert ours.sd == pytest.approx(theirs.get_stddev() / units_of_us, rel=1e-9)
    assert ours.least == theirs.get_min_value() / units_of_us
    assert ours.greatest == theirs.get_max_value() / units_of_us
    assert ours.percentile(percent) == theirs.get_value_at_percentile(percent) / units_of_us
    assert list(ours.steps()) == [
        (item.value_iterated_to / units_of_us, item.total_count_to_this_value)
        for item in theirs.get_recorded_iterator()
    ]


@given(VALUES, VALUES, LONGEST)
def test_sums_are_exact_and_the_library_reads_what_is_written(first, second, longest):
    parts = [Latencies.read(of_library(counts, longest).encode().decode()) for counts in (first, second)]
    theirs = of_library(first, longest)
    theirs.add(of_library(second, longest))
    again = HdrHistogram.decode(Latencies.sum_of(parts).encode())
    assert again.highest_trackable_value == longest
    assert again.get_total_count() == theirs.get_total_count()
    assert list(again.counts) == list(theirs.counts)


def test_short_latencies_have_three_digits():
    latencies = Latencies.read(of_library({25_317: 1, 1_001: 1}).encode().decode())
    assert (latencies.least, latencies.percentile(50)) == (1.001, 1.001)
    assert latencies.greatest == pytest.approx(25.317, rel=1e-3)


@given(VALUES, VALUES, PERCENT)
def test_histograms_in_microseconds_are_added_to_those_in_nanoseconds(of_before, counts, percent):
    parts = [
        Latencies.read(of_library(of_before, LONGEST_US).encode().decode()),
        Latencies.read(of_library(counts).encode().decode()),
    ]
    whole, expected = Latencies.sum_of(parts), of_library({1000 * us: count for us, count in of_before.items()})
    expected.add(of_library(counts))
    assert whole.total == expected.get_total_count()
    assert whole.percentile(percent) == pytest.approx(expected.get_value_at_percentile(percent) / 1000, rel=2e-3)


def test_no_latencies_have_no_percentiles():
    nothing = Latencies.sum_of([])
    assert (nothing.total, nothing.mean, nothing.sd, nothing.percentile(50.0)) == (0, 0.0, 0.0, 0)
    assert Latencies.read(nothing.encode()).total == 0


WHOLE = base64.b64decode(of_library({100: 3, 7_000_000: 1}).encode())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the text is not a histogram"),
        ("not base64!", "the text is not a histogram"),
        (base64.b64encode(b"HIST").decode(), "the text is not a histogram"),
        (base64.b64encode(WHOLE[:-1]).decode(), "the text is not a histogram"),
        (base64.b64encode(WHOLE + b"x").decode(), "the histogram is cut off"),
        (
            HdrHistogram(1, 1_000_000, 2).encode().decode(),
            "the histogram does not have three digits and a range from 1 us to 1 h",
        ),
    ],
)
def test_what_is_no_histogram_is_one_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        Latencies.read(text)
    assert "\n" not in str(refused.value)


@given(st.binary(max_size=200), st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_damage_is_found_or_harmless(tail, place, byte):
    for data in (WHOLE[:place] + tail, WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]):
        text = base64.b64encode(data).decode()
        try:
            found = Latencies.read(text)
        except ValueError:
            continue
        assert Latencies.read(found.encode()).total == found.total


@given(VALUES.filter(bool), st.integers(0, 1000), PERCENT)
def test_transactions_that_never_ended_lie_behind_all_that_did(counts, lost, percent):
    latencies = Latencies.read(of_library(counts).encode().decode())
    total = latencies.total + lost
    found = latencies.percentile_of(percent, total)
    if max(1, int(percent * total / 100 + 0.5)) > latencies.total:
        assert found is None
    else:
        never = of_library({**counts, LONGEST_NS: counts.get(LONGEST_NS, 0) + lost})
        assert found == pytest.approx(Latencies.read(never.encode().decode()).percentile(percent))


def test_without_lost_transactions_a_percentile_is_that_of_the_histogram():
    latencies = Latencies.read(of_library({1_000_000: 98, 5_000_000: 2}).encode().decode())
    assert latencies.percentile_of(99, 100) == latencies.percentile(99) == pytest.approx(5000, rel=1e-3)
    assert latencies.percentile_of(99, 101) == pytest.approx(5000, rel=1e-3)
    assert latencies.percentile_of(99, 102) is None
    assert Latencies.sum_of([]).percentile_of(50, 3) is None
