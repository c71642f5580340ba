//! The entries of the transaction log, and the options that say which entries are written and in which format.

use std::path::PathBuf;
use std::time::Duration;

use crate::statistics::counts::{DEADLOCK_DETECTED, SERIALIZATION_FAILURE};
use ground::clock::Nanos;

/// The options of the transaction log: what is logged, and to which files.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// The prefix of the log files' names. The process ID follows and, except for the first thread, the number of the
    /// thread.
    pub prefix: String,
    /// The length of an interval, if the log has one line for each interval instead of one for each transaction.
    pub aggregate: Option<Duration>,
    /// The fraction of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: f64,
    /// True if the load has a rate, so that the log shows the schedule lag.
    pub throttled: bool,
    /// True if the load has a latency limit, so that lines of intervals have the number of skipped transactions, and
    /// not 0.
    pub limited: bool,
    /// True if failed transactions may be retried, so that the log has columns for retries.
    pub retried: bool,
    /// True if the log distinguishes the kinds of failures.
    pub failures_detailed: bool,
    /// True if clients go on after other errors than serialization failures and deadlocks. Lines of intervals then have
    /// a column for these errors.
    pub other_failures: bool,
    /// The time since 1970 at which the run's clock showed 0.
    pub origin: Duration,
}

impl LogPlan {
    /// Returns the path of the log file of thread `thread`.
    pub fn path(&self, thread: usize) -> PathBuf {
        let pid = std::process::id();
        ground::text::path(&match thread {
            0 => format!("{}.{pid}", self.prefix),
            _ => format!("{}.{pid}.{thread}", self.prefix),
        })
    }
}

/// The end of one transaction, with the facts that its log line needs.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub client: usize,
    /// The transaction's number among those of its client, counted from 0.
    pub number: u64,
    pub script: usize,
    /// The time of the transaction's end on the run's clock.
    pub ended: Nanos,
    pub end: TransactionEnd,
    /// The time from the scheduled to the actual start, in nanoseconds.
    pub lag: Nanos,
    pub retries: u32,
}

/// The ways in which a transaction can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// The transaction was committed, this number of nanoseconds after its scheduled start.
    Committed {
        latency: Nanos,
    },
    Failed(FailureKind),
    Skipped,
}

/// The kinds of failures that pgbench distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Serialization,
    Deadlock,
    Other,
}

impl FailureKind {
    /// Returns the kind of failure to which this SQLSTATE belongs.
    pub fn of(sqlstate: &str) -> Self {
        match sqlstate {
            SERIALIZATION_FAILURE => Self::Serialization,
            DEADLOCK_DETECTED => Self::Deadlock,
            _ => Self::Other,
        }
    }

    /// Returns the SQLSTATE of this kind of failure, or `None` if its failures have different SQLSTATEs.
    pub fn sqlstate(self) -> Option<&'static str> {
        match self {
            Self::Serialization => Some(SERIALIZATION_FAILURE),
            Self::Deadlock => Some(DEADLOCK_DETECTED),
            Self::Other => None,
        }
    }
}

/// Converts nanoseconds to microseconds, rounded.
#[inline]
pub(super) fn microseconds(ns: Nanos) -> u64 {
    ns.saturating_add(500) / 1000
}
