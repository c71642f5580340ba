//! A histogram of latencies: three significant digits from 1 us to 1 h, mergeable across threads, seconds and machines.
//!
//! Recording is a shift and an increment in the bucket layout of HdrHistogram (<http://hdrhistogram.org>), whose library
//! does the rest.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer latencies are recorded as this one, microseconds.
pub(crate) const LONGEST_US: u64 = 3_600_000_000;
pub(crate) const DIGITS: u8 = 3;

/// Values below 2 to the power of this have a bucket each. From there each doubling has half as many buckets.
const EXACT_BITS: u32 = 11;

/// Latencies below this, nanoseconds, have a bucket for each microsecond.
const EXACT_NS: u64 = 1000 * (1 << EXACT_BITS) - 500;

/// The number of buckets.
pub(crate) const BUCKETS: usize = bucket(LONGEST_US) + 1;

/// Buckets are allocated in multiples of this number: a second of short latencies needs few of them.
const STEP: usize = 256;

/// Latencies of committed transactions.
#[derive(Clone, Default)]
pub struct Latencies {
    /// As many buckets as the longest latency so far needs.
    counts: Vec<u64>,
    total: u64,
}

/// The percentiles of every report, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p999: u64,
}

/// The buckets that are not empty, and their counts: some kilobytes.
pub struct Packed(Vec<(usize, u64)>);

/// The bucket of a latency in microseconds.
#[inline]
pub(crate) const fn bucket(us: u64) -> usize {
    let doublings = u64::BITS - EXACT_BITS - (us | ((1 << EXACT_BITS) - 1)).leading_zeros();
    ((doublings as usize) << (EXACT_BITS - 1)) + (us >> doublings) as usize
}

/// The lowest latency of a bucket, microseconds.
pub(crate) const fn lowest(bucket: usize) -> u64 {
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

    /// The same for latencies that share a bucket, and for buckets that are not allocated yet.
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

    /// Adds `count` latencies; `None` if there is no such bucket.
    #[inline]
    pub(crate) fn add_to_bucket(&mut self, bucket: usize, count: u64) -> Option<()> {
        if bucket >= BUCKETS {
            return None;
        }
        if bucket >= self.counts.len() {
            self.grow(bucket + 1);
        }
        self.counts[bucket] += count;
        self.total += count;
        Some(())
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

    /// The same histogram as the library has it.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_US, DIGITS)
            .unwrap_or_else(|error| unreachable!("the bounds are valid: {error}"));
        self.buckets().for_each(|(us, count)| histogram.saturating_record_n(us, count));
        histogram
    }

    /// The percentiles; `None` without latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let histogram = (self.total > 0).then(|| self.histogram())?;
        let at = |percentile| histogram.value_at_percentile(percentile);
        Some(Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), p999: at(99.9) })
    }

    /// The latency in microseconds that `percentile` percent of all do not exceed; `None` without latencies.
    pub fn percentile(&self, percentile: f64) -> Option<u64> {
        (self.total > 0).then(|| self.histogram().value_at_percentile(percentile))
    }

    /// The buckets that are not empty: lowest latency in microseconds, and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (lowest(bucket), *count))
    }

    /// Moves the counts into less memory, and leaves an empty histogram.
    pub fn pack(&mut self) -> Packed {
        let Self { counts, .. } = std::mem::take(self);
        Packed(counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect())
    }

    /// Adds packed counts.
    pub fn unpack(&mut self, Packed(counts): Packed) {
        for (bucket, count) in counts {
            self.add_to_bucket(bucket, count);
        }
    }

    #[cfg(test)]
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the library records of latencies in nanoseconds.
    fn reference(latencies: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut reference = Histogram::new_with_bounds(1, LONGEST_US, DIGITS).unwrap();
        latencies.into_iter().for_each(|latency| reference.saturating_record((latency + 500) / 1000));
        reference
    }

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

    proptest! {
        /// The library's own recording is the reference.
        #[test]
        fn what_is_recorded_is_what_the_library_would_have_recorded(
            latencies in prop::collection::vec(prop_oneof![0..LONGEST_US * 1000, 0..2 * EXACT_NS], 0..50),
        ) {
            let mut ours = Latencies::default();
            latencies.iter().for_each(|latency| ours.record(*latency));
            prop_assert_eq!(ours.histogram(), reference(latencies));
        }

        #[test]
        fn percentiles_are_the_librarys(
            latencies in prop::collection::vec(prop_oneof![0..LONGEST_US * 1000, 0..2 * EXACT_NS], 1..300),
            percentile in prop_oneof![Just(0.0), Just(100.0), 0.0..101.0],
        ) {
            let mut ours = Latencies::default();
            latencies.iter().for_each(|latency| ours.record(*latency));
            let theirs = reference(latencies);
            let at = |percentile| theirs.value_at_percentile(percentile);
            let all = Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), p999: at(99.9) };
            prop_assert_eq!((ours.percentile(percentile), ours.percentiles()), (Some(at(percentile)), Some(all)));
        }
    }
}
