"""The tables of joins by their rules."""

from __future__ import annotations

import numpy as np
import polars as pl

from tests.engine.suites.independent import Draws, Values, dates, money, nullable, numbers, spread, texts, words

FIRST_DAY, DAYS = 5844, 2900
"""2016-01-01 as the number of days since 2000-01-01, and the number of days that have sales, visits and reviews."""

PLACES, COUPONS, CATEGORIES = 5000, 500, 128


def tables(hundredths: int) -> dict[str, pl.DataFrame]:
    """Returns all tables for seed 1; the scale is `hundredths` / 100."""
    people, products, sales, visits, reviews = (count * hundredths for count in (1000, 200, 20_000, 10_000, 5000))
    return {
        "places": _places(),
        "people": _people(people),
        "products": _products(products),
        "coupons": _coupons(),
        "sales": _sales(sales, people, products),
        "visits": _visits(visits, people),
        "reviews": _reviews(reviews, people, products),
    }


def _day_in_order(ids: Values) -> Values:
    return FIRST_DAY + (ids - 1) * DAYS // len(ids)


def _places() -> pl.DataFrame:
    ids = numbers(PLACES)
    city = (ids - 1) // 5
    return pl.DataFrame(
        {
            "place_id": ids,
            "zip": texts("{}", 10_000 + ids),
            "city": texts("city {:04}", city),
            "province": texts("province {:03}", city // 10),
            "country": texts("country {:02}", city // 50),
        }
    )


def _people(count: int) -> pl.DataFrame:
    ids = numbers(count)
    draws = Draws(2, ids)
    born = draws.between(2, 1940, 2004)
    income = np.clip((2004 - born) // 7 + draws.between(3, -1, 3), 1, 10)
    usual = np.select([income <= 4, income <= 7, income <= 9], ["free", "basic", "plus"], "pro")
    return pl.DataFrame(
        {
            "person_id": ids,
            "place_id": spread(draws.zipf(0, PLACES), PLACES),
            "birth_year": born,
            "income": income,
            "plan": np.where(draws.below(4, 100) < 90, usual, draws.one(5, "PLANS")).tolist(),
            "referrer_id": nullable(spread(draws.zipf(7, count), count), draws.below(6, 100) >= 60),
            "joined_on": dates(_day_in_order(ids)),
        }
    )


def _category(product: Values) -> Values:
    return Draws(1, product).zipf(0, CATEGORIES) - 1


def _price(product: Values) -> Values:
    base = (_category(product) // 16 + 1) * 1000
    return base + Draws(1, product).below(3, base)


def _products(count: int) -> pl.DataFrame:
    ids = numbers(count)
    draws, category, launched = Draws(1, ids), _category(ids), _day_in_order(ids)
    ended = (ids <= count // 2) & (draws.below(4, 100) < 40)
    return pl.DataFrame(
        {
            "product_id": ids,
            "department": words("DEPARTMENTS_OF_SHOP")[category // 16].tolist(),
            "category": texts("category {:03}", category),
            "brand": texts("brand {:04}", category * 8 + draws.below(2, 8)),
            "price": money(_price(ids)),
            "launched_on": dates(launched),
            "ended_on": nullable(dates(launched + draws.between(5, 100, 900)), ended),
        }
    )


def _coupons() -> pl.DataFrame:
    ids = numbers(COUPONS)
    return pl.DataFrame(
        {
            "coupon_id": ids,
            "department": words("DEPARTMENTS_OF_SHOP")[(ids - 1) % 8].tolist(),
            "percent": 5 * Draws(6, ids).between(0, 1, 6),
            "valid_from": dates(FIRST_DAY + (ids - 1) * 5),
        }
    )


def _octave(rank: Values) -> Values:
    return np.floor(np.log2(rank)).astype(int)


def _sales(count: int, people: int, products: int) -> pl.DataFrame:
    ids = numbers(count)
    draws = Draws(3, ids)
    rank = draws.zipf(0, people)
    octave = _octave(rank) * products.bit_length() // people.bit_length()
    alike = draws.below(2, 100) < 60
    product = spread(np.where(alike, draws.in_octave(3, octave, products), draws.zipf(4, products)), products)
    person, quantity = spread(rank, people), draws.between(9, 1, 3)
    usual = words("CHANNELS")[person % 4]
    return pl.DataFrame(
        {
            "sale_id": ids,
            "person_id": person,
            "product_id": product,
            "sold_on": dates(_day_in_order(ids) + draws.below(6, 3)),
            "channel": np.where(draws.below(7, 100) < 80, usual, draws.one(8, "CHANNELS")).tolist(),
            "quantity": quantity,
            "amount": money(quantity * _price(product)),
            "coupon_id": nullable(_category(product) // 16 + 8 * draws.below(11, 62) + 1, draws.below(10, 100) >= 90),
        }
    )


def _visits(count: int, people: int) -> pl.DataFrame:
    draws = Draws(4, numbers(count))
    day = draws.below(2, DAYS)
    campaign = np.array(texts("campaign {:02}", day // 100))
    return pl.DataFrame(
        {
            "visit_id": numbers(count),
            "person_id": spread(draws.zipf(0, people), people),
            "visited_on": dates(FIRST_DAY + day),
            "pages": draws.zipf(3, 64),
            "campaign": nullable(campaign, draws.below(5, 100) >= 70),
        }
    )


def _reviews(count: int, people: int, products: int) -> pl.DataFrame:
    ids = numbers(count)
    draws = Draws(5, ids)
    product = spread(draws.zipf(0, products), products)
    usual = np.where(product % 3 == 0, draws.between(5, 1, 2), draws.between(5, 4, 5))
    stars = np.where(draws.below(4, 100) < 85, usual, draws.between(6, 1, 5))
    judged = (stars == 1) & (draws.below(7, 100) < 20)
    return pl.DataFrame(
        {
            "review_id": ids,
            "product_id": product,
            "person_id": spread(draws.zipf(2, people), people),
            "stars": stars,
            "written_on": dates(_day_in_order(ids)),
            "flagged": nullable(draws.below(8, 100) < 50, judged),
        }
    )
