"""Histograms of latencies are read, added up and written as HdrHistogram's own library does it."""

from __future__ import annotations

import base64

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.iterators import RecordedIterator
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.model.latencies import Latencies

VALUES = st.dictionaries(
    st.one_of(st.integers(0, 5000), st.integers(0, 3_600_000_000)), st.integers(1, 1 << 30), max_size=30
)
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


def of_library(counts: dict[int, int]) -> HdrHistogram:
    histogram = Library(1, 3_600_000_000, 3)
    for value, count in counts.items():
        histogram.record_value(value, count)
    return histogram


@given(VALUES, PERCENT)
def test_a_histogram_has_the_moments_and_percentiles_of_the_library(counts, percent):
    theirs = of_library(counts)
    ours = Latencies.read(theirs.encode().decode())
    assert ours.total == theirs.get_total_count()
    assert ours.mean == pytest.approx(theirs.get_mean_value(), rel=1e-12)
    assert ours.sd == pytest.approx(theirs.get_stddev(), rel=1e-9)
    assert ours.least == theirs.get_min_value()
    assert ours.greatest == theirs.get_max_value()
    assert ours.percentile(percent) == theirs.get_value_at_percentile(percent)
    assert list(ours.steps()) == [
        (item.value_iterated_to, item.total_count_to_this_value) for item in theirs.get_recorded_iterator()
    ]


@given(VALUES, VALUES)
def test_sums_are_exact_and_the_library_reads_what_is_written(first, second):
    parts = [Latencies.read(of_library(counts).encode().decode()) for counts in (first, second)]
    theirs = of_library(first)
    theirs.add(of_library(second))
    again = HdrHistogram.decode(Latencies.sum_of(parts).encode())
    assert again.get_total_count() == theirs.get_total_count()
    assert list(again.counts) == list(theirs.counts)


def test_no_latencies_have_no_percentiles():
    nothing = Latencies.sum_of([])
    assert (nothing.total, nothing.mean, nothing.sd, nothing.percentile(50.0)) == (0, 0.0, 0.0, 0)
    assert Latencies.read(nothing.encode()).total == 0


WHOLE = base64.b64decode(of_library({100: 3, 7_000_000: 1}).encode())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is no histogram"),
        ("not base64!", "it is no histogram"),
        (base64.b64encode(b"HIST").decode(), "it is no histogram"),
        (base64.b64encode(WHOLE[:-1]).decode(), "it is no histogram"),
        (base64.b64encode(WHOLE + b"x").decode(), "the histogram is cut off"),
        (HdrHistogram(1, 1_000_000, 2).encode().decode(), "it is no histogram of three digits from 1 us to 1 h"),
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
