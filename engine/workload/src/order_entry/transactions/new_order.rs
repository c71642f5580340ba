//! The transaction new-order (clause 2.4 of TPC-C): a customer orders 5 to 15 items.

use super::transaction::{ClientTransaction, StatementRequest, Unexpected, column, number, set_customer};
use crate::order_entry::sizes::{FEWEST_LINES, ITEMS, MOST_LINES};
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::{Customer, Terminal};
use crate::order_entry::values::{Slot, Values, cents};
use wire::{ResultSet, Rows};

/// The number of an item that does not exist. The 1% of the transactions that order it are rolled back.
const UNUSED_ITEM: i64 = ITEMS + 1;

/// The inputs and the current state of a new-order transaction.
#[derive(Default)]
pub struct NewOrder {
    home: i64,
    district: i64,
    customer: i64,
    /// The lines of the order, sorted by warehouse and item. Because of this order, two transactions lock rows of stock
    /// in the same sequence and do not deadlock.
    lines: Vec<Line>,
    is_unused: bool,
    step: Step,
    /// The index of the current line, counted from 0.
    line: usize,
    /// The price of the current line's item, in cents.
    price: i64,
}

/// The inputs for an order line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    supply: i64,
    item: i64,
    quantity: i64,
}

/// The statement that is sent next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Begin,
    Warehouse,
    District,
    Customer,
    Order,
    Queue,
    Item,
    Stock,
    Line,
    /// The transaction is rolled back, because an item does not exist.
    Rollback,
}

impl ClientTransaction for NewOrder {
    fn draw(&mut self, terminal: &mut Terminal) -> bool {
        self.home = terminal.home;
        self.district = terminal.any_district();
        self.customer = terminal.constants.customer(&mut terminal.random);
        self.is_unused = terminal.happens(1);
        self.lines.clear();
        for _ in 0..terminal.random.range(FEWEST_LINES, MOST_LINES) {
            let item = terminal.constants.item(&mut terminal.random);
            let is_remote = terminal.warehouses > 1 && terminal.happens(1);
            let supply = if is_remote { terminal.other_warehouse() } else { terminal.home };
            self.lines.push(Line { supply, item, quantity: terminal.random.range(1, 10) });
        }
        self.lines.sort_unstable();
        // The item that does not exist is the last one, so that the transaction does all of its work before it is
        // rolled back (clause 2.4.1.5).
        if let Some(last) = self.lines.last_mut().filter(|_| self.is_unused) {
            last.item = UNUSED_ITEM;
        }
        self.is_unused
    }

    fn start(&mut self, values: &mut Values) {
        (self.step, self.line) = (Step::Begin, 0);
        values.set(Slot::W, self.home);
        values.set(Slot::D, self.district);
        set_customer(values, self.home, self.district, Customer::Id(self.customer));
        values.set(Slot::Lines, self.lines.len() as i64);
        values.set(Slot::AllLocal, i64::from(self.lines.iter().all(|line| line.supply == self.home)));
    }

    fn next(&mut self, values: &mut Values) -> StatementRequest {
        let (request, next) = match self.step {
            Step::Begin => (StatementRequest::skip(StatementNumber::Begin), Step::Warehouse),
            Step::Warehouse => (StatementRequest::skip(StatementNumber::ReadWarehouse), Step::District),
            Step::District => (StatementRequest::keep(StatementNumber::TakeOrderNumber), Step::Customer),
            Step::Customer => (StatementRequest::skip(StatementNumber::ReadCustomer), Step::Order),
            Step::Order => (StatementRequest::skip(StatementNumber::InsertOrder), Step::Queue),
            Step::Queue => (StatementRequest::skip(StatementNumber::InsertNewOrder), Step::Item),
            Step::Item => match self.lines.get(self.line) {
                Some(line) => {
                    line.set(self.line, self.home, values);
                    (StatementRequest::keep(StatementNumber::ReadItem), Step::Stock)
                }
                None => (StatementRequest::end(StatementNumber::Commit), Step::Begin),
            },
            Step::Stock => {
                let statement = StatementNumber::take_stock(self.district);
                (StatementRequest { statement, rows: Rows::Kept, last: false }, Step::Line)
            }
            Step::Line => {
                self.line += 1;
                (StatementRequest::skip(StatementNumber::InsertOrderLine), Step::Item)
            }
            Step::Rollback => (StatementRequest::end(StatementNumber::Rollback), Step::Begin),
        };
        self.step = next;
        request
    }

    fn call(&self, values: &mut Values) -> StatementNumber {
        values.set_array(Slot::Items, self.lines.iter().map(|line| line.item));
        values.set_array(Slot::Supplies, self.lines.iter().map(|line| line.supply));
        values.set_array(Slot::Quantities, self.lines.iter().map(|line| line.quantity));
        StatementNumber::CallNewOrder
    }

    /// Processes the result of the statement that was sent last. `step` has already advanced, and names the statement
    /// that follows it.
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected> {
        match self.step {
            Step::Customer => values.set(Slot::Order, number(result, 0, "the district's row")?),
            Step::Stock if result.rows == 0 && values.number(Slot::Item) == UNUSED_ITEM => self.step = Step::Rollback,
            Step::Stock => {
                let price = column(result, 0, "the item's row")?;
                self.price = cents(price).ok_or_else(|| Unexpected::text("a price", price))?;
            }
            Step::Line => {
                values.set_bytes(Slot::DistInfo, column(result, 0, "the row of stock")?);
                values.set_cents(Slot::Amount, self.price * values.number(Slot::Quantity));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Line {
    fn set(self, index: usize, home: i64, values: &mut Values) {
        values.set(Slot::Number, index as i64 + 1);
        values.set(Slot::Item, self.item);
        values.set(Slot::SupplyW, self.supply);
        values.set(Slot::Quantity, self.quantity);
        values.set(Slot::Remote, i64::from(self.supply != home));
    }
}
