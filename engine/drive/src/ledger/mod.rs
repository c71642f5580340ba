//! The ledger: counts transactions, failures and latencies. Each thread writes its own; the pages are added up outside
//! the hot path, so that nothing is locked or shared while transactions run.

mod clients;
pub mod log;
pub mod tasks;

use std::collections::BTreeMap;

pub use clients::ClientTotals;
pub use clients::Clients;
use tasks::Pooled;

use latency::{Latencies, Moments};
use workload::statistics::Queries;

/// Failed transactions by SQLSTATE.
pub type Failures = BTreeMap<String, u64>;

/// What became of transactions.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Latency of committed transactions from their scheduled start: count, mean, deviation, extremes.
    pub moments: Moments,
    /// With a rate: the time from the scheduled to the actual start of committed transactions.
    pub lag: Moments,
    /// By SQLSTATE, those that ended a client too.
    pub failures: Failures,
    /// Of the failures after which the client went on, those that are neither serialization failures nor deadlocks.
    pub other_failures: u64,
    /// Transactions that were not started because they were late already.
    pub skipped: u64,
    /// Committed transactions that took longer than the latency limit.
    pub late: u64,
    /// Transactions that were tried more than once, and the tries beyond their first.
    pub retried: u64,
    pub retries: u64,
    pub queries: Queries,
}

impl Counts {
    /// Committed transactions.
    pub fn transactions(&self) -> u64 {
        self.moments.count
    }

    /// Transactions that failed for good, while their clients went on.
    pub fn failed(&self) -> u64 {
        self.serialization_failures() + self.deadlocks() + self.other_failures
    }

    /// Transactions that failed for good by a serialization failure.
    pub fn serialization_failures(&self) -> u64 {
        self.failures.get("40001").copied().unwrap_or(0)
    }

    /// Transactions that failed for good by a deadlock.
    pub fn deadlocks(&self) -> u64 {
        self.failures.get("40P01").copied().unwrap_or(0)
    }

    /// Counts one failed transaction.
    pub fn fail(&mut self, sqlstate: &str) {
        *self.failures.entry(sqlstate.to_owned()).or_default() += 1;
    }

    /// Counts the tries of one transaction beyond its first.
    pub fn add_retries(&mut self, retries: u32) {
        self.retried += u64::from(retries > 0);
        self.retries += u64::from(retries);
    }

    /// Adds other transactions.
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
    }
}

/// What happened in one stretch of time.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub counts: Counts,
    /// Response time of committed transactions: from their scheduled start.
    pub latencies: Latencies,
    /// Only with a rate.
    pub pace: Option<Box<Pace>>,
    /// Only with pools of connections.
    pub pooled: Option<Box<Pooled>>,
    /// Only in a staged run.
    pub clients: Clients,
}

/// How a load with a rate kept to its schedule.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// Service time of committed transactions: from their actual start.
    pub service: Latencies,
    /// Schedule lag: from the scheduled to the actual start.
    pub lags: Latencies,
    /// The part of it that is the client's own: the lag of transactions for which a client was free in time.
    pub oversleeps: Latencies,
    /// At the end: transactions whose time has come but for which no client is free, and clients that are at one.
    pub backlog: u64,
    pub busy: u64,
}

impl Tally {
    /// Counts one committed transaction.
    #[inline]
    pub fn commit(&mut self, latency_ns: u64) {
        // A signed conversion is one instruction, and no latency needs the 64th bit.
        self.counts.moments.add(latency_ns as i64 as f64 / 1000.0);
        self.latencies.record(latency_ns);
    }

    /// Adds another stretch.
    pub fn merge(&mut self, other: &Tally) {
        self.counts.merge(&other.counts);
        self.latencies.merge(&other.latencies);
        self.clients.merge(&other.clients);
        if let Some(theirs) = &other.pace {
            let mine = self.pace.get_or_insert_default();
            mine.service.merge(&theirs.service);
            mine.lags.merge(&theirs.lags);
            mine.oversleeps.merge(&theirs.oversleeps);
            mine.backlog += theirs.backlog;
            mine.busy += theirs.busy;
        }
        if let Some(theirs) = &other.pooled {
            self.pooled.get_or_insert_default().merge(theirs);
        }
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

/// One script's account and its commands'.
#[derive(Debug, Clone, Default)]
pub struct ScriptAccount {
    pub whole: Counts,
    pub commands: Vec<Account>,
}

impl ScriptAccount {
    /// Adds another account of the same script.
    pub fn merge(&mut self, other: &ScriptAccount) {
        self.whole.merge(&other.whole);
        for (mine, theirs) in self.commands.iter_mut().zip(&other.commands) {
            mine.merge(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_stretches_counts_everything_once() {
        let (mut a, mut b, mut whole) = (Tally::default(), Tally::default(), Tally::default());
        for latency in 1..=1000u64 {
            (if latency % 3 == 0 { &mut a } else { &mut b }).commit(latency * 7919);
            whole.commit(latency * 7919);
        }
        a.counts.fail("40001");
        b.counts.fail("40001");
        b.counts.fail("57P01");
        a.merge(&b);
        assert_eq!(a.counts.transactions(), 1000);
        assert_eq!(a.counts.failures, Failures::from([("40001".to_owned(), 2), ("57P01".to_owned(), 1)]));
        assert_eq!(a.latencies.percentiles(), whole.latencies.percentiles());
        assert!((a.counts.moments.stddev() - whole.counts.moments.stddev()).abs() < 1e-6);
    }
}
