//! The exchange buffer: memory that Rust and the Lua code of one state share. Lua writes the text of a query or the
//! values of an execution there, and Rust writes the answer.
//!
//! Compiled Lua accesses the exchange buffer through `ffi`. So a coroutine has to yield only one value, and is resumed
//! with only one, which is fast. Data that does not fit in the exchange buffer is passed as an argument of the request,
//! in a table.

use std::cell::Cell;

use wire::Answered;
use wire::value::Value;

/// The number of bytes of text that fit in the exchange buffer.
const TEXT: usize = 4096;

/// The number of values that fit in the exchange buffer.
const VALUES: usize = 16;

/// The code in `lengths` that says that a value is a number. It is no length, as `NULL` is none. Any other negative
/// number means that the text did not fit in the exchange buffer.
const NUMBER: i32 = -1;

/// The code in `lengths` that says that a value is NULL.
const NULL: i32 = -2;

/// The content of `columns` if the server has sent no RowDescription, so that the number of columns is not known.
const UNSAID: i32 = -1;

/// The exchange buffer in C's memory layout. `prelude/exchange_buffer.lua` declares the same layout for Lua.
#[repr(C)]
pub struct ExchangeBuffer {
    rows: Cell<f64>,
    values: [Cell<f64>; VALUES],
    /// The length of each value's text, or a code if the value is a number or NULL. The texts follow each other in
    /// `text`.
    lengths: [Cell<i32>; VALUES],
    /// The length of the query's text, or a negative number if the text did not fit in the exchange buffer.
    length: Cell<i32>,
    columns: Cell<i32>,
    connection: Cell<u32>,
    statement: Cell<u32>,
    goes_on: Cell<u8>,
    text: [Cell<u8>; TEXT],
}

impl Default for ExchangeBuffer {
    fn default() -> Self {
        Self {
            rows: Cell::default(),
            values: Default::default(),
            lengths: Default::default(),
            length: Cell::default(),
            columns: Cell::default(),
            connection: Cell::default(),
            statement: Cell::default(),
            goes_on: Cell::default(),
            text: [const { Cell::new(0) }; TEXT],
        }
    }
}

impl ExchangeBuffer {
    /// Returns the address and the sizes of the exchange buffer for Lua.
    pub fn described(&self) -> [(&'static str, usize); 3] {
        [("address", std::ptr::from_ref(self).expose_provenance()), ("text", TEXT), ("values", VALUES)]
    }

    /// Returns the number of the connection on which a request is to be carried out.
    pub fn connection(&self) -> usize {
        self.connection.get() as usize
    }

    pub fn statement(&self) -> usize {
        self.statement.get() as usize
    }

    /// Appends the query's text to `text` and returns true. Returns false if the text did not fit in the exchange
    /// buffer, so that Lua passes it as an argument of the request.
    pub fn take_text(&self, text: &mut Vec<u8>) -> bool {
        let written = usize::try_from(self.length.get()).ok().and_then(|length| self.text.get(..length));
        text.extend(written.unwrap_or_default().iter().map(Cell::get));
        written.is_some()
    }

    /// Copies the values of an execution and returns true. Returns false if they did not fit in the exchange buffer, so
    /// that Lua passes them as an argument of the request.
    pub fn take_values(&self, values: &mut [Value], text: &mut Vec<u8>) -> bool {
        let mut left = &self.text[..];
        for (index, value) in values.iter_mut().enumerate() {
            let (Some(number), Some(length)) = (self.values.get(index), self.lengths.get(index)) else { return false };
            match length.get() {
                NUMBER => set_number(value, number.get()),
                NULL => *value = Value::Unset,
                length => {
                    let length = usize::try_from(length).ok();
                    let Some((written, rest)) = length.and_then(|length| left.split_at_checked(length)) else {
                        return false;
                    };
                    text.clear();
                    text.extend(written.iter().map(Cell::get));
                    value.set_text(text);
                    left = rest;
                }
            }
        }
        true
    }

    /// Writes the server's answer in the exchange buffer, where Lua reads it. `goes_on` tells the script whether the
    /// next transaction begins at once.
    pub fn answer(&self, answered: &Answered, goes_on: bool) {
        let count = |description: &Vec<u8>| description.first_chunk().map_or(0, |count| u16::from_be_bytes(*count));
        self.rows.set(answered.rows as f64);
        self.columns.set(answered.columns.as_ref().map_or(UNSAID, |columns| count(columns).into()));
        self.goes_on.set(goes_on.into());
    }
}

/// Stores a number of Lua as the value of a parameter: whole numbers as integers, others as text.
pub fn set_number(value: &mut Value, number: f64) {
    let whole = number as i64;
    // The cast turns every number above the largest integer into the largest integer, so the largest integer is
    // excluded.
    if (whole as f64).to_bits() == number.to_bits() && whole != i64::MAX {
        *value = Value::Int(whole);
    } else {
        value.set_text(number.to_string().as_bytes());
    }
}
