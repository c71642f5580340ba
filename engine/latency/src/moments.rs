//! The count, mean, standard deviation and extremes of a latency, in microseconds, as pgbench computes them.

/// The sums from which the count, mean, standard deviation and extremes of a quantity are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    pub count: u64,
    pub min: f64,
    pub max: f64,
    pub sum: f64,
    pub sum_of_squares: f64,
}

impl Moments {
    /// Returns the sums for `count` values that have this mean, standard deviation, minimum and maximum.
    pub fn of(count: u64, mean: f64, stddev: f64, min: f64, max: f64) -> Self {
        let values = count as f64;
        Self { count, min, max, sum: values * mean, sum_of_squares: values * (stddev * stddev + mean * mean) }
    }

    /// Adds a value to the sums.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if self.count == 0 {
            (self.min, self.max) = (value, value);
        } else if value < self.min {
            self.min = value;
        } else if value > self.max {
            self.max = value;
        }
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }

    /// Adds the values of another sum.
    pub fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = if self.count == 0 { other.max } else { self.max.max(other.max) };
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// Returns the mean, or 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// Returns the standard deviation of the values, with divisor n as in pgbench.
    pub fn stddev(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.sum_of_squares / self.count as f64 - mean * mean).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation() {
        let mut moments = Moments::default();
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| moments.add(value));
        assert_eq!((moments.mean(), moments.stddev(), moments.min, moments.max), (5.0, 2.0, 2.0, 9.0));
    }

    #[test]
    fn figures_are_enough_to_merge() {
        let values = [2.0, 4.0, 4.0, 5.0, 7.0, 11.0];
        let sum = |values: &[f64]| {
            let mut moments = Moments::default();
            values.iter().for_each(|value| moments.add(*value));
            moments
        };
        let (mut parts, whole) = (Moments::default(), sum(&values));
        for part in [&values[..2], &values[2..]].map(sum) {
            parts.merge(&Moments::of(part.count, part.mean(), part.stddev(), part.min, part.max));
        }
        assert_eq!((parts.count, parts.min, parts.max), (6, 2.0, 11.0));
        assert!((parts.mean() - whole.mean()).abs() < 1e-12 && (parts.stddev() - whole.stddev()).abs() < 1e-12);
    }

    #[test]
    fn merging_nothing_changes_nothing() {
        let mut moments = Moments::default();
        moments.add(3.0);
        let before = moments;
        moments.merge(&Moments::default());
        assert_eq!(moments, before);
        let mut empty = Moments::default();
        empty.merge(&before);
        assert_eq!(empty, before);
    }
}
