//! Counts of transactions by how they ended, for a period of time, for a script, or for a command of a script.

use std::collections::BTreeMap;

use latency::{Latencies, Moments};
use workload::queries::Queries;

/// The SQLSTATE of a serialization failure, after which a transaction may be tried again.
pub const SERIALIZATION_FAILURE: &str = "40001";
/// The SQLSTATE of a deadlock, after which a transaction may be tried again.
pub const DEADLOCK_DETECTED: &str = "40P01";

/// Failed transactions by SQLSTATE.
pub type Failures = BTreeMap<String, u64>;

/// Counts of transactions by how they ended.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// The latency of committed transactions, from their scheduled start: count, mean, standard deviation and extremes,
    /// in microseconds.
    pub moments: Moments,
    /// The time from the scheduled to the actual start of committed transactions, in microseconds. Used only with a
    /// rate.
    pub lag: Moments,
    /// Failed transactions by SQLSTATE, including transactions whose failure aborted their client.
    pub failures: Failures,
    /// Failures after which the client went on and which are neither serialization failures nor deadlocks.
    pub other_failures: u64,
    /// Transactions that were skipped, because they were already too late when they could have started.
    pub skipped: u64,
    /// Committed transactions that took longer than the latency limit.
    pub late: u64,
    /// The number of transactions that were tried more than once.
    pub retried: u64,
    /// The number of tries of all transactions beyond their first tries.
    pub retries: u64,
    pub queries: Queries,
    /// Transactions that a sysbench script has reported by itself, in addition to those that the event loop counts.
    /// They have no latency.
    pub more_events: u64,
}

impl Counts {
    /// Returns the number of committed transactions.
    pub fn transactions(&self) -> u64 {
        self.moments.count
    }

    /// Returns the number of transactions that failed and were not tried again, while their clients went on.
    pub fn failed(&self) -> u64 {
        self.serialization_failures() + self.deadlocks() + self.other_failures
    }

    /// Returns the number of transactions that failed with a serialization failure and were not tried again.
    pub fn serialization_failures(&self) -> u64 {
        self.failures.get(SERIALIZATION_FAILURE).copied().unwrap_or(0)
    }

    /// Returns the number of transactions that failed with a deadlock and were not tried again.
    pub fn deadlocks(&self) -> u64 {
        self.failures.get(DEADLOCK_DETECTED).copied().unwrap_or(0)
    }

    /// Counts a failed transaction by its SQLSTATE.
    pub fn fail(&mut self, sqlstate: &str) {
        *self.failures.entry(sqlstate.to_owned()).or_default() += 1;
    }

    /// Counts the tries of one transaction beyond its first try.
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

/// The latency and the failures of one command of a script.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub moments: Moments,
    /// Failures of this command after which the transaction was not tried again, and its client went on.
    pub failures: u64,
    /// Serialization failures and deadlocks of this command after which the transaction was tried again.
    pub retries: u64,
}

impl Account {
    /// Adds the counts that another thread or period has for the same command.
    pub fn merge(&mut self, other: &Account) {
        self.moments.merge(&other.moments);
        self.failures += other.failures;
        self.retries += other.retries;
    }
}

/// The counters of one script and of each of its commands.
#[derive(Debug, Clone, Default)]
pub struct ScriptAccount {
    pub whole: Counts,
    /// The latencies of the script's transactions, if the load has several scripts. For a load with a single script
    /// they are the same as the latencies of the whole load, and are not stored here.
    pub latencies: Latencies,
    pub commands: Vec<Account>,
}

impl ScriptAccount {
    /// Makes the empty counters of a script with this number of commands.
    pub(crate) fn new(commands: usize) -> Self {
        Self { commands: vec![Account::default(); commands], ..Self::default() }
    }

    /// Adds the counts that another thread or period has for the same script.
    pub fn merge(&mut self, other: &ScriptAccount) {
        self.whole.merge(&other.whole);
        self.latencies.merge(&other.latencies);
        for (mine, theirs) in self.commands.iter_mut().zip(&other.commands) {
            mine.merge(theirs);
        }
    }
}
