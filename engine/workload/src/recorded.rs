//! Recorded statements: the time at which each must be sent, how it is sent, and its outcome when it was recorded.

pub use capture::format::{Micros, SqlState, StatementFailure};

use wire::statement::{QueryMode, Statement};
use wire::value::Value;

/// A recorded time for which a client waits before its next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// The recorded time, from the beginning of the replay.
    pub at: Micros,
    /// The statement that starts then; `None`: the session begins then.
    pub statement: Option<Expected>,
}

/// The recorded outcome of a statement, with which the replay's is compared, and the account that counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// The account of the replay that counts the statement.
    pub account: usize,
    /// The failure, if the statement failed.
    pub failure: Option<StatementFailure>,
    /// The time after which the statement was cancelled, if it was.
    pub cancelled_after: Option<Micros>,
    /// The number of rows that the statement returned or changed, if that was recorded.
    pub rows: Option<u64>,
    /// True if the statement ends a transaction block: COMMIT, ROLLBACK and the like.
    pub ends_block: bool,
    /// True if the statement drops the prepared statements of its session: DISCARD ALL and DEALLOCATE ALL.
    pub discards: bool,
}

/// A statement as its client sent it.
#[derive(Debug, Clone, Copy)]
pub enum Recorded<'a> {
    /// A text is sent as a simple query.
    Query(&'a [u8]),
    /// A text without parameters is sent as the unnamed statement.
    Unnamed(&'a [u8]),
    /// A statement is sent with its values as parameters, [`Value::Unset`] for NULL.
    Values { statement: &'a Statement, mode: QueryMode, values: &'a [Value] },
}

const QUERY_CANCELED: &str = "57014";

impl Expected {
    /// Returns true if an error with this SQLSTATE is the recorded one.
    pub fn is_failure(&self, sqlstate: &str) -> bool {
        // Whichever way it was cancelled, the replay sends a cancel request.
        if self.cancelled_after.is_some() && sqlstate == QUERY_CANCELED {
            return true;
        }
        match self.failure {
            Some(StatementFailure::Code(code)) => code.as_slice() == sqlstate.as_bytes(),
            Some(StatementFailure::Unstated) => true,
            None => false,
        }
    }
}
