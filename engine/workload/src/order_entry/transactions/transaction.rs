//! The trait of the transactions. A transaction is a sequence of statements, whose inputs are drawn before the first
//! one.

use crate::order_entry::names::write_last_name;
use crate::order_entry::statements::StatementNumber;
use crate::order_entry::terminal::{Customer, Terminal};
use crate::order_entry::values::{Slot, Values, whole};
use ground::words::plural;
use thiserror::Error;
use wire::{ResultSet, Rows};

/// A kind of transaction for one client, which uses the same object for all transactions of this kind.
pub trait ClientTransaction {
    /// Draws the inputs of a new transaction. Returns true if this transaction must be rolled back at its end, which
    /// the specification requires for some.
    fn draw(&mut self, terminal: &mut Terminal) -> bool;

    /// Goes back to the first statement and keeps the inputs. This is called for a new transaction and before each
    /// retry.
    fn start(&mut self, values: &mut Values);

    /// Sets the values of the next statement, and returns the request for it.
    fn next(&mut self, values: &mut Values) -> StatementRequest;

    /// Sets the arguments of the stored procedure that runs the whole transaction. Returns the number of the statement
    /// that calls the procedure. [`ClientTransaction::start`] must have been called before.
    fn call(&self, values: &mut Values) -> StatementNumber;

    /// Processes the result of the last statement, if its request keeps the rows ([`Rows::Kept`]).
    fn store(&mut self, result: &ResultSet, values: &mut Values) -> Result<(), Unexpected>;
}

/// The error for a result that the transaction does not expect. Its message is the reason in the message about the
/// aborted client, such as "expected a price, got 0 rows".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unexpected {
    #[error("expected {what}, got {}", plural(*.rows, "row"))]
    Rows { what: &'static str, rows: u64 },
    #[error("expected {what}, got \"{text}\"")]
    Text { what: &'static str, text: String },
}

impl Unexpected {
    /// Returns the error for a value that is not a number. `what` says what the value stands for.
    pub fn text(what: &'static str, value: &[u8]) -> Self {
        Self::Text { what, text: String::from_utf8_lossy(value).into_owned() }
    }
}

/// A request to send a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementRequest {
    /// The index of the statement among the statements of the run.
    pub statement: usize,
    /// The treatment of the result's rows: the client keeps them for [`ClientTransaction::store`], or drops them.
    pub rows: Rows,
    pub last: bool,
}

impl StatementRequest {
    /// Makes the request for a statement whose rows are not needed.
    pub fn skip(sql: StatementNumber) -> Self {
        Self { statement: sql.number(), rows: Rows::Skipped, last: false }
    }

    /// Makes the request for a statement whose result is passed to [`ClientTransaction::store`].
    pub fn keep(sql: StatementNumber) -> Self {
        Self { rows: Rows::Kept, ..Self::skip(sql) }
    }

    /// Makes the request for the last statement of the transaction.
    pub fn end(sql: StatementNumber) -> Self {
        Self { last: true, ..Self::skip(sql) }
    }
}

/// Sets the values that identify a customer: the customer's number or the last name. The value that is not used is 0 or
/// empty.
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

/// Returns a column of the result's only row. If there is not exactly one row, or if the value is NULL, the error says
/// that `what` was expected.
pub fn column<'a>(result: &'a ResultSet, index: usize, what: &'static str) -> Result<&'a [u8], Unexpected> {
    let value = result.last.get(index).and_then(Option::as_deref).filter(|_| result.rows == 1);
    value.ok_or(Unexpected::Rows { what, rows: result.rows })
}

/// Returns a column of the result's only row as a whole number. If there is none, the error says that `what` was
/// expected.
pub fn number(result: &ResultSet, index: usize, what: &'static str) -> Result<i64, Unexpected> {
    let value = column(result, index, what)?;
    whole(value).ok_or_else(|| Unexpected::text(what, value))
}
