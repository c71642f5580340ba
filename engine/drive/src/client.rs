//! A client and where it is in its transaction.

use super::failures::Failure;
use ground::clock::Nanos;
use wire::Connection;
use workload::Program;

/// One client of a thread.
pub struct Client {
    /// Among the thread's clients, which is also its connection's token.
    pub index: usize,
    pub program: Box<dyn Program>,
    pub connection: Option<Connection>,
    pub state: State,
    /// What the server said of its transaction last: `I` idle, `T` in one, `E` in a failed one.
    pub status: u8,
    /// Whether the current transaction has had an answer: otherwise the clock has stood still.
    pub was_answered: bool,
    pub script: usize,
    /// Tries of the current transaction, the first included.
    pub tries: u32,
    /// When the current transaction was to start, when it did, and when the current command did.
    pub scheduled: Nanos,
    pub transaction_began: Nanos,
    pub command_began: Nanos,
    /// Transactions of the measured part so far: committed, failed or skipped.
    pub done: u64,
    /// Of the current transaction, while it is cleaned up.
    pub failure: Option<Box<Failure>>,
    /// Since when it has been without a server that it had, or was to have.
    pub outage: Option<Nanos>,
    /// Only in a staged run.
    pub staged: Box<Staged>,
}

/// What a client of a staged run has beside the others.
#[derive(Default)]
pub struct Staged {
    pub stage: Stage,
    /// The number of the connection in use, and the other connections.
    pub current: usize,
    pub parked: Vec<(usize, Connection)>,
    /// The numbers of the connections that have been made and not been closed on purpose.
    pub made: Vec<usize>,
}

/// A stage of a client's life in a staged run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Before its first transaction.
    #[default]
    Start,
    Load,
    /// After its last transaction.
    Stop,
}

impl Client {
    /// A client that has not begun.
    pub fn new(index: usize, program: Box<dyn Program>) -> Self {
        Self {
            index,
            program,
            connection: None,
            state: State::Idle,
            status: b'I',
            was_answered: false,
            script: 0,
            tries: 1,
            scheduled: 0,
            transaction_began: 0,
            command_began: 0,
            done: 0,
            failure: None,
            outage: None,
            staged: Box::default(),
        }
    }
}

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The run's start.
    Idle,
    /// Its connection.
    Connecting,
    /// The next attempt to make its connection.
    WaitingForServer,
    /// The scheduled start of its transaction.
    Scheduled,
    /// Nothing, but others come first.
    Yielding,
    /// The same in the middle of a transaction.
    Pausing,
    /// The end of `\sleep`.
    Sleeping { command: usize },
    /// The preparing of a pipeline's statements.
    Preparing { command: usize },
    /// The server's answer, with which the transaction may be over.
    Waiting { command: usize, last: bool },
    /// The server's answer, whose rows the program wants.
    WaitingForRows { command: usize },
    /// The server's answer, which is counted, and with which the transaction may be over.
    WaitingForCount { last: bool },
    /// The server's answer, which the program takes, and whether it counts as a query.
    WaitingForAnswer { counts: bool },
    /// The rolling back of a failed transaction.
    RollingBack,
    /// Nothing any more.
    Finished,
}
