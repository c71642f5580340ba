//! The transaction delivery (clause 2.7 of TPC-C): it delivers the oldest new order of each district of a warehouse.
//! All districts are processed in one database transaction, and it runs at once instead of being queued.

use super::transaction::{ClientTransaction, StatementRequest, Unexpected, column, number};
use crate::order_entry::sizes::DISTRICTS;
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::Terminal;
use crate::order_entry::values::{Slot, Values};
use wire::ResultSet;

/// The inputs and the current state of a delivery transaction.
#[derive(Default)]
pub struct Delivery {
    home: i64,
    carrier: i64,
    /// The number of the current district, counted from 1.
    district: i64,
    step: Step,
}

/// The statement that is sent next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Begin,
    Oldest,
    Delete,
    Order,
    Lines,
    Customer,
}

impl ClientTransaction for Delivery {
    fn draw(&mut self, terminal: &mut Terminal) -> bool {
        self.home = terminal.home;
        self.carrier = terminal.random.range(1, 10);
        false
    }

    fn start(&mut self, values: &mut Values) {
        (self.step, self.district) = (Step::Begin, 0);
        values.set(Slot::W, self.home);
        values.set(Slot::Carrier, self.carrier);
    }

    fn next(&mut self, values: &mut Values) -> StatementRequest {
        let (request, next) = match self.step {
            Step::Begin => (StatementRequest::skip(StatementNumber::Begin), Step::Oldest),
            Step::Oldest if self.district == DISTRICTS => (StatementRequest::end(StatementNumber::Commit), Step::Begin),
            Step::Oldest => {
                self.district += 1;
                values.set(Slot::D, self.district);
                (StatementRequest::keep(StatementNumber::FindOldestNewOrder), Step::Delete)
            }
            Step::Delete => (StatementRequest::skip(StatementNumber::DeleteNewOrder), Step::Order),
            Step::Order => (StatementRequest::keep(StatementNumber::DeliverOrder), Step::Lines),
            Step::Lines => (StatementRequest::keep(StatementNumber::DeliverOrderLines), Step::Customer),
            Step::Customer => (StatementRequest::skip(StatementNumber::DeliverToCustomer), Step::Oldest),
        };
        self.step = next;
        request
    }

    fn call(&self, _values: &mut Values) -> StatementNumber {
        StatementNumber::CallDelivery
    }

    /// Processes the result of the statement that was sent last. `step` has already advanced, and names the statement
    /// that follows it.
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected> {
        match self.step {
            // If the district has no new order, it is skipped (clause 2.7.4.2).
            Step::Delete if result.rows == 0 => self.step = Step::Oldest,
            Step::Delete => values.set(Slot::Order, number(result, 0, "a new order")?),
            Step::Lines => values.set(Slot::Customer, number(result, 0, "the order's row")?),
            Step::Customer => values.set_bytes(Slot::Amount, column(result, 0, "the sum of the order lines")?),
            _ => {}
        }
        Ok(())
    }
}
