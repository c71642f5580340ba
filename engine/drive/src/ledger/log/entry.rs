//! What is logged of a transaction, and in which form.

use std::path::PathBuf;
use std::time::Duration;

use crate::ledger::counts::{DEADLOCK_DETECTED, SERIALIZATION_FAILURE};
use ground::clock::Nanos;

/// What is logged, and where.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// Names of files begin with it; the process number and, but for the first, the thread's number follow.
    pub prefix: String,
    /// One line for each interval instead of each transaction.
    pub aggregate: Option<Duration>,
    /// The share of transactions that are logged, above 0 to 1.
    pub sampling_rate: f64,
    /// Whether the load has a rate, so that lag and skipped transactions have columns.
    pub throttled: bool,
    /// Whether there is a latency limit.
    pub limited: bool,
    /// Whether transactions are tried more than once, so that retries have columns.
    pub retried: bool,
    /// Whether the kinds of failures are distinguished.
    pub failures_detailed: bool,
    /// Whether clients go on after other errors, so that these have a column in the lines of intervals.
    pub other_failures: bool,
    /// The origin of the run's clock, since 1970.
    pub origin: Duration,
}

impl LogPlan {
    /// The file of thread `thread`.
    pub fn path(&self, thread: usize) -> PathBuf {
        let pid = std::process::id();
        ground::text::path(&match thread {
            0 => format!("{}.{pid}", self.prefix),
            _ => format!("{}.{pid}.{thread}", self.prefix),
        })
    }
}

/// One transaction's end.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub client: usize,
    /// Counts the client's transactions from 0.
    pub number: u64,
    pub script: usize,
    /// On the run's clock.
    pub ended: Nanos,
    pub end: TransactionEnd,
    /// From the scheduled to the actual start, nanoseconds.
    pub lag: Nanos,
    pub retries: u32,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// After so many nanoseconds since its scheduled start.
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
    /// The kind of failure with this SQLSTATE.
    pub fn of(sqlstate: &str) -> Self {
        match sqlstate {
            SERIALIZATION_FAILURE => Self::Serialization,
            DEADLOCK_DETECTED => Self::Deadlock,
            _ => Self::Other,
        }
    }

    /// Its SQLSTATE, if all of its failures have the same.
    pub fn sqlstate(self) -> Option<&'static str> {
        match self {
            Self::Serialization => Some(SERIALIZATION_FAILURE),
            Self::Deadlock => Some(DEADLOCK_DETECTED),
            Self::Other => None,
        }
    }
}

/// Nanoseconds rounded to microseconds.
#[inline]
pub(super) fn microseconds(ns: Nanos) -> u64 {
    ns.saturating_add(500) / 1000
}
