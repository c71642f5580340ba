//! A message of a server with the parts that captures need, whatever the log's format.

use super::words::{Language, Severity};
use crate::error::CaptureError;
use crate::time::Timestamp;

/// A message of the server. Texts that the log does not have are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The line on which the message begins, counted from 1.
    pub line: u64,
    pub time: Timestamp,
    /// The number of the server process, which stays the same as long as a session lasts.
    pub pid: u32,
    /// The value of `%c`, which no other session has.
    pub session_id: String,
    /// The time at which the process started.
    pub session_start: Option<Timestamp>,
    pub user: String,
    pub database: String,
    pub application: String,
    /// The type of the process, which servers from 13 on log; empty if it is not known.
    pub backend_type: String,
    /// True if the log's prefix has the user, and this message has none: it does not come from the session of a client.
    pub has_no_user: bool,
    pub severity: Severity,
    /// The language, if the server says its messages in another one than English.
    pub language: Option<Language>,
    pub sqlstate: Option<[u8; 5]>,
    /// The number of the transaction in its session, from the virtual transaction identifier: 17 for `3/17`. It is 0
    /// outside of transactions. `None` if the log does not have it.
    pub transaction: Option<u32>,
    pub message: String,
    pub detail: String,
    pub context: String,
    /// The statement that failed.
    pub statement: String,
}

impl Record {
    /// Empties the record for the next message and keeps its memory, unless a message was very long.
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
        self.has_no_user = false;
    }

    /// Replaces the content of `text` by `value`.
    pub fn set(text: &mut String, value: &str) {
        text.clear();
        text.push_str(value);
    }
}

/// The greatest size of memory that a text keeps for the next record, in bytes.
const KEPT: usize = 1 << 20;

/// An item that a reader of logs finds.
#[derive(Debug)]
pub enum LogItem<'a> {
    Record(&'a mut Record),
    /// A line, or the lines of a message, that cannot be read.
    Unreadable {
        line: u64,
        why: Unreadable,
    },
}

#[cfg(test)]
impl LogItem<'_> {
    /// Describes the item for the messages of tests: its line, then its message and detail, or the reason for which it
    /// cannot be read.
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
    /// The line is not what the log's format has.
    Format,
    /// The line is not UTF-8.
    Encoding,
    /// The line is the last one, and its end is missing.
    CutShort,
}

/// The function that receives what a reader finds. An error ends the reading.
pub type Sink<'a> = dyn FnMut(LogItem<'_>) -> Result<(), CaptureError> + 'a;

/// Reports this number of messages that cannot be read, which begin in this line.
pub fn report(line: u64, why: Unreadable, count: u64, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    (0..count).try_for_each(|_| sink(LogItem::Unreadable { line, why }))
}
