//! The results of a run: the reports that an observer receives during the run, and the outcome at its end.

use std::io;
use std::ops::Sub;
use std::time::Duration;

use crate::slices::Slice;
use crate::start_at::StartError;
use crate::statistics::{LoadStatistics, ModeTotals, ScriptAccount};
use ground::clock::Phase;
use ground::interrupt;
use wire::error::{ConnectionError, ServerError};
use wire::{OpenError, StatementError};
use workload::AbortReason;

/// The error for which a client was aborted.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// A statement failed. `query` is the position of the failed query in its request.
    #[error("{error}")]
    Statement { error: Box<ServerError>, query: u32 },
    /// A statement could not be prepared. As in pgbench it was executed nevertheless, and that failed, too.
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
    /// Returns the SQLSTATE of the error, if it has one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Cause::Statement { error, .. } | Cause::Unprepared { error, .. } => Some(&error.sqlstate),
            Cause::Connection(error) => Some(error.sqlstate()),
            Cause::Connect(error) => Some(&error.sqlstate),
            Cause::Program(_) => None,
        }
    }

    /// Returns the SQLSTATE under which the failed transaction is counted, if the error has one.
    pub fn counted_sqlstate(&self) -> Option<&str> {
        match self {
            Cause::Unprepared { execution, .. } => Some(&execution.error.sqlstate),
            cause => cause.sqlstate(),
        }
    }

    /// Returns the kind of the error as one word, such as `statement` or `connection`.
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

/// The statistics of one second, summed over all threads. If engines take turns in slices of time, these are the
/// statistics of one round of slices.
#[derive(Debug)]
pub struct Tick {
    pub phase: Phase,
    /// The number of this second in its phase, counted from 0.
    pub second: u32,
    /// The length of this period in seconds: 1, or less at the end of a phase. If engines take turns in slices of time,
    /// it is the length of the round.
    pub seconds: f64,
    /// This engine's slice in the round, if several engines take turns in slices of time.
    pub slice: Option<Slice>,
    pub statistics: LoadStatistics,
}

/// The time at which the load began, since 1970 by this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// The time at which the last of the threads began.
    pub at: Duration,
    /// The time at which all threads were planned to begin, if there was a plan.
    pub planned: Option<Duration>,
}

/// The delay after the planned start from which on a late beginning is reported.
const LATE: Duration = Duration::from_secs(1);

impl Began {
    /// Returns a sentence that reports a late beginning of the load. Returns `None` if no start was planned, or if the
    /// load began at most a second after the planned start.
    pub fn lateness(&self) -> Option<String> {
        let late = self.at.checked_sub(self.planned?).filter(|late| *late > LATE)?;
        let late_s = late.as_secs_f64();
        Some(format!(
            "the load began {late_s:.1} s after the time to start at (--start-at): that time was past when \
             the clients were ready; give a later time"
        ))
    }
}

/// Receives the events of a run while it is in progress. All methods are called in the main thread, in the order of the
/// events.
pub trait Observer {
    /// Called when all clients are connected, `seconds` after the first client began to connect.
    fn connected(&mut self, _clients: usize, _seconds: f64) {}
    /// Called when all clients are connected and wait for the planned start.
    fn ready(&mut self, _clients: usize, _seconds: f64) {}
    /// Called when a phase begins: the warm-up, the measured part, or the drain. `began` is given with the first phase.
    fn phase(&mut self, _phase: Phase, _began: Option<&Began>) {}
    /// Called when a second of the run is over in all threads.
    fn tick(&mut self, _tick: &Tick) {}
    /// Called when a client is aborted.
    fn aborted(&mut self, _abortion: &Abortion) {}
    /// Called with a message about the run, such as the first failure of each kind. The debugging lines about clients
    /// ([`crate::plan::Notes`]) do not come here.
    fn note(&mut self, _text: &str) {}
    /// Called when threads do not end although the run is over, for example because a program computes without end.
    /// Prints a message about these threads, and returns the exit status for the program. The transactions that such
    /// threads ran after the last second that they reported are missing in `outcome`.
    fn stuck(&mut self, _outcome: &Outcome) -> u8 {
        self.note(STUCK);
        interrupt::STATUS
    }
}

/// The message about threads that do not end when the run is over.
pub const STUCK: &str = "a client thread did not end: it computes without end, or waits for a shell command of its \
     script; the run is aborted";

/// The results of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The time from the start of the threads until all clients were connected, in seconds.
    pub connect_s: f64,
    pub warmup: LoadStatistics,
    pub measure: LoadStatistics,
    /// Transactions that were under way at the scheduled end of the load, and that were finished after it.
    pub drain: LoadStatistics,
    /// The length of the measured part, without the time after the scheduled end of the load, in seconds.
    pub measure_s: f64,
    /// The length of the warm-up, in seconds.
    pub warmup_s: f64,
    /// The time from the start of the measured part to the end of the last transaction, in seconds.
    pub elapsed_s: f64,
    pub scripts: Vec<ScriptAccount>,
    pub aborted: usize,
    pub interrupted: bool,
    /// The longest time that a thread waited because the main thread did not read its reports, in seconds.
    pub held_up_s: f64,
    /// The number of the thread whose client ended the run by an error. `None` unless the plan says that an error of a
    /// client ends the run.
    pub ended_by_thread: Option<usize>,
    /// The first error in writing a transaction log.
    pub log_error: Option<io::Error>,
    /// The time spent on making connections since the measured part began, such as with `--connect`, summed over all
    /// clients, in seconds.
    pub reconnect_s: f64,
    pub cpu: CpuTime,
    /// The CPU time of the busiest thread as a fraction of the measured time. If several engines take turns in slices
    /// of time, it is a fraction of the time for which a client took part on average.
    pub busiest_thread: f64,
    /// The number of clients that had not finished when the run ended.
    pub unfinished: usize,
    /// The totals that only the mode of the load has.
    pub of_mode: ModeTotals,
}

/// The error for which a whole run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{error}")]
    Connect { client: usize, error: OpenError },
    /// Clients of a sysbench load were aborted before the load began. The observer has received their errors.
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

/// The CPU time that a thread has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    pub user: Duration,
    pub system: Duration,
}

impl CpuTime {
    /// Returns the CPU time that the calling thread has used, or `None` if the operating system does not report it.
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
