"""Reads, adds up and writes histograms of latencies as the load engine encodes them: in HdrHistogram's V2 format,
compressed with deflate, in base64.

This module has a decoder of its own because a study reads one histogram for each slice of a trial, and the HdrHistogram
library for Python took 0.2 s for each second of a trial.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

_HALF_BITS = 10
"""The binary logarithm of the number of ranges in half a bucket. All ranges of a bucket have the same width, so that
2**10 ranges give three significant digits."""
_HALF = 1 << _HALF_BITS
_DIGITS, _LOWEST, _HIGHEST_NS = 3, 1, 3_600_000_000_000
_HIGHEST_US = 3_600_000_000
"""The highest value of histograms in version 1 of the engine's events, whose values are microseconds. Later versions
use nanoseconds."""
_COUNTS = {highest: (highest.bit_length() - _HALF_BITS + 1) * _HALF for highest in (_HIGHEST_NS, _HIGHEST_US)}
"""The number of ranges of a histogram, by its highest value: both halves of the first bucket, and the upper half of
each further bucket."""
_NS_OF_US = 1000

_DEFLATED, _INFLATED = 0x1C849314, 0x1C849313
_OUTER = struct.Struct(">II")
"""The outer header: the kind of encoding, and the length in bytes of the compressed data after it."""
_HEADER = struct.Struct(">IIIIQQd")
"""The inner header: the kind of encoding, the length in bytes of the encoded counts, the offset of their index, the
number of significant digits, the lowest and the highest value, and the factor by which values are multiplied."""
_LONGEST = _HEADER.size + 9 * max(_COUNTS.values())
"""The size in bytes of the longest possible histogram. The decoder decompresses at most this many bytes."""
_LAST_SHIFT = 56
"""The shift in bits of the ninth byte of an encoded number. All eight bits of the ninth byte count; each byte before it
contributes seven bits."""


_INDEX = np.arange(max(_COUNTS.values()))
_BUCKET = np.maximum((_INDEX >> _HALF_BITS) - 1, 0)
_LOW = np.where(_INDEX < _HALF, _INDEX, (_INDEX & (_HALF - 1)) + _HALF) << _BUCKET
_HIGH = _LOW + np.left_shift(1, _BUCKET) - 1
_MIDDLE = _LOW + ((_HIGH - _LOW + 1) >> 1)
"""The middle value of each range of a histogram. `_LOW` has the lowest value of each range, and `_HIGH` the highest."""


class Latencies:
    """A histogram of latencies from 0 to an hour: how often each latency occurred, to three significant digits. All
    methods take and return microseconds.

    Internally the histogram counts nanoseconds, as the load engine does. Histograms from version 1 of the engine's
    events count whole microseconds.
    """

    def __init__(self, counts: npt.NDArray[np.int64], highest: int = _HIGHEST_NS):
        """Makes a histogram from `counts`, which has the number of latencies in each range. `highest` is the highest
        value that the histogram can have; it shows whether the unit is nanoseconds or microseconds."""
        self._ranges = np.flatnonzero(counts)
        self._counts = counts[self._ranges]
        self._highest = highest
        self.total = int(self._counts.sum())
        """The number of latencies in the histogram."""

    @classmethod
    def read(cls, text: str) -> Latencies:
        """Decodes a histogram from the text that the load engine wrote. Raises ValueError, whose message says what is
        wrong with the text."""
        data, highest = _inflated(text)
        counts = np.zeros(_COUNTS[highest], np.int64)
        index = 0
        for number in _numbers(data):
            if number < 0:  # a negative number means that the next -number ranges have no latency
                index -= number
                continue
            if index >= len(counts):
                raise ValueError("the histogram has latencies of more than an hour, which the load engine never writes")
            counts[index] = number
            index += 1
        return cls(counts, highest)

    @classmethod
    def sum_of(cls, parts: Iterable[Latencies]) -> Latencies:
        """Returns the sum of the histograms. The sum counts nanoseconds, unless all of the histograms count
        microseconds."""
        sums: dict[int, npt.NDArray[np.int64]] = {}
        for part in parts:
            if part._highest not in sums:
                sums[part._highest] = np.zeros(_COUNTS[part._highest], np.int64)
            sums[part._highest][part._ranges] += part._counts
        if len(sums) == 1:
            ((highest, counts),) = sums.items()
            return cls(counts, highest)
        whole = np.zeros(_COUNTS[_HIGHEST_NS], np.int64)
        for highest, counts in sums.items():
            known = np.flatnonzero(counts)
            values = _LOW[known] * (1 if highest == _HIGHEST_NS else _NS_OF_US)
            np.add.at(whole, np.searchsorted(_LOW, values, side="right") - 1, counts[known])
        return cls(whole)

    @property
    def mean(self) -> float:
        """Returns the mean latency in microseconds, where each latency counts as the middle value of its range; 0 for
        an empty histogram."""
        return self._us(self._mean)

    @property
    def _mean(self) -> float:
        return float(self._counts.astype(float) @ _MIDDLE[self._ranges]) / self.total if self.total else 0.0

    @property
    def sd(self) -> float:
        """Returns the standard deviation of the latencies (divided by n) in microseconds; 0 for an empty histogram."""
        squares = float(self._counts.astype(float) @ np.square(_MIDDLE[self._ranges] - self._mean))
        return self._us(math.sqrt(squares / self.total)) if self.total else 0.0

    @property
    def least(self) -> float:
        """Returns the shortest latency, as the lowest value of its range, in microseconds; 0 for an empty histogram."""
        return self._us(int(_LOW[self._ranges[0]])) if self.total else 0.0

    @property
    def greatest(self) -> float:
        """Returns the longest latency, as the highest value of its range, in microseconds; 0 for an empty histogram."""
        return self._us(int(_HIGH[self._ranges[-1]])) if self.total else 0.0

    def percentile(self, percent: float) -> float:
        """Returns the latency that `percent` percent of all latencies do not exceed, as the highest value of its range,
        in microseconds; 0 for an empty histogram."""
        return self.percentile_of(percent, self.total) or 0.0

    def percentile_of(self, percent: float, total: int) -> float | None:
        """Returns a percentile of `total` transactions, in microseconds. Transactions that are not in this histogram,
        such as failed ones, count as slower than all others. Returns None if the percentile falls on such a
        transaction."""
        rank = max(1, int(percent * total / 100 + 0.5))
        if rank > self.total:
            return None
        index = self._ranges[np.searchsorted(np.cumsum(self._counts), rank)]
        return self._us(int(_HIGH[index] if percent else _LOW[index]))

    def above(self, limit_us: float) -> int:
        """Returns the number of latencies that are longer than a limit in microseconds. Latencies in the same range of
        the histogram as the limit do not count."""
        limit = limit_us * (_NS_OF_US if self._highest == _HIGHEST_NS else 1)
        return int(self._counts[_LOW[self._ranges] > limit].sum())

    def steps(self) -> Iterator[tuple[float, int]]:
        """Returns the cumulative distribution: for each range that has latencies, its highest value in microseconds and
        the number of latencies up to this value."""
        highest = [self._us(value) for value in _HIGH[self._ranges].tolist()]
        return zip(highest, np.cumsum(self._counts).tolist(), strict=True)

    def _us(self, value: float) -> float:
        return value / _NS_OF_US if self._highest == _HIGHEST_NS else float(value)

    def encode(self) -> str:
        """Returns the histogram in the encoding that `read` decodes."""
        numbers, next_index = bytearray(), 0
        for index, count in zip(self._ranges.tolist(), self._counts.tolist(), strict=True):
            if index > next_index:
                _write(next_index - index, numbers)
            _write(count, numbers)
            next_index = index + 1
        header = _HEADER.pack(_INFLATED, len(numbers), 0, _DIGITS, _LOWEST, self._highest, 1.0)
        deflated = zlib.compress(header + numbers)
        return base64.b64encode(_OUTER.pack(_DEFLATED, len(deflated)) + deflated).decode()


def _inflated(text: str) -> tuple[bytes, int]:
    """Decompresses the text of a histogram. Returns the encoded counts and the histogram's highest value. Raises
    ValueError."""
    try:
        packed = base64.b64decode(text, validate=True)
        kind, length = _OUTER.unpack_from(packed)
        inflater = zlib.decompressobj()
        plain = inflater.decompress(packed[_OUTER.size :], _LONGEST)
        if not inflater.eof:
            raise ValueError("its compressed data are cut off, or are longer than any histogram of the load engine")
        inner_kind, inner_length, offset, digits, lowest, highest, _ = _HEADER.unpack_from(plain)
    except (ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"the text is not a histogram in HdrHistogram's V2 format ({error})") from None
    known = (kind, inner_kind) == (_DEFLATED, _INFLATED) and [offset, digits, lowest] == [0, _DIGITS, _LOWEST]
    if not known or highest not in _COUNTS:
        raise ValueError(
            "the histogram does not have three digits and a range from 1 us to 1 h, as those of the load engine do"
        )
    numbers = plain[_HEADER.size :]
    if length != len(packed) - _OUTER.size or inner_length != len(numbers):
        raise ValueError("the histogram is cut off: its length differs from the length in its header")
    return numbers, highest


def _numbers(data: bytes) -> Iterator[int]:
    """Yields the signed integers that a byte string contains, in the ZigZag form of LEB128. Raises ValueError if the
    last integer is cut off."""
    value = shift = 0
    for byte in data:
        if shift < _LAST_SHIFT and byte & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            continue
        value |= byte << shift
        yield (value >> 1) ^ -(value & 1)
        value = shift = 0
    if shift:
        raise ValueError("the histogram is cut off: its last number is incomplete")


def _write(number: int, out: bytearray) -> None:
    value = number << 1 if number >= 0 else ~(number << 1)
    shift = 0
    while value >= 0x80 and shift < _LAST_SHIFT:
        out.append(value & 0x7F | 0x80)
        value >>= 7
        shift += 7
    out.append(value)
