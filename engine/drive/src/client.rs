//! A client of a load, the transaction that it runs, and the event that it waits for.

use crate::ledger::log::FailureKind;
use crate::shell::{Shell, TransportOf};
use ground::clock::Nanos;
use wire::error::ServerError;
use wire::{Connection, Rows};
use workload::{Actions, Program};

/// One client of a thread. `own` is the state that only clients of the load's mode have, and `A` are the actions that
/// the client's program can ask for.
pub struct Client<O, A: Actions, S: Shell> {
    /// The client's index among the thread's clients, which is also its connection's token.
    pub index: usize,
    /// The client's number in the whole run.
    pub number: usize,
    pub program: Box<dyn Program<A>>,
    pub connection: Option<Connection<TransportOf<S>>>,
    pub state: ClientState,
    /// The status of the last ReadyForQuery: `I` idle, `T` in a transaction, `E` in a failed one.
    pub status: u8,
    /// Transactions of the measured part so far: committed, failed or skipped.
    pub done: u64,
    /// True while the client takes part in this engine's slice, so that its time is counted; false while it waits for
    /// the next slice. Used only if engines take turns in slices.
    pub takes_part: bool,
    pub transaction: Transaction,
    pub own: O,
}

/// The transaction that a client runs or runs next.
#[derive(Default)]
pub struct Transaction {
    pub script: usize,
    /// The number of tries so far, the first one included.
    pub tries: u32,
    /// True if the server has answered a request of this transaction. Without an answer the clock was not read since
    /// the transaction began.
    pub was_answered: bool,
    /// The times at which the transaction was to start, at which it started, and at which its current command started.
    pub scheduled: Nanos,
    pub began: Nanos,
    pub command_began: Nanos,
    /// The part of the time before `scheduled` in which other engines had their slices. Used with a rate and slices.
    pub pause: Nanos,
    /// The failure, from its occurrence until the transaction is rolled back.
    pub failure: Option<Box<TransactionFailure>>,
    /// The last error by which a statement of the client's could not be prepared.
    pub unprepared: Option<Box<ServerError>>,
}

/// The reason for which a transaction failed.
pub struct TransactionFailure {
    pub error: Box<ServerError>,
    pub kind: FailureKind,
    /// The command that failed.
    pub command: usize,
}

/// The event that a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// The client waits for its next transaction; the mode decides when that starts.
    Idle,
    /// The client waits for its connection to be made, or in the queue of clients that will make one.
    Connecting,
    /// The client waits until the other clients of its thread have been served, or for its engine's slice, to start its
    /// next transaction.
    Yielding,
    /// The client waits in the middle of a transaction until the other clients of its thread have been served.
    Pausing,
    /// The client waits for the end of `\sleep`.
    Sleeping { command: usize },
    /// The client waits for the server's answer.
    Awaiting(Awaited),
    /// The client waits for nothing: it takes no further part.
    Finished,
}

/// The way in which a client uses the server's answer, once it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The client goes on to its next action. If `last` is true, this statement ends the transaction.
    Statement { command: usize, last: bool },
    /// The client hands the rows of a script's command to the program.
    Rows { command: usize },
    /// The client counts the query. If `last` is true, this query ends the transaction.
    Count { last: bool },
    /// The client hands the answer to the program. If `counts` is true, the request is counted as a query of the load.
    Answer { counts: bool },
    /// The statements of a pipeline have been prepared, and the client starts the pipeline.
    Prepared { command: usize },
    /// A failed transaction has been rolled back, and the client retries it or counts it as failed.
    Rollback,
}

impl Awaited {
    /// Returns what a client does with the answer to a query, given how the query's rows are used.
    #[inline]
    pub fn of_query(rows: Rows, command: usize, last: bool) -> Self {
        match rows {
            Rows::Skipped => Self::Statement { command, last },
            Rows::Kept => Self::Rows { command },
            Rows::Counted | Rows::Hashed => Self::Count { last },
            Rows::Handed => Self::Answer { counts: true },
        }
    }

    /// Returns the index of the script's command that the server answers; `None` if the request is no command of a
    /// script.
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
            transaction: Transaction::default(),
            own: O::default(),
        }
    }
}

impl<O, A: Actions, S: Shell> Client<O, A, S> {
    /// Records that the server has answered, and the transaction status of its ReadyForQuery.
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
