//! Latency histograms: three significant digits from 1 us to 1 h, mergeable across threads, seconds and machines.

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

/// The longest latency told apart, microseconds; longer ones count as this.
const LONGEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Latencies of committed transactions.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

/// The percentiles that every report knows, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    pub p50: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p999: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_US, DIGITS)
            .unwrap_or_else(|error| unreachable!("the bounds of the histogram are constants: {error}"));
        Self { histogram }
    }
}

impl Latencies {
    /// Counts one latency, given in nanoseconds, rounded to microseconds.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record((latency_ns + 500) / 1000);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        if let Err(error) = self.histogram.add(&other.histogram) {
            unreachable!("histograms of one range always add up: {error}");
        }
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The percentiles; `None` without latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let at = |percentile| self.histogram.value_at_percentile(percentile);
        (self.count() > 0).then(|| Percentiles {
            p50: at(50.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
        })
    }

    /// The histogram in HdrHistogram's V2 format, deflated, in base64: readable by its libraries in any language.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        match V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes) {
            Ok(_) => base64::engine::general_purpose::STANDARD.encode(bytes),
            Err(error) => unreachable!("writing a histogram to memory cannot fail: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut latencies = Latencies::default();
        (1..=100_000u64).for_each(|us| latencies.record(us * 1000));
        let found = latencies.percentiles().unwrap();
        for (value, expected) in [(found.p50, 50_000.0), (found.p99, 99_000.0), (found.p999, 99_900.0)] {
            assert!((value as f64 / expected - 1.0).abs() < 1e-3, "{value} for {expected}");
        }
    }

    #[test]
    fn a_latency_beyond_the_range_counts_as_the_longest() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX - 1000);
        assert_eq!(latencies.count(), 1);
        assert!(latencies.percentiles().unwrap().p50 >= LONGEST_US);
    }

    #[test]
    fn the_encoded_form_can_be_read_back() {
        let mut latencies = Latencies::default();
        (1..500u64).for_each(|us| latencies.record(us * us * 1000));
        let bytes = base64::engine::general_purpose::STANDARD.decode(latencies.encode()).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(read, latencies.histogram);
    }
}
