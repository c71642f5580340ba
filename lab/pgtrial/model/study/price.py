"""The price of an arm, such as `0.42 USD/h`: what its server costs for each hour, day, month or year in which it
exists."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgtrial.model.quoting import quoted

_HOURS = {"h": 1, "d": 24, "month": 730, "year": 8760}
"""The number of hours in each unit of time. A month has the mean length, as cloud providers bill it."""

_PRICE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Z]{3})\s*/\s*(\w+)\s*")


@dataclass(frozen=True)
class Price:
    """The price of a server for an hour, in hundredths of a currency."""

    cents_an_hour: float
    currency: str


def price_of(text: str) -> Price:
    """Returns the price that a text such as `0.42 USD/h` stands for. Raises ValueError."""
    match = _PRICE.fullmatch(text)
    if match is None or match[3] not in _HOURS or not float(match[1]):
        raise ValueError(
            f"{quoted(text)} is not a price; write an amount, a currency and a time (h, d, month or year), such as "
            "0.42 USD/h"
        )
    return Price(100 * float(match[1]) / _HOURS[match[3]], match[2])


def known_price(text: str) -> str:
    """Returns the text unchanged. Raises ValueError if the text is not a price."""
    price_of(text)
    return text
