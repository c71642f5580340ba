//! The transaction stock-level (clause 2.8 of TPC-C): it counts the items in the last 20 orders of a district whose
//! stock is low.

use super::transaction::{ClientTransaction, StatementRequest, Unexpected, number};
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::Terminal;
use crate::order_entry::values::{Slot, Values};
use wire::ResultSet;

/// The number of latest orders whose items are examined.
const RECENT: i64 = 20;

/// The inputs and the current state of a stock-level transaction.
#[derive(Default)]
pub struct StockLevel {
    home: i64,
    district: i64,
    threshold: i64,
    step: Step,
}

/// The statement that is sent next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Begin,
    District,
    Count,
    Commit,
}

impl ClientTransaction for StockLevel {
    fn draw(&mut self, terminal: &mut Terminal) -> bool {
        (self.home, self.district) = (terminal.home, terminal.district);
        self.threshold = terminal.random.range(10, 20);
        false
    }

    fn start(&mut self, values: &mut Values) {
        self.step = Step::Begin;
        values.set(Slot::W, self.home);
        values.set(Slot::D, self.district);
        values.set(Slot::Threshold, self.threshold);
    }

    fn next(&mut self, _values: &mut Values) -> StatementRequest {
        let (request, next) = match self.step {
            Step::Begin => (StatementRequest::skip(StatementNumber::Begin), Step::District),
            Step::District => (StatementRequest::keep(StatementNumber::ReadNextOrderNumber), Step::Count),
            Step::Count => (StatementRequest::skip(StatementNumber::CountLowStock), Step::Commit),
            Step::Commit => (StatementRequest::end(StatementNumber::Commit), Step::Begin),
        };
        self.step = next;
        request
    }

    fn call(&self, _values: &mut Values) -> StatementNumber {
        StatementNumber::CallStockLevel
    }

    /// Processes the result of the statement that was sent last. `step` has already advanced, and names the statement
    /// that follows it.
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected> {
        if self.step == Step::Count {
            let next = number(result, 0, "the district's row")?;
            values.set(Slot::Order, next);
            values.set(Slot::FirstRecent, next - RECENT);
        }
        Ok(())
    }
}
