//! A client, the transaction that it runs, and what it waits for.

use crate::ledger::log::FailureKind;
use crate::shell::{Shell, TransportOf};
use ground::clock::Nanos;
use wire::error::ServerError;
use wire::{Connection, Rows};
use workload::{Actions, Program};

/// One client of a thread; `own` is what only the clients of its mode have. Its program has the actions `A`.
pub struct Client<O, A: Actions, S: Shell> {
    /// Its index among the thread's clients, which is also its connection's token.
    pub index: usize,
    /// Its number in the whole run.
    pub number: usize,
    pub program: Box<dyn Program<A>>,
    pub connection: Option<Connection<TransportOf<S>>>,
    pub state: ClientState,
    /// The status of the last ReadyForQuery: `I` idle, `T` in a transaction, `E` in a failed one.
    pub status: u8,
    /// Transactions of the measured part so far: committed, failed or skipped.
    pub done: u64,
    /// Only with slices: whether its time counts now. It does not while it waits for the next slice.
    pub takes_part: bool,
    pub transaction: Transaction,
    pub own: O,
}

/// The transaction that a client runs or runs next.
#[derive(Default)]
pub struct Transaction {
    pub script: usize,
    /// The first one included.
    pub tries: u32,
    /// Whether the server has answered: without an answer the clock was not read.
    pub was_answered: bool,
    /// When it was to start, when it did, and when its current command did.
    pub scheduled: Nanos,
    pub began: Nanos,
    pub command_began: Nanos,
    /// With a rate and slices: how much of the time before `scheduled` was others'.
    pub pause: Nanos,
    /// Set from the failure until the transaction is rolled back.
    pub failure: Option<Box<TransactionFailure>>,
    /// The last error by which a statement of the client's could not be prepared.
    pub unprepared: Option<Box<ServerError>>,
}

/// Why a transaction failed.
pub struct TransactionFailure {
    pub error: Box<ServerError>,
    pub kind: FailureKind,
    /// The command that failed.
    pub command: usize,
}

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// The next transaction; the mode decides when it starts.
    Idle,
    /// Its connection, or its turn to make one.
    Connecting,
    /// Its turn, or its engine's, to start its next transaction.
    Yielding,
    /// Its turn, in the middle of a transaction.
    Pausing,
    /// The end of `\sleep`.
    Sleeping { command: usize },
    /// The server's answer.
    Awaiting(Awaited),
    /// Nothing: it takes no further part.
    Finished,
}

/// What a client does with the server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Goes on; the transaction ends with the `last` one.
    Statement { command: usize, last: bool },
    /// Hands the rows of a script's command to the program.
    Rows { command: usize },
    /// Counts the query; the transaction ends with the `last` one.
    Count { last: bool },
    /// Hands the answer to the program; `counts`: as that of a query of the load.
    Answer { counts: bool },
    /// Starts the pipeline whose statements were prepared.
    Prepared { command: usize },
    /// Retries or counts the failed transaction that was rolled back.
    Rollback,
}

impl Awaited {
    /// What a client does with the answer to a query that wants these rows.
    #[inline]
    pub fn of_query(rows: Rows, command: usize, last: bool) -> Self {
        match rows {
            Rows::Skipped => Self::Statement { command, last },
            Rows::Kept => Self::Rows { command },
            Rows::Counted | Rows::Hashed => Self::Count { last },
            Rows::Handed => Self::Answer { counts: true },
        }
    }

    /// The script's command that is answered.
    pub fn command(self) -> Option<usize> {
        match self {
            Self::Statement { command, .. } | Self::Rows { command } | Self::Prepared { command } => Some(command),
            Self::Count { .. } | Self::Answer { .. } | Self::Rollback => None,
        }
    }
}

impl<O: Default, A: Actions, S: Shell> Client<O, A, S> {
    /// A client that has no connection yet.
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
    /// Notes an answer of the server with this status.
    #[inline(always)]
    pub fn note_answer(&mut self, status: u8) {
        self.status = status;
        self.transaction.was_answered = true;
    }

    /// Ends its session, if it has one.
    pub fn disconnect(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.terminate();
        }
    }
}
