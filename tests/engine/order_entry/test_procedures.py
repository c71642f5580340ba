"""The transactions as stored procedures: the same rows as by statements, and how the procedures come to be there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.engine.events import done_of, run_with_events
from tests.engine.order_entry.looks import DISTRICTS, WAITING, number, violated

pytestmark = pytest.mark.server


CONTENTS = {
    "warehouse": "w_id, w_ytd",
    "district": "d_w_id, d_id, d_ytd, d_next_o_id",
    "customer": "c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data",
    "history": "h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount, h_data",
    "orders": "o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local",
    "order_line": "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d IS NULL, ol_quantity, "
    "ol_amount, ol_dist_info",
    "new_order": "no_w_id, no_d_id, no_o_id",
    "stock": "s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt",
}
"""The columns that transactions change, without times, by table."""


def contents(target, since):
    """Returns for each table its number of rows, and a digest of the rows written by transactions with an ID of `since`
    or later.
    """
    changed = f"sum(hashtextextended(row({{}})::text, 0)) FILTER (WHERE xmin::text::bigint >= {since})"
    with target.connect_as_user() as connection:
        return {
            table: connection.execute(f"SELECT count(*), {changed.format(columns)} FROM {table}").fetchone()
            for table, columns in CONTENTS.items()
        }


def procedures(target):
    with target.connect_as_user() as connection:
        rows = connection.execute(
            "SELECT oid::regproc::text, oid FROM pg_proc WHERE proname LIKE 'pgtrial%'"
        ).fetchall()
    return dict(rows)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_the_calls_do_what_the_statements_do(order_entry, copy, tmp_path, protocol):
    left, kinds = [], []
    for style in ([], ["--procedures"]):
        target = copy()
        first = number(target, "SELECT pg_current_xact_id()::text::bigint")
        args = ["run", "-t", "400", "--random-seed", "7", "--mix", "4,4,1,1,1", "-M", protocol, *style]
        done, events = run_with_events(order_entry, target, tmp_path / "events", *args)
        assert (done.status, done.stderr) == (0, "")
        assert ("stored procedures" in done.stdout) == bool(style)
        kinds.append([script["transactions"] for script in done_of(events)["scripts"]])
        left.append(contents(target, first))
    assert left[0] == left[1]
    assert all(digest is not None for _, digest in left[0].values()), "each table was written to"
    assert kinds[0] == kinds[1]
    assert min(kinds[0]) > 0, "the seed has a new-order that is rolled back"
    assert sum(kinds[0]) == 400


def test_a_run_of_calls_leaves_the_conditions_true(order_entry, copy, tmp_path):
    target = copy()
    args = ("run", "--procedures", "-c", "8", "-j", "2", "-T", "3", "--max-tries", "0", "--random-seed", "5")
    done, events = run_with_events(order_entry, target, tmp_path / "events", *args, **WAITING)
    assert (done.status, done.stderr) == (0, "")
    scripts = done_of(events)["scripts"]
    assert number(target, "SELECT count(*) FROM orders") - 3000 * DISTRICTS == scripts[0]["transactions"] > 0
    assert number(target, "SELECT sum(c_delivery_cnt) FROM customer") == 10 * scripts[3]["transactions"]
    assert violated(order_entry, target) == set()


def test_what_fails_to_serialize_is_called_again(order_entry, copy, tmp_path):
    target = copy(1)
    args = ("run", "--procedures", "-c", "6", "-t", "40", "--mix", "1,1,0,1,0", "--max-tries", "0", "-L", "100000")
    isolation = {"PGOPTIONS": "-c default_transaction_isolation=repeatable\\ read"}
    done, events = run_with_events(order_entry, target, tmp_path / "events", *args, **isolation)
    assert done.status == 0, done.stderr
    assert done_of(events)["measure"]["retried"] > 0
    assert violated(order_entry, target) == set()


def test_a_call_returns_what_a_terminal_shows(order_entry, fresh):
    target = fresh(18, empty=True)
    assert order_entry.run(target, "load", "--procedures").status == 0
    with target.connect_as_user() as connection:
        order = connection.execute("CALL pgtrial_new_order(1, 2, 3, '{5,6}', '{1,1}', '{1,10}')").fetchone()
        price = connection.execute(
            "SELECT sum(i_price * CASE i_id WHEN 5 THEN 1 ELSE 10 END) FROM item WHERE i_id IN (5, 6)"
        )
        total = price.fetchone()
        missing = connection.execute("CALL pgtrial_new_order(1, 2, 3, '{5,100001}', '{1,1}', '{1,1}')").fetchone()
        status = connection.execute("CALL pgtrial_order_status(1, 2, 3, '')").fetchone()
        named = connection.execute("CALL pgtrial_order_status(1, 2, 0, 'BARBARBAR')").fetchone()
        middle = connection.execute(
            "SELECT concat_ws(' ', c_first, c_middle, c_last) FROM customer WHERE c_d_id = 2 AND c_last = 'BARBARBAR' "
            "ORDER BY c_first OFFSET (SELECT (count(*) + 1) / 2 - 1 FROM customer WHERE c_d_id = 2 "
            "AND c_last = 'BARBARBAR') LIMIT 1"
        ).fetchone()
        paid = connection.execute("CALL pgtrial_payment(1, 2, 1, 2, 3, '', 12.50)").fetchone()
        delivered = connection.execute("CALL pgtrial_delivery(1, 4)").fetchone()
        low = connection.execute("CALL pgtrial_stock_level(1, 2, 20)").fetchone()
    assert order[0] == 3001
    assert float(total[0]) / 2 < float(order[3]) < 1.4 * float(total[0]), "with the discount and the taxes"
    assert len(order[4]) == 2
    assert (missing[0], missing[4]) == (None, None)
    assert (status[2], len(status[5])) == (3001, 2), "nothing of the order that was rolled back"
    assert named[0] == middle[0]
    assert float(paid[3]) == -22.5
    assert delivered[0] == [2101] * 10
    assert low[0] > 0
    assert violated(order_entry, target) == set()


def test_a_run_makes_procedures_that_are_missing_or_of_another_version(order_entry, copy):
    target = copy(1)
    run = ("run", "--procedures", "-t", "5", "--mix", "0,0,0,0,1")
    assert order_entry.run(target, *run).status == 0
    made = procedures(target)
    assert sorted(made) == [
        f"pgtrial_{name}" for name in ("delivery", "new_order", "order_status", "payment", "stock_level")
    ]
    assert order_entry.run(target, *run).status == 0
    assert procedures(target) == made, "they are left as they are"
    with target.connect_as_user() as connection:
        connection.execute("DROP PROCEDURE pgtrial_delivery")
        # another version of pgtrial made it with its mark and another body
        connection.execute("UPDATE pg_proc SET prosrc = 'begin end' WHERE proname = 'pgtrial_stock_level'")
    assert order_entry.run(target, *run).status == 0
    again = procedures(target)
    assert again.keys() == made.keys()
    assert {name for name in made if again[name] == made[name]} == {
        "pgtrial_new_order",
        "pgtrial_order_status",
        "pgtrial_payment",
    }


def test_engines_that_begin_together_make_them_once(order_entry, copy):
    target = copy(1)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(order_entry.run, target, "run", "--procedures", "-t", "5") for _ in range(4)]
    assert [run.result().status for run in runs] == [0] * 4
    assert len(procedures(target)) == 5


def test_a_user_who_may_not_make_them_needs_them_to_be_there(order_entry, copy):
    target = copy(1)
    with target.connect_as_user() as connection:
        connection.execute("CREATE ROLE clerk LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk")
    try:
        run = ("run", "--procedures", "-t", "5")
        refused = order_entry.run(replace(target, user="clerk"), *run)
        assert (refused.status, refused.stderr) == (
            3,
            "pgtrial-engine order-entry: error: could not make the procedures of order entry: "
            "ERROR:  permission denied for schema public\n",
        )
        assert order_entry.run(target, *run).status == 0
        done = order_entry.run(replace(target, user="clerk"), *run)
        assert (done.status, done.stderr) == (0, "")
    finally:
        with target.connect_as_user() as connection:
            connection.execute("DROP OWNED BY clerk")
            connection.execute("DROP ROLE clerk")


@pytest.mark.parametrize("comment", ["'mine'", "NULL"])
def test_procedures_of_others_are_used_as_they_are_or_refused(order_entry, copy, comment):
    target = copy(1)
    run = ("run", "--procedures", "-t", "5", "--mix", "0,0,0,0,1")
    assert order_entry.run(target, *run).status == 0
    with target.connect_as_user() as connection:
        connection.execute(f"COMMENT ON PROCEDURE pgtrial_payment IS {comment}".encode())
    made = procedures(target)
    assert order_entry.run(target, *run).status == 0, "it does the same"
    with target.connect_as_user() as connection:
        connection.execute("CREATE OR REPLACE PROCEDURE pgtrial_delivery(home int) LANGUAGE sql AS 'SELECT 1'")
        connection.execute(f"COMMENT ON PROCEDURE pgtrial_delivery(int) IS {comment}".encode())
    refused = order_entry.run(target, *run)
    assert (refused.status, refused.stderr) == (
        3,
        "pgtrial-engine order-entry: error: the procedure pgtrial_delivery(integer) was not made by pgtrial-engine "
        "order-entry, and does not do the same as the program's own procedure; rename it, or name another database\n",
    )
    assert procedures(target)["pgtrial_payment"] == made["pgtrial_payment"]
