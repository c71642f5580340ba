//! Durations of a simulated run, each known within bounds, and their comparison with histograms, moments and percentiles
//! that the engine has computed.

use super::ended::Bounds;
use ground::clock::Nanos;
use latency::{Latencies, Moments};

/// The relative error that sums of floating-point numbers may have.
const ROUNDING: f64 = 1e-9;

/// Durations in nanoseconds, each of which is known within bounds.
pub struct Distribution {
    /// The least durations that are possible, in their order.
    least: Vec<Nanos>,
    /// The greatest durations that are possible, in their order.
    most: Vec<Nanos>,
}

impl Distribution {
    pub fn new(bounds: impl Iterator<Item = Bounds>) -> Self {
        let (mut least, mut most): (Vec<_>, Vec<_>) = bounds.map(|bounds| (bounds.least, bounds.most)).unzip();
        least.sort_unstable();
        most.sort_unstable();
        Self { least, most }
    }

    /// Returns the bounds of the number of durations above `limit`.
    pub fn above(&self, limit: Nanos) -> Bounds {
        let above = |sorted: &[Nanos]| (sorted.len() - sorted.partition_point(|duration| *duration <= limit)) as u64;
        Bounds { least: above(&self.least), most: above(&self.most) }
    }

    /// Describes how a histogram differs from the histogram of these durations. Returns `None` if it does not: the
    /// shortest latency lies in the bucket of the shortest duration, and so on up to the longest.
    pub fn differs_from(&self, latencies: &Latencies) -> Option<String> {
        let total = latencies.total();
        if total != self.least.len() as u64 {
            return Some(format!("{total} latencies instead of {}", self.least.len()));
        }
        let mut bounds = self.least.iter().zip(&self.most);
        for (lowest, count) in latencies.buckets() {
            let highest = highest(lowest);
            for (least, most) in bounds.by_ref().take(count as usize) {
                if highest < *least || *most < lowest {
                    return Some(format!("a latency from {lowest} to {highest} ns instead of {least} to {most} ns"));
                }
            }
        }
        None
    }

    /// Describes how the percentiles of a histogram differ from those of these durations, beyond the resolution of the
    /// histogram.
    pub fn differs_from_percentiles(&self, latencies: &Latencies) -> Option<String> {
        let Some(found) = latencies.percentiles() else {
            return (!self.least.is_empty()).then(|| "there are no percentiles".to_owned());
        };
        let found = [(50.0, found.p50), (90.0, found.p90), (95.0, found.p95), (99.0, found.p99), (99.9, found.p999)];
        found.into_iter().find_map(|(percentile, us)| {
            // A percentile is the duration that this share of all durations does not exceed. Where the product of share
            // and number is an integer, the library may round it up to the next one.
            let product = percentile / 100.0 * self.least.len() as f64;
            let [rank, last] = [product - 1e-6, product + 1e-6].map(|rank| rank.ceil().max(1.0) as usize);
            let (least, most) = (self.least.get(rank - 1)?, self.most.get(last.min(self.most.len()) - 1)?);
            let ns = us * 1000.0;
            let is_right = ns >= *least as f64 - 1.0 && ns <= highest(*most) as f64 + 1.0;
            (!is_right).then(|| format!("percentile {percentile} is {ns} ns instead of {least} to {most} ns"))
        })
    }

    /// Describes how moments, in microseconds, differ from those of these durations.
    pub fn differs_from_moments(&self, moments: &Moments) -> Option<String> {
        let us = |ns: &Nanos| *ns as f64 / 1000.0;
        let count = self.least.len();
        let sum = |durations: &[Nanos]| durations.iter().map(us).sum::<f64>();
        let squares = |durations: &[Nanos]| durations.iter().map(|ns| us(ns).powi(2)).sum::<f64>();
        let is_within = |value: f64, least: f64, most: f64| {
            value >= least - ROUNDING * (1.0 + least.abs()) && value <= most + ROUNDING * (1.0 + most.abs())
        };
        let of =
            |of: fn(&[Nanos]) -> Option<&Nanos>| [&self.least, &self.most].map(|sorted| of(sorted).map_or(0.0, us));
        let checks = [
            ("sum", moments.sum, [sum(&self.least), sum(&self.most)]),
            ("sum of squares", moments.sum_of_squares, [squares(&self.least), squares(&self.most)]),
            ("minimum", moments.min, of(<[Nanos]>::first)),
            ("maximum", moments.max, of(<[Nanos]>::last)),
        ];
        if moments.count != count as u64 {
            return Some(format!("{} values instead of {count}", moments.count));
        }
        checks.into_iter().find_map(|(what, value, [least, most])| {
            (!is_within(value, least, most)).then(|| format!("the {what} is {value} instead of {least} to {most}"))
        })
    }

    /// Describes how the totals of a client differ from these durations: its number of transactions, the sum of their
    /// times, and the shortest and the longest of them.
    pub fn differs_from_totals(&self, count: u64, sum: Nanos, extremes: Option<(Nanos, Nanos)>) -> Option<String> {
        let (least, most): (Nanos, Nanos) = (self.least.iter().sum(), self.most.iter().sum());
        if count != self.least.len() as u64 || !(least..=most).contains(&sum) {
            let expected = self.least.len();
            return Some(format!("{count} transactions in {sum} ns instead of {expected} in {least} to {most} ns"));
        }
        let (shortest, longest) = extremes?;
        let of = |of: fn(&[Nanos]) -> Option<&Nanos>| {
            let [least, most] = [&self.least, &self.most].map(|sorted| of(sorted).copied().unwrap_or(0));
            Bounds { least, most }
        };
        let (first, last) = (of(<[Nanos]>::first), of(<[Nanos]>::last));
        let is_right = first.contains(shortest) && last.contains(longest);
        (!is_right).then(|| format!("from {shortest} to {longest} ns instead of from {first:?} to {last:?}"))
    }
}

/// Returns the highest latency in the bucket to which `ns` belongs. A bucket has three significant digits: each doubling
/// from 2^11 on is divided into 2^10 buckets.
fn highest(ns: Nanos) -> Nanos {
    let width = 1 << (Nanos::BITS - ns.leading_zeros()).saturating_sub(11);
    ns - ns % width + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(bounds: &[(Nanos, Nanos)]) -> Distribution {
        Distribution::new(bounds.iter().map(|(least, most)| Bounds { least: *least, most: *most }))
    }

    fn recorded(latencies: &[Nanos]) -> (Latencies, Moments) {
        let (mut histogram, mut moments) = (Latencies::default(), Moments::default());
        for ns in latencies {
            histogram.record(*ns);
            moments.add(*ns as f64 / 1000.0);
        }
        (histogram, moments)
    }

    fn differs(distribution: &Distribution, latencies: &[Nanos]) -> [bool; 3] {
        let (histogram, moments) = recorded(latencies);
        [
            distribution.differs_from(&histogram).is_some(),
            distribution.differs_from_percentiles(&histogram).is_some(),
            distribution.differs_from_moments(&moments).is_some(),
        ]
    }

    #[test]
    fn a_histogram_within_the_bounds_does_not_differ() {
        let truth = distribution(&[(5_000_000, 5_000_000), (1_000, 1_200), (70_000, 90_000)]);
        assert_eq!(differs(&truth, &[1_100, 80_000, 5_000_000]), [false; 3]);
        assert_eq!(differs(&distribution(&[]), &[]), [false; 3]);
    }

    #[test]
    fn a_latency_outside_of_its_bounds_is_found() {
        let truth = distribution(&[(5_000_000, 5_000_000), (1_000, 1_200), (70_000, 90_000)]);
        assert_eq!(differs(&truth, &[1_100, 100_000, 5_000_000]), [true; 3]);
        assert_eq!(differs(&truth, &[1_100, 5_000_000]), [true; 3]);
        assert_eq!(differs(&truth, &[1_100, 80_000, 50_000_000]), [true; 3]);
    }

    #[test]
    fn totals_are_compared_with_their_sum_and_extremes() {
        let truth = distribution(&[(10, 20), (100, 100)]);
        assert_eq!(truth.differs_from_totals(2, 115, Some((15, 100))), None);
        assert!(truth.differs_from_totals(2, 131, Some((31, 100))).is_some());
        assert!(truth.differs_from_totals(2, 115, Some((15, 115))).is_some());
        assert!(truth.differs_from_totals(1, 115, Some((15, 100))).is_some());
    }

    #[test]
    fn durations_above_a_limit_are_counted_with_their_bounds() {
        let truth = distribution(&[(10, 20), (100, 100), (30, 40)]);
        assert_eq!((truth.above(15), truth.above(100)), (Bounds { least: 2, most: 3 }, Bounds::default()));
    }
}
