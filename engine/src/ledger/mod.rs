//! The ledger: counts transactions, failures and latencies. Each thread writes its own; the pages are added up outside
//! the hot path, so that nothing is locked or shared while transactions run.

mod latencies;
mod moments;

use std::collections::BTreeMap;

pub use latencies::{Latencies, Percentiles};
pub use moments::Moments;

/// Failed transactions by SQLSTATE.
pub type Failures = BTreeMap<String, u64>;

/// What happened in one stretch of time.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Latency of committed transactions: count, mean, deviation, extremes.
    pub moments: Moments,
    /// The same latencies as a histogram.
    pub latencies: Latencies,
    pub failures: Failures,
}

impl Tally {
    /// Counts one committed transaction.
    #[inline]
    pub fn commit(&mut self, latency_ns: u64) {
        self.moments.add(latency_ns as f64 / 1000.0);
        self.latencies.record(latency_ns);
    }

    /// Counts one failed transaction.
    pub fn fail(&mut self, sqlstate: &str) {
        *self.failures.entry(sqlstate.to_owned()).or_default() += 1;
    }

    /// Committed transactions.
    pub fn transactions(&self) -> u64 {
        self.moments.count
    }

    /// Adds another stretch.
    pub fn merge(&mut self, other: &Tally) {
        self.moments.merge(&other.moments);
        self.latencies.merge(&other.latencies);
        for (kind, count) in &other.failures {
            *self.failures.entry(kind.clone()).or_default() += count;
        }
    }
}

/// Latency and failures of one command or one script.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub moments: Moments,
    pub failures: u64,
}

impl Account {
    /// Adds another account of the same command.
    pub fn merge(&mut self, other: &Account) {
        self.moments.merge(&other.moments);
        self.failures += other.failures;
    }
}

/// One script's account and its commands'.
#[derive(Debug, Clone, Default)]
pub struct ScriptAccount {
    pub whole: Account,
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
        a.fail("40001");
        b.fail("40001");
        b.fail("57P01");
        a.merge(&b);
        assert_eq!(a.transactions(), 1000);
        assert_eq!(a.failures, Failures::from([("40001".to_owned(), 2), ("57P01".to_owned(), 1)]));
        assert_eq!(a.latencies.percentiles(), whole.latencies.percentiles());
        assert!((a.moments.stddev() - whole.moments.stddev()).abs() < 1e-6);
    }
}
