"""Records the tables that another loader fills: one warehouse of sysbench-tpcc, described by queries.

`python -m tests.engine.order_entry.independent CONNINFO > tests/engine/order_entry/independent.json` writes the record
anew, from a database in which `tpcc.lua --scale=1 --tables=1 prepare` of github.com/Percona-Lab/sysbench-tpcc has run.

Left out is what that loader does not do by the specification: names, addresses and texts; prices up to 101; no data
with ORIGINAL in it; a new constant for each of NURand's last names, which makes all of them equally frequent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

RECORD = Path(__file__).with_suffix(".json")
TABLES = ("customer", "district", "history", "item", "new_order", "order_line", "orders", "stock", "warehouse")

EQUAL = {
    "items": "count(*) FROM {item}",
    "sum of the items' numbers": "sum(i_id) FROM {item}",
    "warehouses": "count(*) FROM {warehouse}",
    "w_ytd": "sum(w_ytd) FROM {warehouse}",
    "districts": "count(*) FROM {district}",
    "d_ytd": "sum(d_ytd) FROM {district}",
    "d_next_o_id": "sum(d_next_o_id) FROM {district}",
    "customers": "count(*) FROM {customer}",
    "c_balance": "sum(c_balance) FROM {customer}",
    "c_ytd_payment": "sum(c_ytd_payment) FROM {customer}",
    "c_payment_cnt": "sum(c_payment_cnt) FROM {customer}",
    "c_delivery_cnt": "sum(c_delivery_cnt) FROM {customer}",
    "c_credit_lim": "sum(c_credit_lim) FROM {customer}",
    "last names": "md5(string_agg(c_last, ',' ORDER BY c_d_id, c_id)) FROM {customer} WHERE c_id <= 1000",
    "payments": "count(*) FROM {history}",
    "h_amount": "sum(h_amount) FROM {history}",
    "payments by customer and district": "sum(h_c_id * h_c_d_id * h_d_id) FROM {history}",
    "orders": "count(*) FROM {orders}",
    "o_c_id": "sum(o_c_id) FROM {orders}",
    "different customers of orders": "count(DISTINCT (o_d_id, o_c_id)) FROM {orders}",
    "orders on their way": "sum(o_id) FROM {orders} WHERE o_carrier_id IS NULL",
    "o_all_local": "sum(o_all_local) FROM {orders}",
    "new orders": "count(*) FROM {new_order}",
    "no_o_id": "sum(no_o_id * no_d_id) FROM {new_order}",
    "amounts of what is delivered": "sum(ol_amount) FROM {order_line} WHERE ol_delivery_d IS NOT NULL",
    "the first lines that are not delivered": "min(ol_o_id) FROM {order_line} WHERE ol_delivery_d IS NULL",
    "the last lines that are delivered": "max(ol_o_id) FROM {order_line} WHERE ol_delivery_d IS NOT NULL",
    "different quantities": "count(DISTINCT ol_quantity) * max(ol_quantity) FROM {order_line}",
    "stock": "count(*) FROM {stock}",
    "counts of stock": "sum(s_ytd + s_order_cnt + s_remote_cnt) FROM {stock}",
}
"""The same to the last digit."""

ALIKE = {
    "o_ol_cnt": "o_ol_cnt FROM {orders}",
    "o_carrier_id": "o_carrier_id FROM {orders} WHERE o_id <= 2100",
    "bad credit": "(c_credit = 'BC')::int FROM {customer}",
    "c_discount": "c_discount FROM {customer}",
    "length of c_data": "length(c_data) FROM {customer}",
    "length of h_data": "length(h_data) FROM {history}",
    "s_quantity": "s_quantity FROM {stock}",
    "length of s_data": "length(s_data) FROM {stock}",
    "i_im_id": "i_im_id FROM {item}",
    "ol_i_id": "ol_i_id FROM {order_line}",
    "ol_amount": "ol_amount FROM {order_line} WHERE ol_o_id > 2100",
}
"""The columns with random values, of which both loaders must produce the same means."""


def look(connection: psycopg.Connection[Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the results of the queries on the tables with these names."""

    def one(query: str) -> tuple[Any, ...]:
        row = connection.execute(f"SELECT {query.format(**names)}".encode()).fetchone()
        assert row is not None
        return row

    means = {
        name: one(f"avg(x)::float8, stddev(x)::float8, count(x) FROM (SELECT {column}) AS drawn (x)")
        for name, column in ALIKE.items()
    }
    return {
        "equal": {name: _plain(one(query)[0]) for name, query in EQUAL.items()},
        "alike": {name: list(mean) for name, mean in means.items()},
    }


def _plain(value: Any) -> str | float:
    return value if isinstance(value, str) else float(value)


if __name__ == "__main__":
    theirs = {name: f"{name}s1" if name == "new_order" else f"{name}1" for name in TABLES}
    with psycopg.connect(sys.argv[1]) as session:
        print(json.dumps(look(session, theirs), indent=1))
