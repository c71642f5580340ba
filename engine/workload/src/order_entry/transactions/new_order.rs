//! New-order (clause 2.4): a customer orders 5 to 15 items.

use super::transaction::{ClientTransaction, StatementRequest, Unexpected, column, number, set_customer};
use crate::order_entry::sizes::{FEWEST_LINES, ITEMS, MOST_LINES};
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::{Customer, Terminal};
use crate::order_entry::values::{Slot, Values, cents};
use wire::{ResultSet, Rows};

/// An item that does not exist, by which 1% of the transactions are rolled back.
const UNUSED_ITEM: i64 = ITEMS + 1;

/// The inputs and the progress of a new-order.
#[derive(Default)]
pub struct NewOrder {
    home: i64,
    district: i64,
    customer: i64,
    /// The lines, sorted by warehouse and item: two orders lock rows of stock in the same order, so that they do not
    /// deadlock.
    lines: Vec<Line>,
    is_unused: bool,
    step: Step,
    /// The index of the line that is entered, counted from 0.
    line: usize,
    /// The price of the line's item, cents.
    price: i64,
}

/// An order line as it is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    supply: i64,
    item: i64,
    quantity: i64,
}

/// The step of the next statement.
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
    /// The transaction is rolled back, since an item was not there.
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
        // The unused item is the last one, so that all the work before it is done (clause 2.4.1.5).
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

    /// Stores the result of the last statement. `step` has been advanced already and names the next statement.
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
