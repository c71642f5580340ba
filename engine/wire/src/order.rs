//! Checks that the messages of a reply come in an order that protocol 3 allows, by the same rules as libpq. If a server
//! or a pooler breaks the protocol, its reply must not count as a success.

use crate::error::ConnectionError;
use crate::frame::{MAX_SHORT, may_be_long};

/// The number of bytes that come after a column's name in a RowDescription: table, attribute, type, size, modifier and
/// format.
pub const COLUMN_DETAILS: usize = 18;

/// The number of values that a row is allowed to have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// No row is allowed, since no RowDescription has arrived.
    #[default]
    None,
    /// A row may have any number of values, since the client did not ask for a RowDescription.
    Any,
    Exactly(u16),
}

/// The form that the reply to a request must have: results of a simple query, or one result of the extended protocol
/// with or without a RowDescription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The reply has the results of a simple query, of one or more statements.
    Text,
    /// The reply has one result of the extended protocol, with a RowDescription before its rows.
    Described,
    /// The reply has one result of the extended protocol, without a RowDescription.
    Undescribed,
}

impl Form {
    /// Returns the form of the reply to an execution in the extended protocol. `describes` is true if the client asks
    /// for a RowDescription.
    #[inline(always)]
    pub fn of_execution(describes: bool) -> Self {
        if describes { Self::Described } else { Self::Undescribed }
    }
}

/// The current position within a reply: which messages the protocol allows next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    columns: Columns,
    /// The value of `columns` before the first result and after each result.
    between: Columns,
    /// The number of results that have been received completely.
    results: u32,
    /// The minimum number of results in the reply, unless the reply has an error.
    least: u32,
    /// The maximum number of results that may have rows in the reply.
    most: u32,
}

impl Order {
    /// Returns the position at the beginning of a reply of this form.
    #[inline(always)]
    pub fn of(form: Form) -> Self {
        let (between, most) = match form {
            Form::Text => (Columns::None, u32::MAX),
            Form::Described => (Columns::None, 1),
            Form::Undescribed => (Columns::Any, 1),
        };
        Self { columns: between, between, results: 0, least: 1, most }
    }

    /// Returns the position at the beginning of the reply to requests that do not execute a statement.
    pub fn of_preparation() -> Self {
        Self::default()
    }

    /// Returns true if the server must send a RowDescription before rows.
    #[inline(always)]
    pub fn is_described(self) -> bool {
        self.between == Columns::None
    }

    /// Returns the position at the beginning of a reply that may have any number of results and rows, with
    /// RowDescriptions or without. For tests of [`crate::reply::Exchange`].
    #[cfg(test)]
    pub fn of_anything() -> Self {
        Self { columns: Columns::Any, between: Columns::Any, results: 0, least: 0, most: u32::MAX }
    }

    /// Records that the client has sent another execution, so that the reply has another result.
    pub fn expect_execution(&mut self, describes: bool) {
        let next = Self::of(Form::of_execution(describes));
        *self = Self { least: self.least + 1, most: self.most + 1, ..next };
    }

    /// Checks the next message of the reply. The body is `None` for a row whose body was dropped.
    ///
    /// # Errors
    /// Returns libpq's message if the server's message violates the protocol.
    pub fn take(&mut self, kind: u8, body: Option<&[u8]>) -> Result<(), ConnectionError> {
        if let Some(body) = body {
            if body.len() > MAX_SHORT - 4 && !may_be_long(kind) {
                return Err(ConnectionError::LostSync { kind, length: body.len() + 4 });
            }
        }
        let is_whole = match (kind, body) {
            (b'T', Some(body)) => {
                // libpq treats a second RowDescription as the end of a result without CommandComplete.
                self.results += u32::from(matches!(self.columns, Columns::Exactly(_)));
                if body.len() < 2 {
                    return Err(insufficient(kind));
                }
                let columns = described(body);
                if self.results < self.most {
                    self.columns = columns.map_or(self.columns, Columns::Exactly);
                } else {
                    self.results += 1;
                }
                columns.is_some()
            }
            (b'D', _) if self.columns == Columns::None || self.results >= self.most => {
                return Err(self.violation(
                    "server sent data (\"D\" message) without prior row description (\"T\" message)".to_owned(),
                ));
            }
            (b'D', Some(body)) => match self.columns.judge(body) {
                Row::Whole => true,
                Row::TooLong => false,
                Row::TooShort => return Err(insufficient(kind)),
                Row::WrongCount => return Err(self.violation("unexpected field count in \"D\" message".to_owned())),
            },
            (b'C', Some(tag)) => {
                let is_whole = ends_text(tag);
                if is_whole {
                    self.complete();
                }
                is_whole
            }
            (b'I', Some(body)) => {
                self.complete();
                body.is_empty()
            }
            (b'1' | b'2' | b'3' | b'n' | b'c', Some(body)) => body.is_empty(),
            (b'Z', Some(body)) => body.len() == 1,
            (b'A' | b'D' | b'E' | b'G' | b'H' | b'K' | b'N' | b'S' | b'W' | b'd' | b't', _) => true,
            _ => {
                return Err(self.violation(format!(
                    "unexpected response from server; first received character was \"{}\"",
                    kind.escape_ascii()
                )));
            }
        };
        if is_whole {
            return Ok(());
        }
        Err(self.violation(format!(
            "message contents do not agree with length in message type \"{}\"",
            kind.escape_ascii()
        )))
    }

    #[inline(always)]
    fn complete(&mut self) {
        self.columns = self.between;
        self.results += 1;
    }

    /// Returns true if the reply has fewer results than the client has requested.
    #[inline(always)]
    pub fn lacks_results(&self) -> bool {
        self.results < self.least
    }

    /// Returns true if [`Order::take`] accepts a row with this body. A row does not change the position within the
    /// reply.
    #[inline(always)]
    pub fn takes_row(&self, body: &[u8]) -> bool {
        self.columns != Columns::None && self.results < self.most && self.columns.judge(body) == Row::Whole
    }

    fn violation(&self, message: String) -> ConnectionError {
        ConnectionError::Violation { message, query: self.results }
    }
}

fn insufficient(kind: u8) -> ConnectionError {
    let message = format!("insufficient data in \"{}\" message", kind.escape_ascii());
    ConnectionError::Violation { message, query: 0 }
}

/// The result of comparing a DataRow with the number of columns in the RowDescription, and with the lengths of its own
/// values.
#[derive(Debug, PartialEq, Eq)]
enum Row {
    Whole,
    WrongCount,
    TooShort,
    TooLong,
}

impl Columns {
    #[inline(always)]
    fn judge(self, body: &[u8]) -> Row {
        let Some((count, mut rest)) = body.split_first_chunk::<2>() else { return Row::WrongCount };
        let count = u16::from_be_bytes(*count);
        if matches!(self, Self::Exactly(columns) if columns != count) {
            return Row::WrongCount;
        }
        for _ in 0..count {
            let Some((length, values)) = rest.split_first_chunk::<4>() else { return Row::TooShort };
            // A negative length means NULL.
            let length = i32::from_be_bytes(*length).max(0) as usize;
            let Some(after) = values.get(length..) else { return Row::TooShort };
            rest = after;
        }
        if rest.is_empty() { Row::Whole } else { Row::TooLong }
    }
}

/// Returns true if the body is a single text with a zero byte at its end. These texts are so short that a loop needs
/// fewer instructions than a vectorized search.
#[inline(always)]
fn ends_text(body: &[u8]) -> bool {
    body.iter().position(|byte| *byte == 0).is_some_and(|end| end + 1 == body.len())
}

/// Returns the number of columns of a RowDescription. Returns `None` if the body is shorter or longer than its columns
/// need.
#[inline(always)]
fn described(body: &[u8]) -> Option<u16> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let count = u16::from_be_bytes(*count);
    for _ in 0..count {
        let end = rest.iter().position(|byte| *byte == 0)?;
        rest = rest.get(end + 1 + COLUMN_DETAILS..)?;
    }
    rest.is_empty().then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the positions within a reply that the tests use, each with its name and an order that has received the
    /// messages before it.
    fn places() -> Vec<(&'static str, Order)> {
        let mut in_rows = Order::of(Form::Text);
        in_rows.take(b'T', Some(DESCRIPTION)).unwrap();
        let mut after_result = Order::of(Form::Described);
        after_result.take(b'C', Some(b"SET\0")).unwrap();
        vec![
            ("begin", Order::of(Form::Text)),
            ("rows", in_rows),
            ("end", after_result),
            ("undescribed", Order::of(Form::Undescribed)),
            ("prepare", Order::of_preparation()),
        ]
    }

    const DESCRIPTION: &[u8] = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    const ROW: &[u8] = b"\0\x01\0\0\0\x017";

    /// Returns a body that is valid for a message of this type.
    fn body(kind: u8) -> &'static [u8] {
        match kind {
            b'T' => DESCRIPTION,
            b'D' => ROW,
            b'C' => b"SELECT 1\0",
            b'Z' => b"I",
            b'E' | b'N' => b"Mbad\0\0",
            _ => b"",
        }
    }

    /// Checks that a message of each type is accepted at exactly those positions of a reply at which libpq accepts it.
    #[test]
    fn each_type_is_allowed_where_libpq_takes_it() {
        for kind in 0..=u8::MAX {
            let allowed: Vec<_> = places()
                .into_iter()
                .filter_map(|(place, mut order)| order.take(kind, Some(body(kind))).is_ok().then_some(place))
                .collect();
            let expected: &[&str] = match kind {
                b'D' => &["rows", "undescribed"],
                b'1' | b'2' | b'3' | b'A' | b'C' | b'E' | b'G' | b'H' | b'I' | b'K' | b'N' | b'S' | b'T' | b'W'
                | b'Z' | b'c' | b'd' | b'n' | b't' => &["begin", "rows", "end", "undescribed", "prepare"],
                _ => &[],
            };
            assert_eq!(allowed, expected, "{}", kind.escape_ascii());
        }
    }

    #[test]
    fn a_row_is_taken_alike_both_ways_and_changes_nothing() {
        for (place, order) in places() {
            for body in
                [ROW, b"", b"\0", b"\0\0", b"\0\x02\0\0\0\x017", b"\0\x01\0\0\0\x0177", b"\0\x01\xff\xff\xff\xff"]
            {
                let mut after = order;
                assert_eq!(order.takes_row(body), after.take(b'D', Some(body)).is_ok(), "{place} {body:?}");
                assert_eq!(after, order, "{place}");
            }
        }
    }

    #[test]
    fn a_reply_without_the_result_that_was_asked_for_lacks_it() {
        for (order, lacks) in
            [(Order::of(Form::Text), true), (Order::of(Form::Described), true), (Order::of_preparation(), false)]
        {
            assert_eq!(order.lacks_results(), lacks);
        }
        let mut pipeline = Order::of_preparation();
        pipeline.expect_execution(true);
        pipeline.expect_execution(true);
        pipeline.take(b'C', Some(b"SET\0")).unwrap();
        assert!(pipeline.lacks_results());
        pipeline.take(b'I', Some(b"")).unwrap();
        assert!(!pipeline.lacks_results());
    }
}
