//! When the tasks of one application arrive, whether or not its pool keeps up.

use super::schedule::Nanos;
use crate::plan::{Arrival, PoolPlan};
use crate::program::random::Random;

const SECOND: f64 = 1e9;

/// The arrivals that are still to come.
pub struct Arrivals {
    arrival: Arrival,
    random: Random,
    start: Nanos,
    /// Tasks in all, and those that have arrived.
    tasks: u32,
    arrived: u32,
    /// Of the next one, seconds since the start.
    next_s: f64,
}

impl Arrivals {
    /// The tasks of one application.
    pub fn new(plan: &PoolPlan, random: Random) -> Self {
        Self { arrival: plan.arrival, random, start: 0, tasks: plan.tasks, arrived: 0, next_s: 0.0 }
    }

    /// The load begins.
    pub fn start(&mut self, now: Nanos) {
        self.start = now;
        self.next_s = self.distance();
    }

    /// When the next task arrives, if there is one.
    pub fn next(&self) -> Option<Nanos> {
        (self.arrived < self.tasks).then(|| self.start.saturating_add((self.next_s * SECOND + 0.5) as Nanos))
    }

    /// The number of the next task that has arrived by `now`, and when it did.
    pub fn take(&mut self, now: Nanos) -> Option<(u32, Nanos)> {
        let at = self.next().filter(|at| *at <= now)?;
        let number = self.arrived;
        self.arrived += 1;
        self.next_s = match self.arrival {
            // From the number, so that no error adds up.
            Arrival::Rate(rate) => f64::from(self.arrived) / rate,
            _ => self.next_s + self.distance(),
        };
        Some((number, at))
    }

    /// From one arrival, or the start, to the next: the first of a rate is at the start, of a Poisson process after an
    /// exponentially distributed time (by inversion).
    fn distance(&mut self) -> f64 {
        match self.arrival {
            Arrival::AtOnce | Arrival::Rate(_) => 0.0,
            Arrival::Poisson(rate) => -(1.0 - self.random.unit()).ln() / rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn times(arrival: Arrival, tasks: u32) -> Vec<Nanos> {
        let plan = PoolPlan { apps: 1, tasks, arrival, size: 1, timeout: Duration::from_secs(1), lifetime: None };
        let mut arrivals = Arrivals::new(&plan, Random::seeded(1));
        arrivals.start(1000);
        std::iter::from_fn(|| arrivals.take(Nanos::MAX)).map(|(_, at)| at).collect()
    }

    #[test]
    fn tasks_arrive_at_once_or_at_equal_distances() {
        assert_eq!(times(Arrival::AtOnce, 3), [1000; 3]);
        assert_eq!(times(Arrival::Rate(3.0), 4), [1000, 333_334_333, 666_667_667, 1_000_001_000]);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_its_deviation() {
        let times = times(Arrival::Poisson(500.0), 10_001);
        let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 2.0 - 1.0).abs() < 0.05, "{mean}");
        assert!((deviation / 2.0 - 1.0).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn none_arrives_before_its_time() {
        let plan = PoolPlan {
            apps: 1,
            tasks: 2,
            arrival: Arrival::Rate(1.0),
            size: 1,
            timeout: Duration::from_secs(1),
            lifetime: None,
        };
        let mut arrivals = Arrivals::new(&plan, Random::seeded(1));
        arrivals.start(0);
        assert_eq!((arrivals.take(5), arrivals.take(5)), (Some((0, 0)), None));
        assert_eq!(arrivals.next(), Some(1_000_000_000));
        assert_eq!((arrivals.take(1_000_000_000), arrivals.next()), (Some((1, 1_000_000_000)), None));
    }
}
