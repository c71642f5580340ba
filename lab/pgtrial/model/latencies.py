"""Reads, adds up and writes histograms of latencies in the engine's encoding: HdrHistogram's V2 form, deflated, in
base64.

The decoder is written here because a study reads one histogram for each slice, and the Python library took 0.2 s for
each second of a trial.
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
"""Half a bucket has 2**10 ranges of one width, which gives three significant digits."""
_HALF = 1 << _HALF_BITS
_DIGITS, _LOWEST, _HIGHEST_NS = 3, 1, 3_600_000_000_000
_HIGHEST_US = 3_600_000_000
"""The highest value of histograms of version 1 of the events: their values are microseconds."""
_COUNTS = {highest: (highest.bit_length() - _HALF_BITS + 1) * _HALF for highest in (_HIGHEST_NS, _HIGHEST_US)}
"""The number of ranges of a histogram, by its highest value: both halves of the first bucket, and the upper half of
each further one."""
_NS_OF_US = 1000

_DEFLATED, _INFLATED = 0x1C849314, 0x1C849313
_OUTER = struct.Struct(">II")
"""The outer header: the kind, and the length of the deflated part."""
_HEADER = struct.Struct(">IIIIQQd")
"""The inner header: kind, length of the counts, offset of their index, significant digits, lowest and highest value,
factor of values."""
_LONGEST = _HEADER.size + 9 * max(_COUNTS.values())
"""The size of the longest possible histogram, bytes. The decoder inflates no more than that."""
_LAST_SHIFT = 56
"""The shift of a number's ninth byte, of which all eight bits count; each byte before it contributes seven bits."""


_INDEX = np.arange(max(_COUNTS.values()))
_BUCKET = np.maximum((_INDEX >> _HALF_BITS) - 1, 0)
_LOW = np.where(_INDEX < _HALF, _INDEX, (_INDEX & (_HALF - 1)) + _HALF) << _BUCKET
_HIGH = _LOW + np.left_shift(1, _BUCKET) - 1
_MIDDLE = _LOW + ((_HIGH - _LOW + 1) >> 1)
"""The lowest, the highest and the middle value of each range that has a count."""


class Latencies:
    """The number of occurrences of each latency from 0 to an hour, in microseconds with three significant digits.

    The engine counts nanoseconds. Histograms of version 1 of its events count whole microseconds.
    """

    def __init__(self, counts: npt.NDArray[np.int64], highest: int = _HIGHEST_NS):
        """Makes a histogram of these counts, one for each range of a histogram with this highest value."""
        self._ranges = np.flatnonzero(counts)
        self._counts = counts[self._ranges]
        self._highest = highest
        self.total = int(self._counts.sum())
        """The number of latencies in the histogram."""

    @classmethod
    def read(cls, text: str) -> Latencies:
        """Returns the histogram that a text encodes. Raises ValueError, whose message is a sentence."""
        data, highest = _inflated(text)
        counts = np.zeros(_COUNTS[highest], np.int64)
        index = 0
        for number in _numbers(data):
            if number < 0:  # the next -number ranges have no latency
                index -= number
                continue
            if index >= len(counts):
                raise ValueError("the histogram has latencies beyond an hour")
            counts[index] = number
            index += 1
        return cls(counts, highest)

    @classmethod
    def sum_of(cls, parts: Iterable[Latencies]) -> Latencies:
        """Returns the sum of the histograms. It counts nanoseconds, unless all of them count microseconds."""
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
        """Returns the mean, in microseconds, with the middle of each range for the latencies in it; 0 if there are
        none."""
        return self._us(self._mean)

    @property
    def _mean(self) -> float:
        return float(self._counts.astype(float) @ _MIDDLE[self._ranges]) / self.total if self.total else 0.0

    @property
    def sd(self) -> float:
        """Returns the standard deviation of the latencies (divided by n), in microseconds; 0 if there are none."""
        squares = float(self._counts.astype(float) @ np.square(_MIDDLE[self._ranges] - self._mean))
        return self._us(math.sqrt(squares / self.total)) if self.total else 0.0

    @property
    def least(self) -> float:
        """Returns the lowest value of the first range that has a latency, in microseconds; 0 if there are none."""
        return self._us(int(_LOW[self._ranges[0]])) if self.total else 0.0

    @property
    def greatest(self) -> float:
        """Returns the highest value of the last range that has a latency, in microseconds; 0 if there are none."""
        return self._us(int(_HIGH[self._ranges[-1]])) if self.total else 0.0

    def percentile(self, percent: float) -> float:
        """Returns the latency that `percent` percent of all latencies do not exceed, as the highest value of its range,
        in microseconds; 0 if there are none."""
        return self.percentile_of(percent, self.total) or 0.0

    def percentile_of(self, percent: float, total: int) -> float | None:
        """Returns the percentile over `total` transactions, where those without a latency in this histogram took longer
        than all others; None if the percentile falls on one of those."""
        rank = max(1, int(percent * total / 100 + 0.5))
        if rank > self.total:
            return None
        place = self._ranges[np.searchsorted(np.cumsum(self._counts), rank)]
        return self._us(int(_HIGH[place] if percent else _LOW[place]))

    def above(self, limit_us: float) -> int:
        """Returns the number of latencies that are longer than a limit; those in the same range as the limit do not
        count."""
        limit = limit_us * (_NS_OF_US if self._highest == _HIGHEST_NS else 1)
        return int(self._counts[_LOW[self._ranges] > limit].sum())

    def steps(self) -> Iterator[tuple[float, int]]:
        """Returns the highest value of each range that has latencies, in microseconds, with the number of latencies up
        to it."""
        highest = [self._us(value) for value in _HIGH[self._ranges].tolist()]
        return zip(highest, np.cumsum(self._counts).tolist(), strict=True)

    def _us(self, value: float) -> float:
        return value / _NS_OF_US if self._highest == _HIGHEST_NS else float(value)

    def encode(self) -> str:
        """Returns the text that encodes the histogram."""
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
    """Returns the encoded counts of a histogram, inflated, and its highest value. Raises ValueError."""
    try:
        packed = base64.b64decode(text, validate=True)
        kind, length = _OUTER.unpack_from(packed)
        inflater = zlib.decompressobj()
        plain = inflater.decompress(packed[_OUTER.size :], _LONGEST)
        if not inflater.eof:
            raise ValueError("it is cut off, or longer than all ranges take")
        inner_kind, inner_length, offset, digits, lowest, highest, _ = _HEADER.unpack_from(plain)
    except (ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"it is no histogram in HdrHistogram's V2 form ({error})") from None
    known = (kind, inner_kind) == (_DEFLATED, _INFLATED) and [offset, digits, lowest] == [0, _DIGITS, _LOWEST]
    if not known or highest not in _COUNTS:
        raise ValueError("it is no histogram of three digits from 1 us to 1 h in HdrHistogram's V2 form")
    numbers = plain[_HEADER.size :]
    if length != len(packed) - _OUTER.size or inner_length != len(numbers):
        raise ValueError("the histogram is cut off")
    return numbers, highest


def _numbers(data: bytes) -> Iterator[int]:
    """Yields the signed numbers of a text in the ZigZag form of LEB128. Raises ValueError."""
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
        raise ValueError("the histogram is cut off")


def _write(number: int, out: bytearray) -> None:
    value = number << 1 if number >= 0 else ~(number << 1)
    shift = 0
    while value >= 0x80 and shift < _LAST_SHIFT:
        out.append(value & 0x7F | 0x80)
        value >>= 7
        shift += 7
    out.append(value)
