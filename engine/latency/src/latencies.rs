//! A histogram of latencies with three significant digits from 1 us to 1 h, and a resolution of nanoseconds below 1 us.
//! Histograms can be merged across threads, seconds and machines.
//!
//! Recording a latency takes a shift and an increment, in the bucket layout of HdrHistogram
//! (<http://hdrhistogram.org>). The library `hdrhistogram` does everything else.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency that every histogram can hold, in nanoseconds. Latencies beyond the last bucket, which ends at
/// 73 min, are recorded as this one.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000;
pub(crate) const DIGITS: u8 = 3;

/// The size of the exact range of a histogram, in bits: each value below 2^11 has a bucket of its own. From there on
/// each doubling of the value, such as 2^11 to 2^12, is divided into 2^10 buckets.
const EXACT_BITS: u32 = 11;

/// The number of buckets, up to the end of the doubling that contains the longest latency.
pub(crate) const BUCKETS: usize = bucket(LONGEST_NS.next_power_of_two());

/// The number of buckets of a page. Buckets are allocated in pages, and only where there are latencies. Latencies of a
/// run are usually close together.
const PAGE: usize = 32;

const _: () = assert!(BUCKETS.is_multiple_of(PAGE), "a page has latencies that are recorded as the longest one");

/// A histogram of the latencies of committed transactions.
#[derive(Clone, Default)]
pub struct Latencies {
    /// The pages with counts, up to the page of the longest latency so far. A page without latencies is `None`.
    pages: Vec<Option<Box<[u64; PAGE]>>>,
}

/// The percentiles that every report shows, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    #[serde(rename = "p99.9")]
    pub p999: f64,
}

impl Percentiles {
    /// Returns the percentiles, limited to the longest latency `max_us`. A percentile is the upper end of a bucket and
    /// may therefore be above the longest latency, which is known exactly.
    pub fn at_most(self, max_us: f64) -> Self {
        let [p50, p90, p95, p99, p999] =
            [self.p50, self.p90, self.p95, self.p99, self.p999].map(|percentile| percentile.min(max_us));
        Self { p50, p90, p95, p99, p999 }
    }
}

/// The buckets of a histogram that are not empty, with their counts. This form takes a few kilobytes.
pub struct Packed(Vec<(usize, u64)>);

/// Returns the index of the bucket for a latency. The latency is in the unit of the histogram, which is nanoseconds
/// except in histograms of version 1 of the event protocol.
#[inline]
pub(crate) const fn bucket(value: u64) -> usize {
    let doublings = u64::BITS - EXACT_BITS - (value | ((1 << EXACT_BITS) - 1)).leading_zeros();
    ((doublings as usize) << (EXACT_BITS - 1)) + (value >> doublings) as usize
}

/// Returns the lowest latency that belongs to a bucket. The latency is in the unit of the histogram, which is
/// nanoseconds except in histograms of version 1 of the event protocol.
pub(crate) const fn lowest(bucket: usize) -> u64 {
    let half = 1 << (EXACT_BITS - 1);
    if bucket < 2 * half {
        return bucket as u64;
    }
    let doublings = bucket / half - 1;
    ((bucket - doublings * half) as u64) << doublings
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

impl std::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latencies").field("total", &self.total()).finish_non_exhaustive()
    }
}

impl Latencies {
    /// Counts one latency, which is given in nanoseconds.
    #[inline(always)]
    pub fn record(&mut self, latency_ns: u64) {
        let bucket = bucket(latency_ns);
        if let Some(Some(page)) = self.pages.get_mut(bucket / PAGE) {
            page[bucket % PAGE] += 1;
        } else {
            self.record_rarely(latency_ns);
        }
    }

    /// Counts a latency for which no page is allocated yet, or which is beyond the last bucket.
    #[cold]
    fn record_rarely(&mut self, latency_ns: u64) {
        let bucket = Some(bucket(latency_ns)).filter(|bucket| *bucket < BUCKETS);
        *self.count_mut(bucket.unwrap_or(const { self::bucket(LONGEST_NS) })) += 1;
    }

    /// Returns the count of a bucket. Allocates the bucket's page if necessary.
    fn count_mut(&mut self, bucket: usize) -> &mut u64 {
        let page = bucket / PAGE;
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        &mut self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]))[bucket % PAGE]
    }

    /// Adds `count` latencies to a bucket. Returns `None` if there is no such bucket.
    #[inline]
    pub(crate) fn add_to_bucket(&mut self, bucket: usize, count: u64) -> Option<()> {
        if bucket >= BUCKETS {
            return None;
        }
        *self.count_mut(bucket) += count;
        Some(())
    }

    /// Adds the latencies of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        if other.pages.len() > self.pages.len() {
            self.pages.resize(other.pages.len(), None);
        }
        for (mine, theirs) in self.pages.iter_mut().zip(&other.pages) {
            match (mine, theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) => {
                    mine.iter_mut().zip(&theirs[..]).for_each(|(mine, theirs)| *mine += theirs);
                }
                (mine @ None, Some(_)) => mine.clone_from(theirs),
            }
        }
    }

    /// Converts this histogram to the type of the library `hdrhistogram`. Returns `None` if it has no latencies.
    fn some_histogram(&self) -> Option<Histogram<u64>> {
        self.buckets().next().map(|_| self.histogram())
    }

    /// Converts this histogram to the type of the library `hdrhistogram`.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .unwrap_or_else(|error| unreachable!("the bounds are valid: {error}"));
        self.buckets().for_each(|(ns, count)| histogram.saturating_record_n(ns, count));
        histogram
    }

    /// Returns the percentiles, or `None` if the histogram has no latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.some_histogram()?;
        let at = |percentile| microseconds(histogram.value_at_percentile(percentile));
        Some(Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), p999: at(99.9) })
    }

    /// Returns the latency in microseconds that `percentile` percent of all latencies do not exceed, or `None` if the
    /// histogram has no latencies.
    pub fn percentile(&self, percentile: f64) -> Option<f64> {
        self.some_histogram().map(|histogram| microseconds(histogram.value_at_percentile(percentile)))
    }

    /// Returns the buckets that are not empty: the lowest latency of each in nanoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts().map(|(bucket, count)| (lowest(bucket), count))
    }

    /// Returns the indexes of the buckets that are not empty, and their counts.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let pages = self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_deref()?)));
        let counts = pages.flat_map(|(number, page)| (number * PAGE..).zip(page.iter().copied()));
        counts.filter(|(_, count)| *count > 0)
    }

    /// Moves the counts into a form that takes less memory, and empties this histogram.
    pub fn pack(&mut self) -> Packed {
        Packed(std::mem::take(self).counts().collect())
    }

    /// Adds the counts that [`Latencies::pack`] has returned.
    pub fn unpack(&mut self, Packed(counts): Packed) {
        for (bucket, count) in counts {
            self.add_to_bucket(bucket, count);
        }
    }

    /// Returns the number of latencies.
    pub fn total(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the histogram of the library `hdrhistogram` with these latencies, in nanoseconds.
    fn reference(latencies: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut reference = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).unwrap();
        latencies.into_iter().for_each(|latency| reference.saturating_record(latency));
        reference
    }

    /// Generates latencies up to the longest one, with short ones among them.
    fn latency() -> impl Strategy<Value = u64> {
        prop_oneof![0..LONGEST_NS, 0..1_000_000u64, 0..5000u64]
    }

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut latencies = Latencies::default();
        (1..=100_000u64).for_each(|us| latencies.record(us * 1000));
        let found = latencies.percentiles().unwrap();
        for (value, expected) in [(found.p50, 50_000.0), (found.p99, 99_000.0), (found.p999, 99_900.0)] {
            assert!((value / expected - 1.0).abs() < 1e-3, "{value} for {expected}");
        }
    }

    #[test]
    fn short_latencies_have_three_digits_from_a_microsecond_on() {
        for ns in [1, 7, 999, 1_001, 2_047, 2_503, 25_317, 999_999] {
            let mut latencies = Latencies::default();
            latencies.record(ns);
            let (found, exact) = (latencies.percentile(50.0).unwrap() * 1000.0, ns as f64);
            assert!((found - exact).abs() <= exact / 1000.0, "{found} for {exact} ns");
        }
    }

    #[test]
    fn memory_is_taken_where_there_are_latencies() {
        let mut latencies = Latencies::default();
        (0..1000).for_each(|number| latencies.record(25_000 + number));
        latencies.record(1_000_000_000);
        assert_eq!(latencies.pages.iter().flatten().count(), 4);
    }

    #[test]
    fn a_latency_beyond_the_range_counts_as_the_longest() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX);
        assert_eq!(latencies.total(), 1);
        assert!(latencies.buckets().eq([(lowest(bucket(LONGEST_NS)), 1)]));
    }

    proptest! {
        /// Checks that latencies are recorded as the library `hdrhistogram` would record them.
        #[test]
        fn what_is_recorded_is_what_the_library_would_have_recorded(
            latencies in prop::collection::vec(latency(), 0..50),
        ) {
            let mut ours = Latencies::default();
            latencies.iter().for_each(|latency| ours.record(*latency));
            prop_assert_eq!(ours.histogram(), reference(latencies));
        }

        #[test]
        fn percentiles_are_the_librarys(
            latencies in prop::collection::vec(latency(), 1..300),
            percentile in prop_oneof![Just(0.0), Just(100.0), 0.0..101.0],
        ) {
            let mut ours = Latencies::default();
            latencies.iter().for_each(|latency| ours.record(*latency));
            let theirs = reference(latencies);
            let at = |percentile| microseconds(theirs.value_at_percentile(percentile));
            let all = Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), p999: at(99.9) };
            prop_assert_eq!((ours.percentile(percentile), ours.percentiles()), (Some(at(percentile)), Some(all)));
        }
    }
}
