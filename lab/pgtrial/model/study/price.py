"""The price of an arm, `0.42 USD/h`: what its server costs for as long as it is there."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HOURS = {"h": 1, "d": 24, "month": 730, "year": 8760}
"""The hours of each unit of time. A month has the mean length, as clouds bill it."""

_PRICE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Z]{3})\s*/\s*(\w+)\s*")


@dataclass(frozen=True)
class Price:
    """The price of a server: hundredths of a currency for an hour."""

    cents_an_hour: float
    currency: str


def price_of(text: str) -> Price:
    """Returns the price that a text stands for. Raises ValueError."""
    match = _PRICE.fullmatch(text)
    if match is None or match[3] not in _HOURS or not float(match[1]):
        raise ValueError(f"{text!r} is no price; write an amount, a currency and a time, such as 0.42 USD/h (d, month)")
    return Price(100 * float(match[1]) / _HOURS[match[3]], match[2])


def known_price(text: str) -> str:
    """Returns the text unchanged. Raises ValueError if it is no price."""
    price_of(text)
    return text
