"""The consistency conditions of order entry: what is broken is caught."""

from __future__ import annotations

import pytest

from tests.engine.order_entry.looks import violated

pytestmark = pytest.mark.server


BROKEN = {
    "the warehouse's sum": ("UPDATE warehouse SET w_ytd = w_ytd + 10 WHERE w_id = 1", {1, 8}),
    "the next number": ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3", {2}),
    "a new order": ("DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500", {3, 5, 11}),
    "a line": ("DELETE FROM order_line WHERE ol_d_id = 4 AND ol_o_id = 5 AND ol_number = 1", {4, 6}),
    "a date": (
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 4 AND ol_o_id = 5 AND ol_number = 1",
        {7},
    ),
    "a balance": ("UPDATE customer SET c_balance = c_balance + 5 WHERE c_d_id = 4 AND c_id = 7", {10, 12}),
    "a payment": ("DELETE FROM history WHERE h_d_id = 4 AND h_c_id = 7", {8, 9, 10}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_row_is_caught_by_the_conditions_it_breaks(order_entry, copy, what):
    statement, conditions = BROKEN[what]
    target = copy(1)
    with target.connect_as_user() as connection:
        assert connection.execute(statement.encode()).rowcount == 1
    assert violated(order_entry, target) == conditions


def test_a_violation_is_told_with_its_place_and_both_sums(order_entry, copy):
    target = copy(1)
    with target.connect_as_user() as connection:
        connection.execute("UPDATE district SET d_ytd = d_ytd + 10 WHERE d_id = 3")
    done = order_entry.run(target, "check")
    assert (
        "pgtrial-engine order-entry: error: condition 1 does not hold for warehouse 1: W_YTD = sum(D_YTD), but "
        "300000.00 is not 300010.00 (number of warehouses, districts, orders or customers for which it does not "
        "hold: 1)\n"
    ) in done.stderr
    assert "condition 9 does not hold for warehouse 1, district 3: D_YTD = sum(H_AMOUNT), but 30010.00" in done.stderr


def test_a_statement_that_does_not_do_its_work_is_caught(order_entry, copy):
    """A trigger that keeps a column as it was does what a broken UPDATE of the district would."""
    target = copy(1)
    with target.connect_as_user() as connection:
        connection.execute(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN new.d_ytd = old.d_ytd; RETURN new; END $$"
        )
        connection.execute("CREATE TRIGGER keep BEFORE UPDATE ON district FOR EACH ROW EXECUTE FUNCTION keep()")
    assert order_entry.run(target, "run", "-c", "2", "-t", "20", "--mix", "0,1,0,0,0").status == 0
    assert violated(order_entry, target) == {1, 9}
