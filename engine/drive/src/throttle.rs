//! The schedule of a load with a rate: transactions are to start at the moments of a Poisson process, whether or not
//! the server keeps up, so that its slowness is not hidden by clients that wait for it.

use ground::clock::Nanos;
use ground::random::Random;

/// One thread's share of the schedule.
pub struct Throttle {
    /// Mean time between two starts on this thread, nanoseconds.
    mean: f64,
    random: Random,
    /// The last start that was given out.
    last: Nanos,
}

impl Throttle {
    /// `interval_ns` is that of the engine, of which each of `jobs` threads has an equal share.
    pub fn new(interval_ns: f64, jobs: usize, random: Random) -> Self {
        Self { mean: interval_ns * jobs as f64, random, last: 0 }
    }

    /// The schedule begins.
    pub fn start(&mut self, now: Nanos) {
        self.last = now;
    }

    /// The next scheduled start: the waiting time is exponentially distributed (by inversion).
    pub fn next(&mut self) -> Nanos {
        let uniform = 1.0 - self.random.unit();
        self.last = self.last.saturating_add((-uniform.ln() * self.mean + 0.5) as Nanos);
        self.last
    }

    /// About how many starts lie between the last that was given out and `now`.
    pub fn backlog(&self, now: Nanos) -> u64 {
        (now.saturating_sub(self.last) as f64 / self.mean) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_come_at_the_rate_and_at_random() {
        let mut throttle = Throttle::new(500_000.0, 2, Random::seeded(1));
        throttle.start(1_000);
        let starts: Vec<_> = (0..10_000).map(|_| throttle.next()).collect();
        let gaps: Vec<_> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 1e6 - 1.0).abs() < 0.05, "{mean}");
        assert!((deviation / 1e6 - 1.0).abs() < 0.05, "{deviation}");
    }
}
