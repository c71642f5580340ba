//! The results of a run: the reports that its observer receives during the run, and the outcome at the end.

use std::io;
use std::ops::Sub;
use std::time::Duration;

use crate::ledger::{Own, ScriptAccount, Tally};
use crate::slices::Slice;
use crate::start_at::StartError;
use ground::clock::Phase;
use ground::interrupt;
use wire::error::{ConnectionError, ServerError};
use wire::{OpenError, StatementError};
use workload::AbortReason;

/// The reason for which a client was aborted.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// A statement failed. `query` is its position among the statements of one request.
    #[error("{error}")]
    Statement { error: Box<ServerError>, query: u32 },
    /// A statement could not be prepared; it was executed all the same, which failed, too.
    #[error("{error}")]
    Unprepared { error: Box<ServerError>, execution: StatementError },
    #[error("{0}")]
    Connection(ConnectionError),
    #[error("{0}")]
    Connect(OpenError),
    #[error("{0}")]
    Program(AbortReason),
}

impl From<StatementError> for Cause {
    fn from(failed: StatementError) -> Self {
        Self::Statement { error: failed.error, query: failed.query }
    }
}

impl Cause {
    /// Returns the SQLSTATE, if there is one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Cause::Statement { error, .. } | Cause::Unprepared { error, .. } => Some(&error.sqlstate),
            Cause::Connection(error) => Some(error.sqlstate()),
            Cause::Connect(error) => Some(&error.sqlstate),
            Cause::Program(_) => None,
        }
    }

    /// Returns the SQLSTATE under which the failed transaction is counted.
    pub fn counted_sqlstate(&self) -> Option<&str> {
        match self {
            Cause::Unprepared { execution, .. } => Some(&execution.error.sqlstate),
            cause => cause.sqlstate(),
        }
    }

    /// Returns the kind of failure as one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Statement { .. } | Cause::Unprepared { .. } => "statement",
            Cause::Connection(_) => "connection",
            Cause::Connect(_) => "connect",
            Cause::Program(_) => "script",
        }
    }
}

/// A client that was aborted.
#[derive(Debug)]
pub struct Abortion {
    pub client: usize,
    pub script: usize,
    pub command: Option<usize>,
    pub cause: Cause,
}

/// The measurements of one second, summed over all threads. If engines take turns in slices, a round takes the place of
/// the second.
#[derive(Debug)]
pub struct Tick {
    pub phase: Phase,
    /// The second's number in its phase, counted from 0.
    pub second: u32,
    /// Length of the second: 1, or less for a phase's last.
    pub seconds: f64,
    /// The engine's slice of the time, if it has slices.
    pub slice: Option<Slice>,
    pub tally: Tally,
}

/// The time at which the load began, since 1970 by this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// The time at which the last thread began.
    pub at: Duration,
    /// The time at which all threads were to begin, if one was planned.
    pub planned: Option<Duration>,
}

/// A load that begins later than this after its planned start is reported.
const LATE: Duration = Duration::from_secs(1);

impl Began {
    /// Returns a sentence about a load that began late, if it did.
    pub fn lateness(&self) -> Option<String> {
        let late = self.at.checked_sub(self.planned?).filter(|late| *late > LATE)?;
        let late_s = late.as_secs_f64();
        Some(format!(
            "the load began {late_s:.1} s after the time to start at (--start-at), which was past when the clients were ready"
        ))
    }
}

/// Watches a run. All methods are called in the main thread, in the order of events.
pub trait Observer {
    /// Called when all clients are connected, `seconds` after the first began to connect.
    fn connected(&mut self, _clients: usize, _seconds: f64) {}
    /// Called when all clients are connected and wait for the planned start.
    fn ready(&mut self, _clients: usize, _seconds: f64) {}
    /// Called when a phase begins; `began` comes with the first one.
    fn phase(&mut self, _phase: Phase, _began: Option<&Began>) {}
    /// Called when a second is over.
    fn tick(&mut self, _tick: &Tick) {}
    /// Called when a client is given up.
    fn aborted(&mut self, _abortion: &Abortion) {}
    /// Called with a line about a client that [`crate::plan::Notes`] enables, and with the first failure of each kind.
    fn note(&mut self, _text: &str) {}
    /// Called when threads do not end though the run is over, for example because a program computes without end.
    /// Reports that, and returns the program's exit status. Transactions that such threads have run since the last
    /// second that they reported are missing in the outcome.
    fn stuck(&mut self, _outcome: &Outcome) -> u8 {
        self.note(STUCK);
        interrupt::STATUS
    }
}

/// The message about threads that do not end.
pub const STUCK: &str =
    "a client thread did not end: it computes without end, or waits for a command of its script; the run is given up";

/// The results of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The time until all clients were connected, seconds.
    pub connect_s: f64,
    pub warmup: Tally,
    pub measure: Tally,
    /// Transactions that were under way at the scheduled end and were finished after it.
    pub drain: Tally,
    /// The length of the measured part within its schedule, seconds.
    pub measure_s: f64,
    /// The length of the warm-up, seconds.
    pub warmup_s: f64,
    /// The time from the start of the measured part to the end of the last transaction, seconds.
    pub elapsed_s: f64,
    pub scripts: Vec<ScriptAccount>,
    pub aborted: usize,
    pub interrupted: bool,
    /// The longest time that a thread waited because nobody read the reports, seconds.
    pub held_up_s: f64,
    /// The thread whose client ended the run by its error, if the plan says that an error ends the run.
    pub ended_by_thread: Option<usize>,
    /// The first error that a transaction log met.
    pub log_error: Option<io::Error>,
    /// The time spent on making connections with `--connect`, summed over all clients, seconds.
    pub reconnect_s: f64,
    pub cpu: CpuTime,
    /// The CPU time of the busiest thread as a share of the measured time or, if engines take turns in slices, of the
    /// time for which a client took part on average.
    pub busiest_thread: f64,
    /// The number of clients that had not finished when the run ended.
    pub unfinished: usize,
    /// The totals that only the mode of the load has: [`Tasks`](crate::ledger::tasks::Tasks) with pools of connections,
    /// [`ReplayTotals`](crate::ledger::replay::ReplayTotals) of a replay.
    pub own: Own,
}

/// The reason for which a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{error}")]
    Connect { client: usize, error: OpenError },
    /// Clients of a staged run were aborted before the load; the observer has received the reasons.
    #[error("clients could not begin")]
    Unready,
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{0}")]
    System(String),
}

impl RunError {
    pub(crate) fn died() -> Self {
        Self::System("a load thread died".to_owned())
    }
}

/// CPU time of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    pub user: Duration,
    pub system: Duration,
}

impl CpuTime {
    /// Returns the CPU time that the calling thread has used; `None` where the system does not report it.
    pub fn of_thread() -> Option<Self> {
        #[cfg(any(target_os = "linux", target_os = "freebsd"))]
        {
            use nix::sys::resource::{UsageWho, getrusage};
            use nix::sys::time::{TimeVal, TimeValLike};
            let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
            let microseconds = |time: TimeVal| Duration::from_micros(time.num_microseconds() as u64);
            Some(Self { user: microseconds(usage.user_time()), system: microseconds(usage.system_time()) })
        }
        #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
        None
    }

    /// Returns user and system time together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }
}
