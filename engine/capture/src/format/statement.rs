//! The encoding of a statement within a chunk: a byte of flags, the number of the template, the time since the start of
//! the previous statement, and then the optional fields for which a flag is set.

use super::varint::{put, put_signed, take, take_signed, take_slice, take_u32};
use crate::time::Micros;

/// A statement that a session sent, without the values of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedStatement {
    /// The time at which the server received the statement. A writer counts from 1970-01-01 00:00 UTC, a reader from
    /// the begin of the capture.
    pub start: Micros,
    /// The time that the statement took, if it is in the log.
    pub duration: Option<Micros>,
    /// The number of the statement's template, which is the text of the statement without its values.
    pub template: u32,
    /// The failure of the statement; `None` if it succeeded.
    pub failure: Option<StatementFailure>,
    /// The number of rows that the statement returned or changed, if it is known. PostgreSQL's logs do not have it.
    pub rows: Option<u64>,
}

/// The way in which a statement failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementFailure {
    /// The server reported this SQLSTATE.
    Code(SqlState),
    /// The server reported this SQLSTATE, and the statement did not end by itself: a cancel request or a time limit
    /// ended it, or its session was terminated, or its client was lost. A replay has to cancel it too, or it would run
    /// on.
    Cancelled(SqlState),
    /// The statement failed, but the log does not have the SQLSTATE.
    Unstated,
}

/// The five characters of the error code, such as `23505`.
pub type SqlState = [u8; 5];

const DURATION: u8 = 1;
const CODE: u8 = 2;
const FAILED: u8 = 4;
const ROWS: u8 = 8;
const PARAMETERS: u8 = 16;
const WAS_CANCELLED: u8 = 32;

/// The SQLSTATEs that only statements have that were cancelled. Other SQLSTATEs, such as 55P03 of a lock timeout, have
/// several causes.
const CANCELLED: [&SqlState; 3] = [b"57014", b"57P01", b"08006"];

impl StatementFailure {
    /// Returns the failure of a statement for which the server reported an SQLSTATE. `was_cancelled` is true if its
    /// message says that the statement did not end by itself.
    pub fn of(code: SqlState, was_cancelled: bool) -> Self {
        if was_cancelled || CANCELLED.contains(&&code) { Self::Cancelled(code) } else { Self::Code(code) }
    }

    /// Returns the SQLSTATE; `None` if the log does not have it.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Code(code) | Self::Cancelled(code) => Some(code),
            Self::Unstated => None,
        }
    }

    /// True if the statement did not end by itself.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }
}

impl RecordedStatement {
    /// True if the statement was cancelled. False if it succeeded or failed with an error of its own.
    pub fn was_cancelled(&self) -> bool {
        self.failure.is_some_and(|failure| failure.is_cancelled())
    }

    /// Appends the statement to a chunk. `before` is the start of the previous statement in the chunk, or 0 if there is
    /// none.
    pub(super) fn encode<T: AsRef<[u8]>>(&self, before: Micros, parameters: &[Option<T>], out: &mut Vec<u8>) {
        let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        let code = self.failure.as_ref().and_then(StatementFailure::code);
        out.push(
            flag(self.duration.is_some(), DURATION)
                | flag(code.is_some(), CODE)
                | flag(self.failure.is_some(), FAILED)
                | flag(self.rows.is_some(), ROWS)
                | flag(!parameters.is_empty(), PARAMETERS)
                | flag(self.was_cancelled(), WAS_CANCELLED),
        );
        put(out, self.template.into());
        put_signed(out, self.start.wrapping_sub(before) as i64);
        if let Some(duration) = self.duration {
            put(out, duration);
        }
        out.extend_from_slice(code.map_or(&[], |code| &code[..]));
        if let Some(rows) = self.rows {
            put(out, rows);
        }
        if !parameters.is_empty() {
            put(out, parameters.len() as u64);
            for parameter in parameters {
                match parameter {
                    None => out.push(0),
                    Some(text) => {
                        put(out, text.as_ref().len() as u64 + 1);
                        out.extend_from_slice(text.as_ref());
                    }
                }
            }
        }
    }

    /// Decodes the statement at the beginning of `rest`, with its parameters, and removes it from `rest`. `before` is
    /// the start of the previous statement. Returns `None` if the bytes are not a valid statement.
    pub(super) fn decode<'a>(before: Micros, rest: &mut &'a [u8]) -> Option<(Self, Parameters<'a>)> {
        let flags = *take_slice(rest, 1)?.first()?;
        let template = take_u32(rest)?;
        let start = before.wrapping_add(take_signed(rest)? as u64);
        let duration = if flags & DURATION != 0 { Some(take(rest)?) } else { None };
        let failure = match (flags & FAILED != 0, flags & CODE != 0) {
            (true, true) => {
                let code = take_slice(rest, 5)?.try_into().ok()?;
                Some(StatementFailure::of(code, flags & WAS_CANCELLED != 0))
            }
            (true, false) => Some(StatementFailure::Unstated),
            (false, _) => None,
        };
        let rows = if flags & ROWS != 0 { Some(take(rest)?) } else { None };
        let parameters = if flags & PARAMETERS != 0 { Parameters::take(rest)? } else { Parameters::default() };
        Some((Self { start, duration, template, failure, rows }, parameters))
    }
}

/// The parameters of a statement as text, in their order. `None` is NULL.
#[derive(Debug, Clone, Default)]
pub struct Parameters<'a> {
    left: usize,
    rest: &'a [u8],
}

impl<'a> Parameters<'a> {
    /// Removes the parameters from the beginning of `rest`, and checks that they are complete.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let left = take_u32(rest)? as usize;
        let parameters = Self { left, rest };
        for _ in 0..left {
            take_parameter(rest)?;
        }
        Some(parameters)
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        take_parameter(&mut self.rest)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Parameters<'_> {}

/// Removes a parameter from the beginning of `rest`. It is encoded as 0 for NULL, or as its length plus 1 and its
/// bytes.
fn take_parameter<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match take(rest)?.checked_sub(1) {
        None => Some(None),
        Some(length) => take_slice(rest, length.try_into().ok()?).map(Some),
    }
}
