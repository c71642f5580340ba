//! The requests that a script's coroutine sends to its client, and the answers to them.

use std::time::Duration;

use wire::error::ServerError;

/// The kind of a request of the script's coroutine, as the coroutine passes it from Lua.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Connect,
    Reconnect,
    Disconnect,
    Query,
    /// The first query of an event. The previous event ends before it.
    FirstQuery,
    Rollback,
    Prepare,
    Execute,
    FirstExecute,
    Close,
    Ready,
    More,
    /// The current event has ended, and the next event has begun.
    Ended,
    Left,
    Fatal,
    Sleep,
}

/// A request of the coroutine with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoroutineRequest {
    Connect(usize),
    /// Close the connection, and open it again.
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
    /// The client is prepared, and its first transaction may begin.
    Ready,
    /// The coroutine asks whether another transaction follows.
    More,
    /// The client begins no further transaction. `is_complete` is true if its current transaction has run to the end.
    Left {
        is_complete: bool,
    },
    Fatal,
    Sleep(Duration),
    /// The coroutine has ended.
    Finished,
    /// The request has already been carried out, or was answered without the event loop.
    Nothing,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub enum Answer {
    #[default]
    Nothing,
    Truth(bool),
    /// The server has carried out the request. Its result is in the exchange buffer, the memory that Lua and Rust
    /// share.
    Written,
    /// The server has not carried out the request, but has reported no error either: the text was empty, or it began a
    /// COPY, which scripts do not support.
    Refused,
    /// The request has failed, with an SQLSTATE and a message. `whole` is the complete text of the server's error.
    Failed {
        sqlstate: String,
        message: String,
        whole: String,
    },
}

impl Answer {
    /// Makes the answer for a failure that the server has not reported, such as a lost connection.
    pub fn failed(sqlstate: &str, message: &str) -> Self {
        Self::Failed { sqlstate: sqlstate.to_owned(), message: message.to_owned(), whole: message.to_owned() }
    }

    /// Makes the answer for an error that the server has reported.
    pub fn rejected(error: &ServerError) -> Self {
        Self::Failed { sqlstate: error.sqlstate.clone(), message: error.message.clone(), whole: error.to_string() }
    }
}
