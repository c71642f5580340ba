//! The slate: memory that Rust shares with a state's Lua, where a query's text, an execution's values and the answer to
//! it are written. Compiled Lua reads and writes it through `ffi` as its own, so that a coroutine yields one value and
//! is resumed with one. What has no room here is an argument of the request, in a table.

use std::cell::Cell;

use wire::Answered;
use wire::value::Value;

/// The number of bytes of text and the number of values that the slate has room for.
const TEXT: usize = 4096;
const VALUES: usize = 16;

/// Values of `lengths` that are not lengths: the value is a number, or NULL. Any other negative value says that the
/// text did not fit on the slate.
const NUMBER: i32 = -1;
const NULL: i32 = -2;

/// The value of `columns` if the server has sent no RowDescription, so that the number of columns is unknown.
const UNSAID: i32 = -1;

/// The slate, laid out as C does; Lua declares the same in `prelude/slate.lua`.
#[repr(C)]
pub struct Slate {
    rows: Cell<f64>,
    values: [Cell<f64>; VALUES],
    /// The length of each value's text in `text`, one text behind the other, or a code for a number or NULL.
    lengths: [Cell<i32>; VALUES],
    /// The length of a query's text.
    length: Cell<i32>,
    columns: Cell<i32>,
    connection: Cell<u32>,
    statement: Cell<u32>,
    goes_on: Cell<u8>,
    text: [Cell<u8>; TEXT],
}

impl Default for Slate {
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

impl Slate {
    /// Returns the slate's address and its sizes, for Lua.
    pub fn described(&self) -> [(&'static str, usize); 3] {
        [("address", std::ptr::from_ref(self).expose_provenance()), ("text", TEXT), ("values", VALUES)]
    }

    /// Returns the number of the connection that a request is for.
    pub fn connection(&self) -> usize {
        self.connection.get() as usize
    }

    pub fn statement(&self) -> usize {
        self.statement.get() as usize
    }

    /// Copies the query's text to the end of `text`; returns true if the text is on the slate.
    pub fn take_text(&self, text: &mut Vec<u8>) -> bool {
        let written = usize::try_from(self.length.get()).ok().and_then(|length| self.text.get(..length));
        text.extend(written.unwrap_or_default().iter().map(Cell::get));
        written.is_some()
    }

    /// Copies an execution's values; returns true if they are on the slate.
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

    /// Writes an answer down.
    pub fn answer(&self, answered: &Answered, goes_on: bool) {
        let count = |description: &Vec<u8>| description.first_chunk().map_or(0, |count| u16::from_be_bytes(*count));
        self.rows.set(answered.rows as f64);
        self.columns.set(answered.columns.as_ref().map_or(UNSAID, |columns| count(columns).into()));
        self.goes_on.set(goes_on.into());
    }
}

/// Stores a number of Lua as a parameter's value: a whole number as such, any other as text.
pub fn set_number(value: &mut Value, number: f64) {
    let whole = number as i64;
    // the largest is what any number above it is cast to
    if (whole as f64).to_bits() == number.to_bits() && whole != i64::MAX {
        *value = Value::Int(whole);
    } else {
        value.set_text(number.to_string().as_bytes());
    }
}
