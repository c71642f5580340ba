//! Recorded statements: when each is to be sent, how it is sent, and what came of it when it was recorded.

pub use capture::format::{Micros, SqlState, StatementFailure};

use wire::statement::{QueryMode, Statement};
use wire::value::Value;

/// What a client waits for before its next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// The recorded time, from the beginning of the replay.
    pub at: Micros,
    /// `None`: the session begins then.
    pub statement: Option<Expected>,
}

/// What came of a statement when it was recorded, and where it is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// The account of the replay that counts the statement.
    pub account: usize,
    /// How it failed, if it did.
    pub failure: Option<StatementFailure>,
    /// How many rows it returned or changed, if that was recorded.
    pub rows: Option<u64>,
    /// Whether it ends a transaction block: COMMIT, ROLLBACK and the like.
    pub ends_block: bool,
    /// Whether it drops the prepared statements of its session: DISCARD ALL and DEALLOCATE ALL.
    pub discards: bool,
}

/// A statement as its client sent it.
#[derive(Debug, Clone, Copy)]
pub enum Recorded<'a> {
    /// A text as a simple query.
    Query(&'a [u8]),
    /// A text without parameters as the unnamed statement.
    Unnamed(&'a [u8]),
    /// A statement with its values as parameters, [`Value::Unset`] for NULL.
    Values { statement: &'a Statement, mode: QueryMode, values: &'a [Value] },
}

impl Expected {
    /// Whether an error with this SQLSTATE is the recorded one.
    pub fn is_failure(&self, sqlstate: &str) -> bool {
        match self.failure {
            Some(StatementFailure::Code(code)) => code.as_slice() == sqlstate.as_bytes(),
            Some(StatementFailure::Unstated) => true,
            None => false,
        }
    }
}
