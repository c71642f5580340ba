//! The transaction payment (clause 2.5 of TPC-C): a customer pays. 15% of the customers pay at another warehouse than
//! their own.

use std::io::Write;

use super::transaction::{ClientTransaction, StatementRequest, Unexpected, column, number, set_customer};
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::{Customer, Terminal};
use crate::order_entry::values::{Slot, Values};
use wire::ResultSet;

/// The inputs and the current state of a payment transaction.
pub struct Payment {
    home: i64,
    district: i64,
    customer_warehouse: i64,
    customer_district: i64,
    customer: Customer,
    cents: i64,
    step: Step,
    /// The name of the warehouse, followed by the name of the district.
    names: Vec<u8>,
}

/// The statement that is sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Warehouse,
    District,
    LastName,
    Customer,
    History,
    Commit,
}

impl Default for Payment {
    fn default() -> Self {
        Self {
            home: 1,
            district: 1,
            customer_warehouse: 1,
            customer_district: 1,
            customer: Customer::Id(1),
            cents: 0,
            step: Step::Begin,
            names: Vec::new(),
        }
    }
}

impl ClientTransaction for Payment {
    fn draw(&mut self, terminal: &mut Terminal) -> bool {
        self.home = terminal.home;
        self.district = terminal.any_district();
        (self.customer_warehouse, self.customer_district) = if terminal.warehouses > 1 && terminal.happens(15) {
            (terminal.other_warehouse(), terminal.any_district())
        } else {
            (self.home, self.district)
        };
        self.customer = terminal.customer();
        self.cents = terminal.random.range(100, 500_000);
        false
    }

    fn start(&mut self, values: &mut Values) {
        self.step = Step::Begin;
        values.set(Slot::W, self.home);
        values.set(Slot::D, self.district);
        set_customer(values, self.customer_warehouse, self.customer_district, self.customer);
        values.set_cents(Slot::Amount, self.cents);
    }

    fn next(&mut self, values: &mut Values) -> StatementRequest {
        let (request, next) = match self.step {
            Step::Begin => (StatementRequest::skip(StatementNumber::Begin), Step::Warehouse),
            Step::Warehouse => (StatementRequest::keep(StatementNumber::PayWarehouse), Step::District),
            Step::District => match self.customer {
                Customer::LastName(_) => (StatementRequest::keep(StatementNumber::PayDistrict), Step::LastName),
                Customer::Id(_) => (StatementRequest::keep(StatementNumber::PayDistrict), Step::Customer),
            },
            Step::LastName => (StatementRequest::keep(StatementNumber::FindByLastName), Step::Customer),
            Step::Customer => {
                self.set_note(values);
                (StatementRequest::skip(StatementNumber::PayCustomer), Step::History)
            }
            Step::History => (StatementRequest::skip(StatementNumber::InsertHistory), Step::Commit),
            Step::Commit => (StatementRequest::end(StatementNumber::Commit), Step::Begin),
        };
        self.step = next;
        request
    }

    fn call(&self, _values: &mut Values) -> StatementNumber {
        StatementNumber::CallPayment
    }

    /// Processes the result of the statement that was sent last. `step` has already advanced, and names the statement
    /// that follows it.
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected> {
        match self.step {
            Step::District => {
                self.names.clear();
                self.names.extend_from_slice(column(result, 0, "the warehouse's row")?);
            }
            Step::LastName => self.store_district(result, values)?,
            Step::Customer if matches!(self.customer, Customer::Id(_)) => self.store_district(result, values)?,
            Step::Customer => values.set(Slot::Customer, number(result, 0, "a customer of this last name")?),
            _ => {}
        }
        Ok(())
    }
}

impl Payment {
    /// Sets `h_data` to the names of the warehouse and the district (clause 2.5.2.2).
    fn store_district(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected> {
        self.names.extend_from_slice(b"    ");
        self.names.extend_from_slice(column(result, 0, "the district's row")?);
        values.set_bytes(Slot::Names, &self.names);
        Ok(())
    }

    /// Sets the text that the statement for the customer's row puts in front of `c_data` if the customer has bad
    /// credit.
    fn set_note(&self, values: &mut Values) {
        let customer = values.number(Slot::Customer);
        let Self { home, district, customer_warehouse, customer_district, cents, .. } = *self;
        values.write(Slot::Note, |out| {
            let (whole, rest) = (cents / 100, cents % 100);
            // Writing to memory cannot fail.
            let _ =
                write!(out, "{customer} {customer_district} {customer_warehouse} {district} {home} {whole}.{rest:02}|");
        });
    }
}
