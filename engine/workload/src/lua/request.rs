//! The requests of a script's coroutine to its client, and the answers to them.

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

/// A request of the coroutine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoroutineRequest {
    Connect(usize),
    /// The connection is closed first, then made again.
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
    /// The coroutine asks if there is another transaction.
    More,
    /// The client begins no further transaction. `is_complete` is true if the current one has run to its end.
    Left {
        is_complete: bool,
    },
    Fatal,
    Sleep(Duration),
    /// The coroutine has ended.
    Finished,
    /// The request has already been carried out; nothing is left to do.
    Nothing,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub enum Answer {
    #[default]
    Nothing,
    Truth(bool),
    /// The server has carried out the request; its answer is on the slate.
    Written,
    /// The server reported no error, but it did nothing either.
    Refused,
    /// The server reported an error: SQLSTATE, message, and the server's whole text.
    Failed {
        sqlstate: String,
        message: String,
        whole: String,
    },
}

impl Answer {
    /// Makes the answer for a failure that the client has found.
    pub fn failed(sqlstate: &str, message: &str) -> Self {
        Self::Failed { sqlstate: sqlstate.to_owned(), message: message.to_owned(), whole: message.to_owned() }
    }

    /// Makes the answer for an error that the server reported.
    pub fn rejected(error: &ServerError) -> Self {
        Self::Failed { sqlstate: error.sqlstate.clone(), message: error.message.clone(), whole: error.to_string() }
    }
}
