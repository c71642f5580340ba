//! Counts of transactions by how they ended, for a period of time, for a script, or for a command of a script.

use std::collections::BTreeMap;

use latency::{Latencies, Moments};
use workload::queries::Queries;

/// The SQLSTATEs of failures after which a transaction may be tried again.
pub const SERIALIZATION_FAILURE: &str = "40001";
pub const DEADLOCK_DETECTED: &str = "40P01";

/// Failed transactions by SQLSTATE.
pub type Failures = BTreeMap<String, u64>;

/// Counts of transactions by how they ended.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Latency of committed transactions from their scheduled start: count, mean, deviation, extremes.
    pub moments: Moments,
    /// The time from the scheduled to the actual start of committed transactions. Used only with a rate.
    pub lag: Moments,
    /// Failed transactions by SQLSTATE, including those whose failure ended a client.
    pub failures: Failures,
    /// The failures after which the client went on and that are neither serialization failures nor deadlocks.
    pub other_failures: u64,
    /// Transactions that were not started because they were late already.
    pub skipped: u64,
    /// Committed transactions that took longer than the latency limit.
    pub late: u64,
    /// Transactions that were tried more than once, and the tries beyond their first.
    pub retried: u64,
    pub retries: u64,
    pub queries: Queries,
    /// Transactions that a sysbench script has counted itself, besides those of the event loop. They have no latency.
    pub more_events: u64,
}

impl Counts {
    /// Returns the number of committed transactions.
    pub fn transactions(&self) -> u64 {
        self.moments.count
    }

    /// Returns the number of transactions that failed for good, while their clients went on.
    pub fn failed(&self) -> u64 {
        self.serialization_failures() + self.deadlocks() + self.other_failures
    }

    /// Returns the number of transactions that failed for good by a serialization failure.
    pub fn serialization_failures(&self) -> u64 {
        self.failures.get(SERIALIZATION_FAILURE).copied().unwrap_or(0)
    }

    /// Returns the number of transactions that failed for good by a deadlock.
    pub fn deadlocks(&self) -> u64 {
        self.failures.get(DEADLOCK_DETECTED).copied().unwrap_or(0)
    }

    /// Counts a failed transaction by its SQLSTATE.
    pub fn fail(&mut self, sqlstate: &str) {
        *self.failures.entry(sqlstate.to_owned()).or_default() += 1;
    }

    /// Counts the tries of one transaction beyond its first.
    pub fn add_retries(&mut self, retries: u32) {
        self.retried += u64::from(retries > 0);
        self.retries += u64::from(retries);
    }

    /// Adds the counts of other transactions.
    pub fn merge(&mut self, other: &Counts) {
        self.moments.merge(&other.moments);
        self.lag.merge(&other.lag);
        for (kind, count) in &other.failures {
            *self.failures.entry(kind.clone()).or_default() += count;
        }
        self.other_failures += other.other_failures;
        self.skipped += other.skipped;
        self.late += other.late;
        self.retried += other.retried;
        self.retries += other.retries;
        self.queries.merge(&other.queries);
        self.more_events += other.more_events;
    }
}

/// Latency and failures of one command.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub moments: Moments,
    /// Serialization failures and deadlocks that were not retried, and those that were.
    pub failures: u64,
    pub retries: u64,
}

impl Account {
    /// Adds another account of the same command.
    pub fn merge(&mut self, other: &Account) {
        self.moments.merge(&other.moments);
        self.failures += other.failures;
        self.retries += other.retries;
    }
}

/// The account of one script and the accounts of its commands.
#[derive(Debug, Clone, Default)]
pub struct ScriptAccount {
    pub whole: Counts,
    /// The latencies of the script's transactions, if the load has several scripts. Those of a single script are in the
    /// tally.
    pub latencies: Latencies,
    pub commands: Vec<Account>,
}

impl ScriptAccount {
    /// Makes the empty account of a script with this number of commands.
    pub(crate) fn new(commands: usize) -> Self {
        Self { commands: vec![Account::default(); commands], ..Self::default() }
    }

    /// Adds another account of the same script.
    pub fn merge(&mut self, other: &ScriptAccount) {
        self.whole.merge(&other.whole);
        self.latencies.merge(&other.latencies);
        for (mine, theirs) in self.commands.iter_mut().zip(&other.commands) {
            mine.merge(theirs);
        }
    }
}
