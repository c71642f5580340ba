//! The entries of the transaction log, and the options that say which are written and in which form.

use std::path::PathBuf;
use std::time::Duration;

use crate::ledger::counts::{DEADLOCK_DETECTED, SERIALIZATION_FAILURE};
use ground::clock::Nanos;

/// The options of the transaction log: what is logged, and where.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// The beginning of the names of the log's files. The process number and, except for the first thread, the thread's
    /// number follow.
    pub prefix: String,
    /// The length of an interval, if the log has one line for each interval instead of each transaction.
    pub aggregate: Option<Duration>,
    /// The share of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: f64,
    /// True if the load has a rate, so that lag and skipped transactions have columns.
    pub throttled: bool,
    /// True if there is a latency limit.
    pub limited: bool,
    /// True if transactions are tried more than once, so that retries have columns.
    pub retried: bool,
    /// True if the kinds of failures are distinguished.
    pub failures_detailed: bool,
    /// True if clients go on after other errors, so that these have a column in the lines of intervals.
    pub other_failures: bool,
    /// The origin of the run's clock, as the time since 1970.
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

/// The end of one transaction, as the log needs it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub client: usize,
    /// The transaction's number among those of its client, counted from 0.
    pub number: u64,
    pub script: usize,
    /// The time of the transaction's end on the run's clock.
    pub ended: Nanos,
    pub end: TransactionEnd,
    /// The time from the scheduled to the actual start, nanoseconds.
    pub lag: Nanos,
    pub retries: u32,
}

/// The way in which a transaction ended.
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
    /// Returns the kind of failure with this SQLSTATE.
    pub fn of(sqlstate: &str) -> Self {
        match sqlstate {
            SERIALIZATION_FAILURE => Self::Serialization,
            DEADLOCK_DETECTED => Self::Deadlock,
            _ => Self::Other,
        }
    }

    /// Returns the SQLSTATE of this kind, if all of its failures have the same.
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
