//! The trait of a transaction: a sequence of statements whose inputs were drawn before the first.

use crate::order_entry::names::write_last_name;
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::{Customer, Terminal};
use crate::order_entry::values::{Slot, Values, whole};
use ground::words::plural;
use thiserror::Error;
use wire::{ResultSet, Rows};

/// A transaction of a client, used again and again.
pub trait ClientTransaction {
    /// Draws the inputs of another transaction; returns true if the transaction must be rolled back at its end, as the
    /// specification asks for some.
    fn draw(&mut self, terminal: &mut Terminal) -> bool;

    /// Goes back to the first statement, with the same inputs.
    fn start(&mut self, values: &mut Values);

    /// Returns the next statement, with its values set.
    fn next(&mut self, values: &mut Values) -> StatementRequest;

    /// Sets the arguments of the stored procedure that runs the whole transaction, and returns the number of the
    /// statement that calls it. [`ClientTransaction::start`] must have been called.
    fn call(&self, values: &mut Values) -> StatementNumber;

    /// Takes the result of the last statement, if it was asked for.
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected>;
}

/// A result that is not what the transaction expects, as a part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unexpected {
    #[error("expected {what}, got {}", plural(*.rows, "row"))]
    Rows { what: &'static str, rows: u64 },
    #[error("expected {what}, got \"{text}\"")]
    Text { what: &'static str, text: String },
}

impl Unexpected {
    /// Returns the error for a value that is no number.
    pub fn text(what: &'static str, value: &[u8]) -> Self {
        Self::Text { what, text: String::from_utf8_lossy(value).into_owned() }
    }
}

/// A statement that a client sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementRequest {
    /// The index of the statement among the statements of a run.
    pub statement: usize,
    /// The part of the result's rows that the transaction needs.
    pub rows: Rows,
    pub last: bool,
}

impl StatementRequest {
    /// Makes the request for a statement whose rows nobody reads.
    pub fn skip(sql: StatementNumber) -> Self {
        Self { statement: sql.number(), rows: Rows::Skipped, last: false }
    }

    /// Makes the request for a statement whose result [`ClientTransaction::store`] takes.
    pub fn keep(sql: StatementNumber) -> Self {
        Self { rows: Rows::Kept, ..Self::skip(sql) }
    }

    /// Makes the request for the last statement of the transaction.
    pub fn end(sql: StatementNumber) -> Self {
        Self { last: true, ..Self::skip(sql) }
    }
}

/// Sets the values that identify a customer: the number or the last name. The one that is not used is 0 or empty.
pub fn set_customer(values: &mut Values, warehouse: i64, district: i64, customer: Customer) {
    values.set(Slot::CustomerW, warehouse);
    values.set(Slot::CustomerD, district);
    match customer {
        Customer::Id(id) => {
            values.set(Slot::Customer, id);
            values.set_bytes(Slot::LastName, b"");
        }
        Customer::LastName(number) => {
            values.set(Slot::Customer, 0);
            values.write(Slot::LastName, |out| write_last_name(number, out));
        }
    }
}

/// Returns a column of a result's one row; the error names `what` is missing.
pub fn column<'a>(result: &'a ResultSet, index: usize, what: &'static str) -> Result<&'a [u8], Unexpected> {
    let value = result.last.get(index).and_then(Option::as_deref).filter(|_| result.rows == 1);
    value.ok_or(Unexpected::Rows { what, rows: result.rows })
}

/// Returns a whole number in a column of a result's one row; the error names `what` is missing.
pub fn number(result: &ResultSet, index: usize, what: &'static str) -> Result<i64, Unexpected> {
    let value = column(result, index, what)?;
    whole(value).ok_or_else(|| Unexpected::text(what, value))
}
