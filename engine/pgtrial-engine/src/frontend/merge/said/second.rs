//! A second of a part: counts, moments, histograms. These are nearly all that is read, and histograms are not copied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::Count;
use crate::frontend::merge::stream::Place;
use drive::ledger::Tally;
use ground::clock::Phase;
use latency::{Decoder, Latencies, Moments};
use workload::statistics::Queries;

/// What a tick says.
#[derive(Deserialize)]
pub struct Second<'a> {
    pub t: f64,
    pub phase: Phase,
    pub second: u32,
    pub seconds: f64,
    pub transactions: Count,
    pub failures: BTreeMap<String, Count>,
    skipped: Count,
    late: Count,
    retried: Count,
    retries: Count,
    pub queries: Option<Statements>,
    latency_us: Option<Spread>,
    #[serde(borrow)]
    pub histogram: Encoded<'a>,
    #[serde(borrow)]
    service_histogram: Option<Encoded<'a>>,
    #[serde(borrow)]
    pub lag_histogram: Option<Encoded<'a>>,
    #[serde(borrow)]
    pub queue_histogram: Option<Encoded<'a>>,
    pool_timeouts: Option<Timeouts>,
}

/// An encoded histogram.
pub struct Encoded<'a>(pub Cow<'a, [u8]>);

/// Statements of sysbench's tests.
#[derive(Clone, Copy, Deserialize)]
pub struct Statements {
    reads: Count,
    writes: Count,
    others: Count,
    errors: Count,
    reconnects: Count,
}

/// Figures of latencies, microseconds.
#[derive(Clone, Copy, Deserialize)]
pub struct Spread {
    mean: f64,
    stddev: f64,
    min: f64,
    max: f64,
}

/// Figures without a deviation, microseconds.
#[derive(Clone, Copy, Deserialize)]
pub struct Extent {
    mean: f64,
    min: f64,
    max: f64,
}

#[derive(Deserialize)]
struct Timeouts {
    count: Count,
    waited_us: Option<Extent>,
}

impl Spread {
    /// Those of so many latencies.
    pub fn moments(&self, count: Count) -> Moments {
        Moments::of(count.0, self.mean, self.stddev, self.min, self.max)
    }
}

impl Extent {
    /// Those of so many, of which the deviation is not known.
    pub fn moments(&self, count: Count) -> Moments {
        Moments::of(count.0, self.mean, 0.0, self.min, self.max)
    }
}

/// The moments of so many values; without any there need be no figures. The error is a whole statement.
pub fn moments_of(count: Count, figures: Option<Moments>) -> Result<Moments, String> {
    match figures {
        _ if count.0 == 0 => Ok(Moments::default()),
        Some(moments) => Ok(moments),
        None => Err(format!("has {} values without their figures", count.0)),
    }
}

/// What does not add up exactly in any order: the last digits of sums of fractions depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Fractions {
    pub latency: Moments,
    pub timeouts: Moments,
}

impl Second<'_> {
    /// Where in the run it is.
    pub fn place(&self) -> Place {
        Place::second(self.phase, self.second)
    }

    /// Adds what it counts to what other parts said of the same second; the rest is given back. The error is the rest of a
    /// sentence that begins with the machine and the line.
    pub fn add_to(&self, tally: &mut Tally, decoder: &mut Decoder) -> Result<Fractions, String> {
        let mut add = |encoded: &Encoded<'_>, to: &mut Latencies, what: &str| {
            decoder.add(&encoded.0, to).map_err(|problem| format!("cannot be added: its {what} {problem}"))
        };
        let held = add(&self.histogram, &mut tally.latencies, "histogram")?;
        if held != self.transactions.0 {
            return Err(format!("has {} transactions, but {held} in its histogram", self.transactions.0));
        }
        if let Some(queue) = &self.queue_histogram {
            let pooled = tally.pooled.get_or_insert_default();
            add(queue, &mut pooled.queue, "queue_histogram")?;
            if let Some(service) = &self.service_histogram {
                add(service, &mut pooled.service, "service_histogram")?;
            }
        } else if let Some(lags) = &self.lag_histogram {
            let pace = tally.pace.get_or_insert_default();
            add(lags, &mut pace.lags, "lag_histogram")?;
            if let Some(service) = &self.service_histogram {
                add(service, &mut pace.service, "service_histogram")?;
            }
        }
        self.add_counts(tally);
        let latency = self.latency_us.map(|figures| figures.moments(self.transactions));
        Ok(Fractions { latency: moments_of(self.transactions, latency)?, timeouts: self.timeouts()? })
    }

    fn add_counts(&self, tally: &mut Tally) {
        let counts = &mut tally.counts;
        for (kind, count) in &self.failures {
            *counts.failures.entry(kind.clone()).or_default() += count.0;
        }
        counts.skipped += self.skipped.0;
        counts.late += self.late.0;
        counts.retried += self.retried.0;
        counts.retries += self.retries.0;
        if let Some(statements) = &self.queries {
            counts.queries.merge(&Queries::from(*statements));
        }
    }

    fn timeouts(&self) -> Result<Moments, String> {
        let Some(Timeouts { count, waited_us }) = &self.pool_timeouts else { return Ok(Moments::default()) };
        moments_of(*count, waited_us.map(|figures| figures.moments(*count)))
    }
}

impl From<Statements> for Queries {
    fn from(statements: Statements) -> Self {
        let Statements { reads, writes, others, errors, reconnects } = statements;
        Self { reads: reads.0, writes: writes.0, others: others.0, errors: errors.0, reconnects: reconnects.0 }
    }
}

/// Borrowed wherever the text holds it as it is, which a reader of optional `Cow`s would not do.
impl<'de: 'a, 'a> Deserialize<'de> for Encoded<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Encoded<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a histogram in base64")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Encoded(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Encoded(Cow::Owned(bytes.to_owned())))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}
