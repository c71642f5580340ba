//! The statements of the transactions, and their compilation to [`Statement`]s. Names in braces in a text are
//! [`Slot`]s.

use super::sizes::DISTRICTS;
use super::values::Slot;
use wire::statement::{Hole, QueryMode, Statement};

/// The statements. The number of a statement is its index in the list that [`texts`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementNumber {
    Begin,
    Commit,
    Rollback,
    ReadWarehouse,
    TakeOrderNumber,
    ReadCustomer,
    InsertOrder,
    InsertNewOrder,
    ReadItem,
    InsertOrderLine,
    PayWarehouse,
    PayDistrict,
    FindByLastName,
    PayCustomer,
    InsertHistory,
    ReadBalance,
    FindLastOrder,
    ReadOrderLines,
    FindOldestNewOrder,
    DeleteNewOrder,
    DeliverOrder,
    DeliverOrderLines,
    DeliverToCustomer,
    ReadNextOrderNumber,
    CountLowStock,
    CallNewOrder,
    CallPayment,
    CallOrderStatus,
    CallDelivery,
    CallStockLevel,
    /// The first of ten statements, one for each district, because each district has a column of its own in `stock`.
    TakeStock,
}

/// The statement that finds a customer by last name. Among the customers of this name, ordered by first name, it
/// returns the middle one (clause 2.5.2.2).
const FIND_BY_LAST_NAME: &str = "\
SELECT (array_agg(c_id ORDER BY c_first))[((count(*) + 1) / 2)::int] FROM customer \
WHERE c_w_id = {customer_w} AND c_d_id = {customer_d} AND c_last = {last_name}";

/// The statement that records a payment in the customer's row. For a customer with bad credit it adds the payment to
/// `c_data`.
const PAY_CUSTOMER: &str = "\
UPDATE customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount}, \
c_payment_cnt = c_payment_cnt + 1, \
c_data = CASE c_credit WHEN 'BC' THEN substr({note} || c_data, 1, 500) ELSE c_data END \
WHERE c_w_id = {customer_w} AND c_d_id = {customer_d} AND c_id = {customer} \
RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, \
c_credit_lim, c_discount, c_balance, CASE c_credit WHEN 'BC' THEN substr(c_data, 1, 200) END";

/// The statement that finds the oldest new order of a district and locks its row. Of two concurrent deliveries, the
/// second waits for the lock and then takes the next order.
const FIND_OLDEST_NEW_ORDER: &str = "\
SELECT no_o_id FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} ORDER BY no_o_id LIMIT 1 FOR UPDATE";

const DELIVER_ORDER_LINES: &str = "\
WITH lines AS (UPDATE order_line SET ol_delivery_d = current_timestamp \
WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {order} RETURNING ol_amount) \
SELECT sum(ol_amount) FROM lines";

const COUNT_LOW_STOCK: &str = "\
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = {w} AND s_i_id = ol_i_id \
WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id >= {first_recent} AND ol_o_id < {order} AND s_quantity < {threshold}";

/// The statement that takes an item from stock. `NN` stands for the number of the district, whose column the statement
/// returns.
const TAKE_STOCK: &str = "\
UPDATE stock SET s_quantity = CASE WHEN s_quantity >= {quantity} + 10 THEN s_quantity - {quantity} \
ELSE s_quantity - {quantity} + 91 END, s_ytd = s_ytd + {quantity}, s_order_cnt = s_order_cnt + 1, \
s_remote_cnt = s_remote_cnt + {remote} WHERE s_w_id = {supply_w} AND s_i_id = {item} \
RETURNING s_dist_NN, s_quantity, s_data";

/// The texts of the statements, in the order of their numbers.
const TEXTS: [(StatementNumber, &str); 30] = [
    (StatementNumber::Begin, "BEGIN"),
    (StatementNumber::Commit, "COMMIT"),
    (StatementNumber::Rollback, "ROLLBACK"),
    (StatementNumber::ReadWarehouse, "SELECT w_tax FROM warehouse WHERE w_id = {w}"),
    (
        StatementNumber::TakeOrderNumber,
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = {w} AND d_id = {d} \
         RETURNING d_next_o_id - 1, d_tax",
    ),
    (
        StatementNumber::ReadCustomer,
        "SELECT c_discount, c_last, c_credit FROM customer \
         WHERE c_w_id = {customer_w} AND c_d_id = {customer_d} AND c_id = {customer}",
    ),
    (
        StatementNumber::InsertOrder,
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES ({order}, {d}, {w}, {customer}, current_timestamp, NULL, {lines}, {all_local})",
    ),
    (StatementNumber::InsertNewOrder, "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ({order}, {d}, {w})"),
    (StatementNumber::ReadItem, "SELECT i_price, i_name, i_data FROM item WHERE i_id = {item}"),
    (
        StatementNumber::InsertOrderLine,
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
         ol_quantity, ol_amount, ol_dist_info) \
         VALUES ({order}, {d}, {w}, {number}, {item}, {supply_w}, NULL, {quantity}, {amount}, {dist_info})",
    ),
    (
        StatementNumber::PayWarehouse,
        "UPDATE warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w} \
         RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
    ),
    (
        StatementNumber::PayDistrict,
        "UPDATE district SET d_ytd = d_ytd + {amount} WHERE d_w_id = {w} AND d_id = {d} \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
    ),
    (StatementNumber::FindByLastName, FIND_BY_LAST_NAME),
    (StatementNumber::PayCustomer, PAY_CUSTOMER),
    (
        StatementNumber::InsertHistory,
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ({customer}, {customer_d}, {customer_w}, {d}, {w}, current_timestamp, {amount}, {names})",
    ),
    (
        StatementNumber::ReadBalance,
        "SELECT c_balance, c_first, c_middle, c_last FROM customer \
         WHERE c_w_id = {customer_w} AND c_d_id = {customer_d} AND c_id = {customer}",
    ),
    (
        StatementNumber::FindLastOrder,
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
         WHERE o_w_id = {customer_w} AND o_d_id = {customer_d} AND o_c_id = {customer} ORDER BY o_id DESC LIMIT 1",
    ),
    (
        StatementNumber::ReadOrderLines,
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = {customer_w} AND ol_d_id = {customer_d} AND ol_o_id = {order}",
    ),
    (StatementNumber::FindOldestNewOrder, FIND_OLDEST_NEW_ORDER),
    (
        StatementNumber::DeleteNewOrder,
        "DELETE FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} AND no_o_id = {order}",
    ),
    (
        StatementNumber::DeliverOrder,
        "UPDATE orders SET o_carrier_id = {carrier} WHERE o_w_id = {w} AND o_d_id = {d} AND o_id = {order} \
         RETURNING o_c_id",
    ),
    (StatementNumber::DeliverOrderLines, DELIVER_ORDER_LINES),
    (
        StatementNumber::DeliverToCustomer,
        "UPDATE customer SET c_balance = c_balance + {amount}, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {customer}",
    ),
    (StatementNumber::ReadNextOrderNumber, "SELECT d_next_o_id FROM district WHERE d_w_id = {w} AND d_id = {d}"),
    (StatementNumber::CountLowStock, COUNT_LOW_STOCK),
    (StatementNumber::CallNewOrder, "CALL pgtrial_new_order({w}, {d}, {customer}, {items}, {supplies}, {quantities})"),
    (
        StatementNumber::CallPayment,
        "CALL pgtrial_payment({w}, {d}, {customer_w}, {customer_d}, {customer}, {last_name}, {amount})",
    ),
    (
        StatementNumber::CallOrderStatus,
        "CALL pgtrial_order_status({customer_w}, {customer_d}, {customer}, {last_name})",
    ),
    (StatementNumber::CallDelivery, "CALL pgtrial_delivery({w}, {carrier})"),
    (StatementNumber::CallStockLevel, "CALL pgtrial_stock_level({w}, {d}, {threshold})"),
];

impl StatementNumber {
    /// Returns the statement's index among the statements of a run.
    pub fn number(self) -> usize {
        self as usize
    }

    /// Returns the index of the statement that takes an item from stock for a district, which is counted from 1.
    pub fn take_stock(district: i64) -> usize {
        Self::TakeStock as usize + district as usize - 1
    }
}

/// Returns the texts of all statements of a run, in the order of their numbers.
pub fn texts() -> Vec<String> {
    let of_districts = (1..=DISTRICTS).map(|district| TAKE_STOCK.replace("NN", &format!("{district:02}")));
    TEXTS.iter().map(|(_, text)| (*text).to_owned()).chain(of_districts).collect()
}

/// Makes a statement from its text. If statements are sent as text, strings get quotes.
pub fn compile(number: usize, text: &str, mode: QueryMode) -> Statement {
    let (mut pieces, mut holes) = (Vec::new(), Vec::new());
    let mut parts = text.split('{');
    let mut piece = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let Some((name, after)) = part.split_once('}') else { unreachable!("a brace is closed: {text}") };
        let slot = Slot::named(name);
        let quote: &[u8] = if mode == QueryMode::Simple && slot.is_string() { b"'" } else { b"" };
        piece.extend_from_slice(quote);
        pieces.push(std::mem::replace(&mut piece, quote.to_vec()));
        piece.extend_from_slice(after.as_bytes());
        holes.push(Hole { slot: slot as usize, name: name.to_owned() });
    }
    pieces.push(piece);
    Statement::of_session(number, pieces, holes, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::value::Value;

    #[test]
    fn each_statement_stands_at_its_number() {
        assert!(TEXTS.iter().enumerate().all(|(number, (sql, _))| sql.number() == number));
        assert_eq!(StatementNumber::TakeStock.number(), TEXTS.len());
        let texts = texts();
        assert!(texts[StatementNumber::take_stock(1)].contains("RETURNING s_dist_01,"));
        assert!(texts[StatementNumber::take_stock(10)].contains("RETURNING s_dist_10,"));
        assert_eq!(texts.len(), TEXTS.len() + 10);
    }

    #[test]
    fn values_are_parameters_or_part_of_the_text() {
        let text = "SELECT 1 WHERE a = {w} AND b = {last_name} AND c = {amount};";
        let compiled = |mode| compile(7, text, mode);
        assert_eq!(compiled(QueryMode::Prepared).text(), Some("SELECT 1 WHERE a = $1 AND b = $2 AND c = $3;"));
        let mut values = vec![Value::Int(5); Slot::COUNT];
        values[Slot::LastName as usize] = Value::Text((*b"BARBARBAR").into());
        values[Slot::Amount as usize] = Value::Text((*b"7.50").into());
        let mut sent = Vec::new();
        compiled(QueryMode::Simple).write_text(&values, &mut sent);
        assert_eq!(String::from_utf8(sent).unwrap(), "SELECT 1 WHERE a = 5 AND b = 'BARBARBAR' AND c = 7.50;");
    }
}
