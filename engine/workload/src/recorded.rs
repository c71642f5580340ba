//! Recorded statements: when and how each is sent, and how it ended when it was recorded.

pub use capture::format::{Micros, SqlState, StatementFailure};

use wire::statement::{QueryMode, Statement};
use wire::value::Value;

/// The recorded time of a client's next action, until which the client waits in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// The time at which the next action is due, counted from the beginning of the replay.
    pub at: Micros,
    /// The statement that is sent at this time; `None` if the session connects at this time.
    pub statement: Option<Expected>,
}

/// The recorded outcome of a statement: whether it failed, was cancelled, and how many rows it had. The outcome in the
/// replay is compared with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// The number of the account (the set of counters) that counts the statement.
    pub account: usize,
    /// The recorded failure; `None` if the statement succeeded.
    pub failure: Option<StatementFailure>,
    /// The time from the start of the statement to its cancellation; `None` if it was not cancelled.
    pub cancelled_after: Option<Micros>,
    /// The number of rows that the statement returned or changed, if it was recorded.
    pub rows: Option<u64>,
    /// True if the statement ends a transaction block, such as COMMIT or ROLLBACK.
    pub ends_block: bool,
    /// True if the statement drops the prepared statements of its session, such as DISCARD ALL or DEALLOCATE ALL.
    pub discards: bool,
}

/// A statement in the form in which the recorded client sent it.
#[derive(Debug, Clone, Copy)]
pub enum Recorded<'a> {
    /// A text that is sent as a simple query (Query).
    Query(&'a [u8]),
    /// A text without parameters that is sent as an unnamed statement (Parse, Bind, Execute).
    Unnamed(&'a [u8]),
    /// A statement whose values are sent as parameters. [`Value::Unset`] stands for NULL.
    Values { statement: &'a Statement, mode: QueryMode, values: &'a [Value] },
}

const QUERY_CANCELED: &str = "57014";

impl Expected {
    /// True if an error with this SQLSTATE is the recorded failure. If the recording has no SQLSTATE for the failure,
    /// any error counts as the recorded one. False for other errors, and if the statement succeeded when it was
    /// recorded.
    pub fn is_failure(&self, sqlstate: &str) -> bool {
        // A replay cancels statements by a cancel request, also if they were ended in another way when they were
        // recorded.
        if self.cancelled_after.is_some() && sqlstate == QUERY_CANCELED {
            return true;
        }
        self.failure.is_some_and(|failure| failure.code().is_none_or(|code| code.as_slice() == sqlstate.as_bytes()))
    }
}
