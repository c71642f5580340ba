//! Latency histograms: three significant digits from 1 us to 1 h, mergeable across threads, seconds and machines.
//!
//! Counting is a shift and an increment in the bucket layout of HdrHistogram (<http://hdrhistogram.org>); percentiles and
//! the encoded form are the library's.

mod encoded;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

pub use encoded::{Decoder, MOST};

/// The longest latency told apart, microseconds; longer ones count as this.
const LONGEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Values below 2 to the power of this have a bucket each; from there on each doubling has half as many buckets.
const EXACT_BITS: u32 = 11;

/// Latencies below this, nanoseconds, have a bucket for each microsecond.
const EXACT_NS: u64 = 1000 * (1 << EXACT_BITS) - 500;

/// Buckets are made this many at a time.
const STEP: usize = 1 << EXACT_BITS;

/// Latencies of committed transactions.
#[derive(Clone, Default)]
pub struct Latencies {
    /// As many buckets as the longest latency so far needs.
    counts: Vec<u64>,
    total: u64,
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

/// The bucket of a latency in microseconds.
#[inline]
const fn bucket(us: u64) -> usize {
    let doublings = u64::BITS - EXACT_BITS - (us | ((1 << EXACT_BITS) - 1)).leading_zeros();
    ((doublings as usize) << (EXACT_BITS - 1)) + (us >> doublings) as usize
}

/// The lowest latency of a bucket, microseconds.
const fn lowest(bucket: usize) -> u64 {
    let half = 1 << (EXACT_BITS - 1);
    if bucket < 2 * half {
        return bucket as u64;
    }
    let doublings = bucket / half - 1;
    ((bucket - doublings * half) as u64) << doublings
}

impl std::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latencies").field("total", &self.total).finish_non_exhaustive()
    }
}

impl Latencies {
    /// Counts one latency, given in nanoseconds, rounded to microseconds.
    #[inline(always)]
    pub fn record(&mut self, latency_ns: u64) {
        self.total += 1;
        if latency_ns < EXACT_NS {
            let us = (latency_ns as u32 + 500) / 1000;
            if let Some(count) = self.counts.get_mut(us as usize) {
                *count += 1;
                return;
            }
        }
        self.record_inexactly(latency_ns);
    }

    /// The same for latencies that share a bucket, or for which there is none yet.
    #[inline(never)]
    fn record_inexactly(&mut self, latency_ns: u64) {
        let us = latency_ns.saturating_add(500) / 1000;
        let bucket = bucket(us.min(LONGEST_US));
        if bucket >= self.counts.len() {
            self.grow(bucket + 1);
        }
        self.counts[bucket] += 1;
    }

    #[cold]
    fn grow(&mut self, buckets: usize) {
        self.counts.resize(buckets.next_multiple_of(STEP), 0);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        if other.counts.len() > self.counts.len() {
            self.grow(other.counts.len());
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// The percentiles; `None` without latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        if self.total == 0 {
            return None;
        }
        let histogram = self.histogram();
        let at = |percentile| histogram.value_at_percentile(percentile);
        Some(Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), p999: at(99.9) })
    }

    /// The latency of which `percentile` percent are not longer, microseconds; `None` without latencies.
    pub fn percentile(&self, percentile: f64) -> Option<u64> {
        (self.total > 0).then(|| self.histogram().value_at_percentile(percentile))
    }

    /// The buckets that are not empty: lowest latency in microseconds, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (lowest(bucket), *count))
    }

    /// The histogram in HdrHistogram's V2 format, deflated, in base64: readable by its libraries in any language.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        match V2DeflateSerializer::new().serialize(&self.histogram(), &mut bytes) {
            Ok(_) => base64::engine::general_purpose::STANDARD.encode(bytes),
            Err(error) => unreachable!("writing a histogram to memory cannot fail: {error}"),
        }
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_US, DIGITS)
            .unwrap_or_else(|error| unreachable!("the bounds of the histogram are constants: {error}"));
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(lowest(bucket), *count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

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
        assert_eq!(latencies.total, 1);
        assert!(latencies.percentiles().unwrap().p50 >= LONGEST_US);
    }

    #[test]
    fn the_encoded_form_can_be_read_back() {
        let mut latencies = Latencies::default();
        (1..500u64).for_each(|us| latencies.record(us * us * 1000));
        let bytes = base64::engine::general_purpose::STANDARD.decode(latencies.encode()).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(read, latencies.histogram());
    }

    proptest! {
        /// The library's own recording is the reference.
        #[test]
        fn buckets_are_the_librarys(
            latencies in prop::collection::vec(prop_oneof![0..LONGEST_US * 1000, 0..2 * EXACT_NS], 1..50),
        ) {
            let mut ours = Latencies::default();
            let mut reference: Histogram<u64> = Histogram::new_with_bounds(1, LONGEST_US, DIGITS).unwrap();
            for latency in latencies {
                ours.record(latency);
                reference.saturating_record((latency + 500) / 1000);
            }
            prop_assert_eq!(ours.histogram(), reference);
        }
    }
}
