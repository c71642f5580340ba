//! The counts and times of one second or one phase of a run.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::EventError;
use ground::clock::Phase;
use latency::{MOST, Moments, Percentiles};

/// A number of clients, transactions and so on. Numbers above [`MOST`] are rejected when they are read, so that sums
/// cannot overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            number if number <= MOST => Ok(Self(number)),
            number => Err(D::Error::custom(format_args!("{number} is more than any run can have"))),
        }
    }
}

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        Self(counts.map(|count| count.0).sum())
    }
}

/// The numbers of failures, by SQLSTATE or by another name of the failure.
pub type FailuresRecord = BTreeMap<String, Count>;

/// The numbers of transactions by how they ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CountsRecord {
    pub transactions: Count,
    pub failures: FailuresRecord,
    pub skipped: Count,
    pub late: Count,
    pub retried: Count,
    pub retries: Count,
    /// The numbers of statements. Only for sysbench's tests and replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<QueriesRecord>,
}

impl CountsRecord {
    /// Adds the counts of other transactions.
    pub fn merge(&mut self, other: &CountsRecord) {
        self.transactions += other.transactions;
        add_failures(&mut self.failures, &other.failures);
        self.skipped += other.skipped;
        self.late += other.late;
        self.retried += other.retried;
        self.retries += other.retries;
        if let Some(theirs) = other.queries {
            let mine = self.queries.get_or_insert_default();
            mine.reads += theirs.reads;
            mine.writes += theirs.writes;
            mine.others += theirs.others;
            mine.errors += theirs.errors;
            mine.reconnects += theirs.reconnects;
        }
    }
}

/// Adds the numbers of failures of each kind.
pub fn add_failures(sum: &mut FailuresRecord, failures: &FailuresRecord) {
    for (kind, count) in failures {
        *sum.entry(kind.clone()).or_default() += *count;
    }
}

/// The numbers of statements in sysbench's tests and replays, by their kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueriesRecord {
    pub reads: Count,
    pub writes: Count,
    pub others: Count,
    pub errors: Count,
    pub reconnects: Count,
}

/// The distribution of latencies, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DistributionRecord {
    pub mean: f64,
    pub stddev: f64,
    pub min: f64,
    /// The percentiles. They are absent for a script without a histogram.
    #[serde(flatten)]
    pub percentiles: Option<Percentiles>,
    pub max: f64,
}

impl DistributionRecord {
    /// Makes the distribution. Returns `None` if there are no latencies.
    pub fn new(moments: &Moments, percentiles: Option<Percentiles>) -> Option<Self> {
        let Moments { count, min, max, .. } = *moments;
        let (mean, stddev) = (moments.mean(), moments.stddev());
        let percentiles = percentiles.map(|found| found.at_most(max));
        (count > 0).then_some(Self { mean, stddev, min, percentiles, max })
    }

    /// Returns the moments of the latencies, whose number is `count`.
    pub fn moments(&self, count: Count) -> Moments {
        Moments::of(count.0, self.mean, self.stddev, self.min, self.max)
    }
}

/// The mean and the extremes of times, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

impl Extent {
    /// Returns the mean and the extremes of times, or `None` if there are no times.
    pub fn new(moments: &Moments) -> Option<Self> {
        let Moments { count, min, max, .. } = *moments;
        (count > 0).then(|| Self { mean: moments.mean(), min, max })
    }

    /// Returns the moments of the times, whose number is `count`. Their standard deviation is not known and is set to
    /// 0.
    pub fn moments(&self, count: Count) -> Moments {
        Moments::of(count.0, self.mean, 0.0, self.min, self.max)
    }
}

/// Returns `figures`, which are the moments of `count` values, or empty moments if `count` is 0. It is an error if
/// there are values but no figures.
pub fn moments_of(count: Count, figures: Option<Moments>) -> Result<Moments, EventError> {
    match figures {
        _ if count.0 == 0 => Ok(Moments::default()),
        Some(moments) => Ok(moments),
        None => Err(EventError::NoFigures(count.0)),
    }
}

/// Percentiles and histograms. An absent key does not apply to this kind of load. A key that is null applies, but has
/// no values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub latency_us: Option<DistributionRecord>,
    /// The latency histogram in the form of [`latency::Latencies::encode`]. The other histograms have the same form.
    pub histogram: String,
    /// The service time, up to the end of the transaction. With a rate and in a replay of recorded times it begins at
    /// the actual start of the transaction, and with connection pools when the task gets its connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_us: Option<Option<Percentiles>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_histogram: Option<String>,
    /// The schedule lag, from the scheduled to the actual start. Only with a rate, or in a replay of recorded times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_us: Option<Option<Percentiles>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_histogram: Option<String>,
    /// The time for which a task waited until it got a connection. Only with connection pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_us: Option<Option<Percentiles>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_histogram: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_timeouts: Option<PoolTimeouts>,
}

/// The number and waiting times of the tasks that got no connection in time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PoolTimeouts {
    pub count: Count,
    pub waited_us: Option<Extent>,
}

/// The transactions that wait for a client, and those that are running, at the end of a second. Only with a rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// The number of transactions whose scheduled start is past but which have no client yet.
    pub waiting: Count,
    /// The number of clients that are running a transaction.
    pub busy: Count,
}

/// The counts and times of one second of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TickRecord {
    pub phase: Phase,
    /// The number of the second in its phase, counted from 0.
    pub second: u32,
    /// The length of the second: 1, or less at the end of a phase. If engines take turns in slices of time, it is the
    /// time until this engine's next slice.
    pub seconds: f64,
    /// This engine's slice in the round. Only if engines take turns in slices of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<SliceRecord>,
    #[serde(flatten)]
    pub counts: CountsRecord,
    /// The queue at the end of the second. Only with a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueRecord>,
    #[serde(flatten)]
    pub times: Times,
}

/// An engine's slice of time in one round: its planned times, and the times at which clients were active. All times are
/// in seconds since the planned start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SliceRecord {
    pub round: u64,
    pub planned_begin_s: f64,
    pub planned_end_s: f64,
    /// The time at which the first client became active in the slice. `None` if no client was active.
    pub begin_s: Option<f64>,
    /// The time at which the last client stopped being active in the slice. `None` if no client was active.
    pub end_s: Option<f64>,
    /// The sum over all clients of the time for which each was active. With a rate only the time within the planned
    /// slice counts.
    pub client_s: f64,
}

impl SliceRecord {
    /// Adds the activity of other clients in the slice.
    pub fn merge(&mut self, other: &SliceRecord) {
        self.begin_s = [self.begin_s, other.begin_s].into_iter().flatten().reduce(f64::min);
        self.end_s = [self.end_s, other.end_s].into_iter().flatten().reduce(f64::max);
        self.client_s += other.client_s;
    }
}

/// The counts and times of a whole phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub duration_s: f64,
    #[serde(flatten)]
    pub counts: CountsRecord,
    /// The number of committed transactions divided by `duration_s`.
    pub tps: f64,
    /// The sum over all clients of the time for which each was active in the slices. `None` if engines do not take
    /// turns in slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_s: Option<f64>,
    #[serde(flatten)]
    pub times: Times,
}
