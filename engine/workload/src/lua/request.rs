//! What a script's coroutine asks of the client, and what it is answered.

use std::time::Duration;

use wire::error::ServerError;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Connect,
    Reconnect,
    Disconnect,
    Query,
    /// The first query of an event, before which the last one has ended.
    FirstQuery,
    Rollback,
    Prepare,
    Execute,
    FirstExecute,
    Close,
    Ready,
    More,
    /// The event has ended, and the next one has begun.
    Ended,
    Left,
    Fatal,
    Sleep,
}

/// What the coroutine asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoroutineRequest {
    Connect(usize),
    /// Closed first, then made again.
    Reconnect(usize),
    Disconnect(usize),
    Query {
        connection: usize,
    },
    Rollback {
        connection: usize,
    },
    Prepare {
        connection: usize,
        statement: usize,
    },
    Execute {
        connection: usize,
        statement: usize,
    },
    /// The client's beginning is over, and it goes on with its first transaction.
    Ready,
    /// Whether there is another transaction.
    More,
    /// It wants no more of them; the one under way may be complete.
    Left {
        is_complete: bool,
    },
    Fatal,
    Sleep(Duration),
    /// The life is over.
    Finished,
    /// Something that is done already.
    Nothing,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub enum Answer {
    #[default]
    Nothing,
    Truth(bool),
    /// The server has done it; what it said is on the slate.
    Written,
    /// The server reported no error, but it did nothing either.
    Refused,
    /// SQLSTATE, message, and all that the server says.
    Failed {
        sqlstate: String,
        message: String,
        whole: String,
    },
}

impl Answer {
    /// A failure that the client has found.
    pub fn failed(sqlstate: &str, message: &str) -> Self {
        Self::Failed { sqlstate: sqlstate.to_owned(), message: message.to_owned(), whole: message.to_owned() }
    }

    /// An error that the server reported.
    pub fn rejected(error: &ServerError) -> Self {
        Self::Failed { sqlstate: error.sqlstate.clone(), message: error.message.clone(), whole: error.to_string() }
    }
}
