//! A message of a server, with the values that captures need, independent of the log's format.

use super::words::{Language, Severity};
use crate::error::CaptureError;
use crate::time::Timestamp;

/// A message of the server. Texts that the log does not contain are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The number of the line on which the message begins, counted from 1.
    pub line: u64,
    pub time: Timestamp,
    /// The number of the server process. It stays the same as long as the session lasts. A later session may get the
    /// same number.
    pub pid: u32,
    /// The session identifier (`%c`), which is different for each session.
    pub session_id: String,
    /// The time at which the server process of the session started.
    pub session_start: Option<Timestamp>,
    pub user: String,
    pub database: String,
    pub application: String,
    /// The type of the process, which PostgreSQL 13 and later can log; empty if the log does not have it.
    pub backend_type: String,
    /// True if the log's prefix contains the user, but this message has none. Such a message does not come from a
    /// client's session.
    pub has_no_user: bool,
    pub severity: Severity,
    /// The language of the message; `None` for English.
    pub language: Option<Language>,
    pub sqlstate: Option<[u8; 5]>,
    /// The number of the transaction within its session, from the virtual transaction identifier: 17 for `3/17`. It is
    /// 0 outside of transactions. `None` if the log does not have the identifier.
    pub transaction: Option<u32>,
    pub message: String,
    pub detail: String,
    pub context: String,
    /// The text of the statement that failed.
    pub statement: String,
    /// True if the log has the position of the error in that text as a value of its own.
    pub has_position: bool,
}

impl Record {
    /// Empties the record for the next message. The memory of its texts is kept, unless a text was very long.
    pub fn clear(&mut self) {
        for text in [
            &mut self.session_id,
            &mut self.user,
            &mut self.database,
            &mut self.application,
            &mut self.backend_type,
            &mut self.message,
            &mut self.detail,
            &mut self.context,
            &mut self.statement,
        ] {
            text.clear();
            text.shrink_to(KEPT);
        }
        (self.session_start, self.language, self.sqlstate, self.transaction) = (None, None, None, None);
        (self.has_no_user, self.has_position) = (false, false);
    }

    /// Sets `text` to `value`, and reuses its memory.
    pub fn set(text: &mut String, value: &str) {
        text.clear();
        text.push_str(value);
    }
}

/// The greatest amount of memory in bytes that a text keeps for the next record.
const KEPT: usize = 1 << 20;

/// An item that the reader of a log passes to its [`Sink`].
#[derive(Debug)]
pub enum LogItem<'a> {
    Record(&'a mut Record),
    /// A line or a message that cannot be read.
    Unreadable {
        line: u64,
        why: Unreadable,
    },
}

#[cfg(test)]
impl LogItem<'_> {
    /// Describes the item in messages of tests: its line, then either its message and detail, or the reason for which
    /// it cannot be read.
    pub fn told(&self) -> String {
        match self {
            LogItem::Record(record) => format!("{} {}|{}", record.line, record.message, record.detail),
            LogItem::Unreadable { line, why } => format!("{line} {why:?}"),
        }
    }
}

/// The reason for which a line cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The line does not have the log's format.
    Format,
    /// The line is not valid UTF-8.
    Encoding,
    /// The line is the last one of the log, and its end is missing.
    CutShort,
}

/// The function that receives the items of a log. If it returns an error, reading ends with this error.
pub type Sink<'a> = dyn FnMut(LogItem<'_>) -> Result<(), CaptureError> + 'a;

/// Passes `count` unreadable messages, the first of which begins in line `line`, to `sink`.
pub fn report(line: u64, why: Unreadable, count: u64, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    (0..count).try_for_each(|_| sink(LogItem::Unreadable { line, why }))
}
