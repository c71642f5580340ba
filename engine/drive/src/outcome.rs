//! What a run tells: while it goes on to whoever watches it, and in the end what it came to.

use std::io;

use crate::ledger::tasks::Tasks;
use crate::ledger::{ScriptAccount, Tally};
use crate::{Began, CpuTime, ThreadTotals};
use ground::clock::Phase;
use wire::OpenError;
use wire::error::{ConnectionError, ServerError};
use workload::AbortReason;

/// Why a client was given up.
#[derive(Debug)]
pub enum Cause {
    /// `query` counts the statements of one request.
    Statement {
        error: Box<ServerError>,
        query: u32,
    },
    Connection(ConnectionError),
    Connect(OpenError),
    Program(AbortReason),
}

impl Cause {
    /// SQLSTATE, if there is one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Cause::Statement { error, .. } => Some(&error.sqlstate),
            Cause::Connection(error) => Some(error.sqlstate()),
            Cause::Connect(error) => Some(&error.sqlstate),
            Cause::Program(_) => None,
        }
    }

    /// What kind of failure it is, one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Statement { .. } => "statement",
            Cause::Connection(_) => "connection",
            Cause::Connect(_) => "connect",
            Cause::Program(_) => "script",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Statement { error, .. } => write!(f, "{error}"),
            Cause::Connection(error) => write!(f, "{error}"),
            Cause::Connect(error) => write!(f, "{error}"),
            Cause::Program(trouble) => write!(f, "{trouble}"),
        }
    }
}

/// A client that was given up.
#[derive(Debug)]
pub struct Abortion {
    pub client: usize,
    pub script: usize,
    pub command: Option<usize>,
    pub cause: Cause,
}

/// One second of all threads together.
#[derive(Debug)]
pub struct Tick {
    pub phase: Phase,
    /// Counts from 0 in each phase.
    pub second: u32,
    /// Length of the second: 1, or less for a phase's last.
    pub seconds: f64,
    pub tally: Tally,
}

/// Whoever watches a run: called in the main thread, in the order of events.
pub trait Observer {
    /// All clients are connected, `seconds` after the first began to.
    fn connected(&mut self, clients: usize, seconds: f64);
    /// The same, where they wait for a start that is agreed upon.
    fn ready(&mut self, clients: usize, seconds: f64);
    /// A phase begins; with the first one it is said when it `began`.
    fn phase(&mut self, phase: Phase, began: Option<&Began>);
    fn tick(&mut self, tick: &Tick);
    fn aborted(&mut self, abortion: &Abortion);
    /// Something that was asked for by [`crate::plan::Notes`].
    fn note(&mut self, text: &str);
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Time until all clients were connected, seconds.
    pub connect_s: f64,
    pub warmup: Tally,
    pub measure: Tally,
    /// Transactions that were under way at the scheduled end and were finished after it.
    pub drain: Tally,
    /// Length of the measured part within its schedule, seconds.
    pub measure_s: f64,
    /// Length of the warm-up, seconds.
    pub warmup_s: f64,
    /// From the start of the measured part to the end of the last transaction, seconds.
    pub elapsed_s: f64,
    pub scripts: Vec<ScriptAccount>,
    pub aborted: usize,
    pub interrupted: bool,
    /// The thread whose client ended the run, where the plan says that one does.
    pub ended_by_thread: Option<usize>,
    /// The first error that a transaction log met.
    pub log_error: Option<io::Error>,
    /// Time spent on making connections with `--connect`, all clients, seconds.
    pub reconnect_s: f64,
    pub cpu: CpuTime,
    /// CPU time of the busiest thread as a share of the measured time.
    pub busiest_thread: f64,
    /// Clients that had not come to their end when the run did.
    pub unfinished: usize,
    /// With pools of connections, what became of the tasks.
    pub tasks: Option<Tasks>,
}

impl Outcome {
    /// Adds what one thread came to.
    pub(super) fn add(&mut self, totals: &ThreadTotals) {
        self.aborted += totals.aborted;
        self.unfinished += totals.unfinished;
        self.reconnect_s += totals.reconnect_ns as f64 / 1e9;
        self.cpu.user += totals.cpu.user;
        self.cpu.system += totals.cpu.system;
        self.busiest_thread = self.busiest_thread.max(totals.cpu.total().as_secs_f64());
        if self.scripts.is_empty() {
            self.scripts.clone_from(&totals.scripts);
        } else {
            for (mine, theirs) in self.scripts.iter_mut().zip(&totals.scripts) {
                mine.merge(theirs);
            }
        }
    }
}

/// Why a run could not be.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{error}")]
    Connect { client: usize, error: OpenError },
    /// Clients of a staged run were given up before the load; the observer knows why.
    #[error("clients could not begin")]
    Unready,
    /// Nobody said when to begin.
    #[error("{0}")]
    Start(String),
    #[error("{0}")]
    System(String),
}

impl RunError {
    pub(super) fn died() -> Self {
        Self::System("a load thread died".to_owned())
    }
}
