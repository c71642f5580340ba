"""The tables of reports by their rules."""

from __future__ import annotations

import numpy as np
import polars as pl

from tests.engine.suites.independent import Draws, Values, dates, money, numbers, texts, words

FIRST_DAY, DAYS, TODAY = 6575, 2406, 8856
"""2018-01-01 as the number of days since 2000-01-01, the number of days that have purchases, and 2024-03-31 as such a
number.
"""


def tables(hundredths: int) -> dict[str, pl.DataFrame]:
    """Returns all tables for seed 1; the scale is `hundredths` / 100."""
    suppliers, parts, buyers, purchases = (count * hundredths for count in (100, 2000, 1500, 15_000))
    catalog = _Catalog(parts, suppliers)
    sales, lines = _trade(catalog, buyers, purchases, clerks=10 * hundredths)
    regions, nations = words("REGIONS"), words("NATIONS")
    return {
        "regions": pl.DataFrame({"region_id": numbers(5), "region": regions.tolist()}),
        "nations": pl.DataFrame(
            {"nation_id": numbers(25), "region_id": np.arange(25) % 5 + 1, "nation": nations.tolist()}
        ),
        "suppliers": _suppliers(suppliers),
        "parts": catalog.parts(),
        "offers": catalog.offers(),
        "buyers": _buyers(buyers),
        "purchases": sales,
        "lines": lines,
    }


def _party(draws: Draws) -> dict[str, object]:
    nation, phone = draws.between(2, 1, 25), draws.below(6, 10_000_000)
    return {
        "nation_id": nation,
        "address": texts("{} {} {}", draws.between(3, 1, 999), draws.one(4, "STREETS"), draws.one(5, "WAYS")),
        "phone": texts("+{} {:03} {:04}", 30 + nation, phone // 10_000, phone % 10_000),
        "balance": money(draws.between(7, -100_000, 999_999)),
    }


def _suppliers(count: int) -> pl.DataFrame:
    ids = numbers(count)
    draws = Draws(1, ids)
    name = texts("{} & {} no. {}", draws.one(0, "LAST_NAMES"), draws.one(1, "LAST_NAMES"), ids)
    remark = draws.remark(draws.between(8, 4, 10), 9)
    return pl.DataFrame({"supplier_id": ids, "supplier": name, **_party(draws), "remark": remark})


def _buyers(count: int) -> pl.DataFrame:
    ids = numbers(count)
    draws = Draws(4, ids)
    name = texts("{} {}", draws.one(0, "FIRST_NAMES"), draws.one(1, "LAST_NAMES"))
    segment, remark = draws.one(10, "SEGMENTS").tolist(), draws.remark(draws.between(8, 4, 10), 9)
    return pl.DataFrame({"buyer_id": ids, "buyer": name, **_party(draws), "segment": segment, "remark": remark})


class _Catalog:
    def __init__(self, count: int, suppliers: int) -> None:
        self.count, self._suppliers = count, suppliers

    def price(self, part: Values) -> Values:
        return Draws(2, part).between(8, 100, 200_000)

    def supplier(self, part: Values, offer: Values) -> Values:
        draws = Draws(2, part)
        step = 1 + draws.below(10, (self._suppliers - 1) // 3)
        return (draws.below(9, self._suppliers) + offer * step) % self._suppliers + 1

    def parts(self) -> pl.DataFrame:
        ids = numbers(self.count)
        draws = Draws(2, ids)
        letter = np.array(list("ABCDEF"))[draws.below(3, 6)]
        return pl.DataFrame(
            {
                "part_id": ids,
                "part": texts("{} {} {}", draws.one(0, "FINISHES"), draws.one(1, "MATERIALS"), draws.one(2, "OBJECTS")),
                "maker": texts("maker {}", letter),
                "brand": texts("{}{}", letter, draws.between(4, 1, 5)),
                "kind": texts("{}/{}", draws.one(5, "DEPARTMENTS"), draws.one(6, "CLASSES")),
                "size": draws.between(7, 1, 60),
                "packing": texts("{} {}", draws.one(11, "PACKING_SIZES"), draws.one(12, "PACKING_FORMS")),
                "price": money(self.price(ids)),
                "remark": draws.remark(draws.between(13, 2, 5), 14),
            }
        )

    def offers(self) -> pl.DataFrame:
        rows = numbers(4 * self.count)
        draws, part = Draws(3, rows), (rows - 1) // 4 + 1
        return pl.DataFrame(
            {
                "part_id": part,
                "supplier_id": self.supplier(part, (rows - 1) % 4),
                "available": draws.between(0, 1, 9999),
                "cost": money(self.price(part) * draws.between(1, 40, 95) // 100),
                "remark": draws.remark(draws.between(2, 12, 20), 3, 4),
            }
        )


def _trade(catalog: _Catalog, buyers: int, count: int, *, clerks: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Purchases and their lines."""
    ids = numbers(count)
    purchase = Draws(5, ids)
    day, size = FIRST_DAY + purchase.below(1, DAYS), purchase.between(2, 1, 7)

    of = np.repeat(ids, size)
    line = np.concatenate([numbers(lines) for lines in size])
    draws = Draws(6, of * 8 + line)
    part, quantity = draws.between(0, 1, catalog.count), draws.between(1, 1, 50)
    discount, tax = draws.below(2, 11), draws.below(3, 9)
    price = quantity * catalog.price(part)
    shipped = np.repeat(day, size) + draws.between(4, 1, 120)
    received = shipped + draws.between(7, 1, 30)
    decided = np.where(draws.below(8, 4) == 0, "returned", "kept")
    lines = {
        "purchase_id": of,
        "line": line,
        "part_id": part,
        "supplier_id": catalog.supplier(part, draws.below(5, 4)),
        "quantity": quantity,
        "price": money(price),
        "discount": money(discount),
        "tax": money(tax),
        "outcome": np.where(received > TODAY, "open", decided).tolist(),
        "state": np.where(shipped > TODAY, "open", "shipped").tolist(),
        "shipped_on": dates(shipped),
        "promised_on": dates(np.repeat(day, size) + draws.between(6, 30, 90)),
        "received_on": dates(received),
        "carrier": draws.one(9, "CARRIERS").tolist(),
        "handling": draws.one(10, "HANDLINGS").tolist(),
        "remark": draws.remark(draws.between(11, 1, 4), 12),
    }

    charge = (price * (100 - discount) * (100 + tax) + 5000) // 10_000
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    total, opened = np.add.reduceat(charge, first), np.add.reduceat((shipped > TODAY).astype(int), first)
    state = np.select([opened == 0, opened == size], ["closed", "open"], "partial")
    buyer = purchase.below(0, buyers // 4 * 3)
    purchases = {
        "purchase_id": ids,
        "buyer_id": buyer // 3 * 4 + buyer % 3 + 1,
        "state": state.tolist(),
        "total": money(total),
        "purchased_on": dates(day),
        "urgency": purchase.one(3, "URGENCIES").tolist(),
        "clerk": purchase.between(4, 1, clerks),
        "remark": purchase.remark(purchase.between(5, 4, 10), 6),
    }
    return pl.DataFrame(purchases), pl.DataFrame(lines)
