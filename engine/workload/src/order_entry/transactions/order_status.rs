//! The transaction order-status (clause 2.6 of TPC-C): a customer asks for the state of the last order.

use super::transaction::{ClientTransaction, StatementRequest, Unexpected, number, set_customer};
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::{Customer, Terminal};
use crate::order_entry::values::{Slot, Values};
use wire::ResultSet;

/// The inputs and the current state of an order-status transaction.
pub struct OrderStatus {
    home: i64,
    district: i64,
    customer: Customer,
    step: Step,
}

/// The statement that is sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    LastName,
    Balance,
    Order,
    Lines,
    Commit,
}

impl Default for OrderStatus {
    fn default() -> Self {
        Self { home: 1, district: 1, customer: Customer::Id(1), step: Step::Begin }
    }
}

impl ClientTransaction for OrderStatus {
    fn draw(&mut self, terminal: &mut Terminal) -> bool {
        self.home = terminal.home;
        self.district = terminal.any_district();
        self.customer = terminal.customer();
        false
    }

    fn start(&mut self, values: &mut Values) {
        self.step = Step::Begin;
        set_customer(values, self.home, self.district, self.customer);
    }

    fn next(&mut self, _values: &mut Values) -> StatementRequest {
        let (request, next) = match self.step {
            Step::Begin => match self.customer {
                Customer::LastName(_) => (StatementRequest::skip(StatementNumber::Begin), Step::LastName),
                Customer::Id(_) => (StatementRequest::skip(StatementNumber::Begin), Step::Balance),
            },
            Step::LastName => (StatementRequest::keep(StatementNumber::FindByLastName), Step::Balance),
            Step::Balance => (StatementRequest::skip(StatementNumber::ReadBalance), Step::Order),
            Step::Order => (StatementRequest::keep(StatementNumber::FindLastOrder), Step::Lines),
            Step::Lines => (StatementRequest::skip(StatementNumber::ReadOrderLines), Step::Commit),
            Step::Commit => (StatementRequest::end(StatementNumber::Commit), Step::Begin),
        };
        self.step = next;
        request
    }

    fn call(&self, _values: &mut Values) -> StatementNumber {
        StatementNumber::CallOrderStatus
    }

    /// Processes the result of the statement that was sent last. `step` has already advanced, and names the statement
    /// that follows it.
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected> {
        match self.step {
            Step::Balance => values.set(Slot::Customer, number(result, 0, "a customer of this last name")?),
            Step::Lines => values.set(Slot::Order, number(result, 0, "an order of the customer")?),
            _ => {}
        }
        Ok(())
    }
}
