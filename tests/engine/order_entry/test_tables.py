"""The tables of order entry: their contents, and how they are made."""

from __future__ import annotations

import json

import pytest

from tests.engine.order_entry import independent
from tests.engine.order_entry.looks import DISTRICTS, WAREHOUSES, number, violated

pytestmark = pytest.mark.server


COUNTS = {
    "item": 100_000,
    "warehouse": WAREHOUSES,
    "stock": 100_000 * WAREHOUSES,
    "district": DISTRICTS,
    "customer": 3000 * DISTRICTS,
    "history": 3000 * DISTRICTS,
    "orders": 3000 * DISTRICTS,
    "new_order": 900 * DISTRICTS,
}

# clause 4.3.3.1: what no row may be
NEVER = {
    "items": "SELECT count(*) FROM item WHERE i_id NOT BETWEEN 1 AND 100000 OR i_im_id NOT BETWEEN 1 AND 10000 "
    "OR i_price NOT BETWEEN 1 AND 100 OR i_name !~ '^[A-Za-z0-9]{14,24}$' OR i_data !~ '^[A-Za-z0-9]{26,50}$'",
    "warehouses": "SELECT count(*) FROM warehouse WHERE w_ytd <> 300000 OR w_tax NOT BETWEEN 0 AND 0.2 "
    "OR w_name !~ '^[A-Za-z0-9]{6,10}$' OR w_zip !~ '^[0-9]{4}11111$' OR w_state !~ '^[A-Za-z0-9]{2}$'",
    "districts": "SELECT count(*) FROM district WHERE d_ytd <> 30000 OR d_tax NOT BETWEEN 0 AND 0.2 "
    "OR d_next_o_id <> 3001 OR d_city !~ '^[A-Za-z0-9]{10,20}$' OR d_zip !~ '^[0-9]{4}11111$'",
    "stock": "SELECT count(*) FROM stock WHERE s_quantity NOT BETWEEN 10 AND 100 OR s_ytd <> 0 OR s_order_cnt <> 0 "
    "OR s_remote_cnt <> 0 OR s_data !~ '^[A-Za-z0-9]{26,50}$' OR s_dist_01 !~ '^[A-Za-z0-9]{24}$' "
    "OR s_dist_10 !~ '^[A-Za-z0-9]{24}$'",
    "customers": "SELECT count(*) FROM customer WHERE c_balance <> -10 OR c_ytd_payment <> 10 OR c_payment_cnt <> 1 "
    "OR c_delivery_cnt <> 0 OR c_credit_lim <> 50000 OR c_middle <> 'OE' OR c_credit NOT IN ('GC', 'BC') "
    "OR c_discount NOT BETWEEN 0 AND 0.5 OR c_zip !~ '^[0-9]{4}11111$' OR c_first !~ '^[A-Za-z0-9]{8,16}$' "
    "OR c_phone !~ '^[0-9]{16}$' "
    "OR c_data !~ '^[A-Za-z0-9]+$' OR length(c_data) NOT BETWEEN 300 AND 500",
    "history": "SELECT count(*) FROM history WHERE h_amount <> 10 OR h_d_id <> h_c_d_id OR h_w_id <> h_c_w_id",
    "orders": "SELECT count(*) FROM orders WHERE (o_carrier_id IS NULL) <> (o_id >= 2101) "
    "OR o_carrier_id NOT BETWEEN 1 AND 10 OR o_ol_cnt NOT BETWEEN 5 AND 15 OR o_all_local <> 1",
    "lines": "SELECT count(*) FROM order_line WHERE (ol_delivery_d IS NULL) <> (ol_o_id >= 2101) OR ol_quantity <> 5 "
    "OR (ol_o_id < 2101 AND ol_amount <> 0) OR (ol_o_id >= 2101 AND ol_amount NOT BETWEEN 0.01 AND 9999.99) "
    "OR ol_supply_w_id <> ol_w_id OR ol_i_id NOT BETWEEN 1 AND 100000",
    "new orders": "SELECT count(*) FROM new_order WHERE no_o_id NOT BETWEEN 2101 AND 3000",
    # each customer of a district has one order, and its first thousand have all last names
    "customers with another number of orders": "SELECT count(*) FROM (SELECT o_w_id, o_d_id, "
    "count(DISTINCT o_c_id) AS n FROM orders GROUP BY 1, 2) AS o WHERE n <> 3000",
    "districts without all last names": "SELECT count(*) FROM (SELECT c_w_id, c_d_id, count(DISTINCT c_last) AS n "
    "FROM customer WHERE c_id <= 1000 GROUP BY 1, 2) AS c WHERE n <> 1000",
}

# share of the rows, and how many rows there are
SHARES = {
    "bad credit": ("SELECT avg((c_credit = 'BC')::int) FROM customer", 0.1, 3000 * DISTRICTS),
    "original items": ("SELECT avg((i_data LIKE '%ORIGINAL%')::int) FROM item", 0.1, 100_000),
    "original stock": ("SELECT avg((s_data LIKE '%ORIGINAL%')::int) FROM stock", 0.1, 100_000 * WAREHOUSES),
    "a carrier": ("SELECT avg((o_carrier_id = 7)::int) FROM orders WHERE o_id < 2101", 0.1, 2100 * DISTRICTS),
    "a size": ("SELECT avg((o_ol_cnt = 5)::int) FROM orders", 1 / 11, 3000 * DISTRICTS),
}


def test_the_tables_have_the_rows_of_the_specification(order_entry, copy):
    target = copy()
    assert {table: number(target, f"SELECT count(*) FROM {table}") for table in COUNTS} == COUNTS
    assert {name: number(target, query) for name, query in NEVER.items()} == dict.fromkeys(NEVER, 0)
    for name, (query, share, rows) in SHARES.items():
        found = number(target, query)
        assert abs(found - share) <= 5 * (share * (1 - share) / rows) ** 0.5, (name, found)
    # the more frequent of the last names that NURand draws
    most = number(
        target, "SELECT max(n) FROM (SELECT count(*) AS n FROM customer WHERE c_id > 1000 GROUP BY c_last) AS c"
    )
    assert most > 4 * 2000 * DISTRICTS / 1000
    assert violated(order_entry, target) == set()


def test_two_loads_have_the_same_rows_but_for_the_time(order_entry, copy, fresh):
    loaded, target = copy(1), fresh(18, empty=True)
    checksum = (
        "SELECT sum(hashtext(c_first || c_last || c_data || c_discount)) + (SELECT sum(hashtext(s_data || s_dist_05)) "
        "FROM stock) + (SELECT sum(ol_i_id * ol_amount) FROM order_line) FROM customer"
    )
    before = number(loaded, checksum)
    assert order_entry.run(target, "load", "-j", "1", "-F", "80", "--foreign-keys").status == 0
    assert number(target, checksum) == before
    assert number(target, "SELECT count(*) FROM pg_constraint WHERE contype = 'f'") == 10
    assert number(target, "SELECT count(*) FROM pg_class WHERE reloptions @> ARRAY['fillfactor=80']") == 9
    assert order_entry.run(target, "run", "-c", "2", "-t", "50").status == 0, "the load keeps the foreign keys"
    assert order_entry.run(target, "load", "--random-seed", "5").status == 0
    assert number(target, checksum) != before


def test_the_tables_equal_those_of_an_independent_loader_in_counts_and_sums(copy):
    """The other loader is sysbench-tpcc, whose tables for one warehouse independent.json describes."""
    theirs = json.loads(independent.RECORD.read_text())
    with copy(1).connect_as_user() as connection:
        ours = independent.look(connection, dict(zip(independent.TABLES, independent.TABLES, strict=True)))
    assert ours["equal"] == theirs["equal"]
    assert ours["alike"].keys() == theirs["alike"].keys()
    for name, (mean, deviation, count) in ours["alike"].items():
        their_mean, their_deviation, their_count = theirs["alike"][name]
        allowed = 5 * (deviation**2 / count + their_deviation**2 / their_count) ** 0.5
        assert abs(mean - their_mean) <= allowed, (name, mean, their_mean, allowed)
