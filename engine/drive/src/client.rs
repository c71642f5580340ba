//! A client of a load, its current transaction, and the event for which the client waits.

use crate::shell::{Shell, TransportOf};
use crate::statistics::log::FailureKind;
use ground::clock::Nanos;
use wire::error::ServerError;
use wire::{Connection, Rows};
use workload::{Actions, Program};

/// One client of a thread. The type `O` is the state that a client has only in this mode of the load, such as a closed
/// loop or a replay. `A` are the actions that the client's program can ask for, and `S` is the operating system, which
/// can be simulated.
pub struct Client<O, A: Actions, S: Shell> {
    /// The client's index among the clients of its thread. It is also the token under which the poll reports events of
    /// the client's connection.
    pub index: usize,
    /// The client's number in the whole run.
    pub number: usize,
    pub program: Box<dyn Program<A>>,
    pub connection: Option<Connection<TransportOf<S>>>,
    pub state: ClientState,
    /// The transaction status in the server's last ReadyForQuery: `I` idle, `T` in a transaction, `E` in a failed
    /// transaction.
    pub status: u8,
    /// The number of the client's transactions in the measured part so far, whether committed, failed or skipped.
    pub done: u64,
    /// True while the client takes part in this engine's slice of time, so that its time is counted. False while it
    /// waits for this engine's next slice. Used only if several engines take turns in slices of time.
    pub takes_part: bool,
    /// Set only in sysbench's load: true if each of the client's transactions begins at the moment at which the one
    /// before it ends, as long as the load lasts, because the load has neither a rate nor a number of transactions. Used
    /// only for programs that want to know it ([`Program::foresee`]).
    pub starts_at_once: bool,
    pub transaction: Transaction,
    pub own: O,
}

/// The transaction that a client is running, or runs next.
#[derive(Default)]
pub struct Transaction {
    pub script: usize,
    /// The number of tries so far, including the first one.
    pub tries: u32,
    /// True if the server has answered a request of this transaction. The clock is read when or after the transaction's
    /// last answer arrives; without an answer it may not have been read since the transaction began.
    pub was_answered: bool,
    /// The time at which the transaction was scheduled to start.
    pub scheduled: Nanos,
    /// The time at which the transaction did start.
    pub began: Nanos,
    /// The time at which the transaction's current command started or, while a connection is made, at which the client
    /// began to connect.
    pub command_began: Nanos,
    /// The total length of other engines' slices from the start of the load to `scheduled`. Used only if the load has a
    /// rate and several engines take turns in slices of time.
    pub pause: Nanos,
    /// The failure of this transaction, kept until the transaction has been rolled back.
    pub failure: Option<Box<TransactionFailure>>,
    /// The last error with which the server refused to prepare a statement of this client.
    pub unprepared: Option<Box<ServerError>>,
}

/// The error with which a transaction failed.
pub struct TransactionFailure {
    pub error: Box<ServerError>,
    pub kind: FailureKind,
    /// The index of the command that failed.
    pub command: usize,
}

/// The event for which a client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// The client waits for its next transaction. The mode of the load decides when that starts.
    Idle,
    /// The client waits until its connection is made. Before that it may wait in the queue, since only a few
    /// connections are made at a time.
    Connecting,
    /// The client is about to start its next transaction. It first waits until the other clients of its thread have
    /// been served, or for a time: the beginning of its engine's slice, of the measured part, or the end of the load.
    Yielding,
    /// The client waits in the middle of a transaction until the other clients of its thread have been served.
    Pausing,
    /// The client waits for the end of `\sleep`.
    Sleeping { command: usize },
    /// The client waits for the server's answer.
    Awaiting(Awaited),
    /// The client takes no further part in the load.
    Finished,
}

/// The use that a client makes of the server's answer when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The client goes on with its next action. If `last` is true, this statement ends the transaction.
    Statement { command: usize, last: bool },
    /// The client hands the rows that the server returned for a script's command to the client's program.
    Rows { command: usize },
    /// The client counts the answered query. If `last` is true, this query ends the transaction.
    Count { last: bool },
    /// The client hands the answer to the program. If `counts` is true, the request is counted as a query of the load.
    Answer { counts: bool },
    /// The server has prepared the statements of a pipeline, and the client starts the pipeline.
    Prepared { command: usize },
    /// A failed transaction has been rolled back. The client retries it or counts it as failed.
    Rollback,
}

impl Awaited {
    /// Returns how a client uses the answer to a query. `rows` says how the query's rows are used, and `last` whether
    /// the query ends the transaction.
    #[inline]
    pub fn of_query(rows: Rows, command: usize, last: bool) -> Self {
        match rows {
            Rows::Skipped => Self::Statement { command, last },
            Rows::Kept => Self::Rows { command },
            Rows::Counted | Rows::Hashed => Self::Count { last },
            Rows::Handed => Self::Answer { counts: true },
        }
    }

    /// Returns the index of the script command that the server answers, or `None` if the request does not belong to a
    /// script command.
    pub fn command(self) -> Option<usize> {
        match self {
            Self::Statement { command, .. } | Self::Rows { command } | Self::Prepared { command } => Some(command),
            Self::Count { .. } | Self::Answer { .. } | Self::Rollback => None,
        }
    }
}

impl<O: Default, A: Actions, S: Shell> Client<O, A, S> {
    /// Makes a client that has no connection yet.
    pub fn new(index: usize, number: usize, program: Box<dyn Program<A>>) -> Self {
        Self {
            index,
            number,
            program,
            connection: None,
            state: ClientState::Idle,
            status: b'I',
            done: 0,
            takes_part: false,
            starts_at_once: false,
            transaction: Transaction::default(),
            own: O::default(),
        }
    }
}

impl<O, A: Actions, S: Shell> Client<O, A, S> {
    /// Records that the server has answered, and stores the transaction status from its ReadyForQuery.
    #[inline(always)]
    pub fn note_answer(&mut self, status: u8) {
        self.status = status;
        self.transaction.was_answered = true;
    }

    /// Ends the client's session, if it has one.
    pub fn disconnect(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.terminate();
        }
    }
}
