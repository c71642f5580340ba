//! The statistics of the load in one period (one second, or one round of slices): counts, latencies, and the counters
//! that only one mode of the load has.

use ground::clock::{Nanos, seconds};
use latency::Latencies;

use super::counts::Counts;
use super::modes::ModeCounts;

/// The statistics of the load in one period: one second, or one round of slices.
#[derive(Debug, Clone, Default)]
pub struct LoadStatistics {
    pub counts: Counts,
    /// The response times of committed transactions, measured from their scheduled start.
    pub latencies: Latencies,
    /// Statistics of how well the load kept to its schedule. Used only with a rate, and in replays of recorded times.
    pub schedule: Option<Box<ScheduleStatistics>>,
    /// Statistics of how long clients took part in this engine's slices. Used only if several engines take turns in
    /// slices of time.
    pub slice_time: Option<SliceTime>,
    /// The counters that only the load's mode has.
    pub of_mode: ModeCounts,
}

/// Statistics of how long clients took part in this engine's slices. Times count from the start of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SliceTime {
    /// The sum over all clients of the time for which each took part, in nanoseconds. With a rate only the time within
    /// the planned slice counts.
    pub client_ns: Nanos,
    /// The first and the last moment at which any client took part.
    pub span: Option<(Nanos, Nanos)>,
}

impl SliceTime {
    /// Adds the time of clients that took part between `from` and `to`. `client_ns` is the sum of the times of all
    /// these clients.
    pub fn add(&mut self, client_ns: Nanos, from: Nanos, to: Nanos) {
        self.merge(&SliceTime { client_ns, span: Some((from, to)) });
    }

    fn merge(&mut self, other: &SliceTime) {
        self.client_ns += other.client_ns;
        let spans = [self.span, other.span].into_iter().flatten();
        self.span = spans.reduce(|(from, to), (began, ended)| (from.min(began), to.max(ended)));
    }
}

/// Statistics of how well a load with a rate kept to its schedule.
#[derive(Debug, Clone, Default)]
pub struct ScheduleStatistics {
    /// The service times of committed transactions, measured from their actual start.
    pub service: Latencies,
    /// The schedule lags of committed transactions: the time from the scheduled to the actual start.
    pub lags: Latencies,
    /// The schedule lags of those transactions for which a client was free at the scheduled start. Such a lag is caused
    /// by the load generator, not by the server.
    pub oversleeps: Latencies,
    /// The queue of transactions at the end of the period or, if several engines take turns in slices of time, at the
    /// end of this engine's slice.
    pub queue: Option<Queue>,
}

/// The number of transactions whose scheduled start is past but for which no client is free, and the number of clients
/// that are running a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    pub waiting: u64,
    pub busy: u64,
}

impl LoadStatistics {
    /// Returns empty statistics in which the same optional statistics are present as in these.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            schedule: self.schedule.as_ref().map(|_| Box::default()),
            slice_time: self.slice_time.map(|_| SliceTime::default()),
            of_mode: self.of_mode.emptied(),
            ..Self::default()
        }
    }

    /// Counts one committed transaction.
    #[inline(always)]
    pub fn commit(&mut self, latency_ns: u64) {
        // A signed conversion is one instruction, and no latency needs the 64th bit.
        self.counts.moments.add(latency_ns as i64 as f64 / 1000.0);
        self.latencies.record(latency_ns);
    }

    /// Returns for how many seconds each of `clients` clients took part in this engine's slices, on average. `None` if
    /// engines do not take turns in slices.
    pub fn slice_time_s(&self, clients: usize) -> Option<f64> {
        self.slice_time.map(|slice_time| seconds(slice_time.client_ns) / clients as f64)
    }

    /// Adds the statistics of another period or thread.
    pub fn merge(&mut self, other: &LoadStatistics) {
        self.counts.merge(&other.counts);
        self.latencies.merge(&other.latencies);
        if let Some(theirs) = &other.schedule {
            let mine = self.schedule.get_or_insert_default();
            mine.service.merge(&theirs.service);
            mine.lags.merge(&theirs.lags);
            mine.oversleeps.merge(&theirs.oversleeps);
            if let Some(queue) = theirs.queue {
                let sum = mine.queue.get_or_insert_default();
                sum.waiting += queue.waiting;
                sum.busy += queue.busy;
            }
        }
        if let Some(theirs) = &other.slice_time {
            self.slice_time.get_or_insert_default().merge(theirs);
        }
        self.of_mode.merge(&other.of_mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::counts::Failures;

    #[test]
    fn merging_periods_counts_everything_once() {
        let [mut a, mut b, mut whole] = [(); 3].map(|()| LoadStatistics::default());
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
