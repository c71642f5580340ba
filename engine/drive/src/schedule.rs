//! The phases of a run: warm-up, measured part, drain; each cut into seconds.

use std::time::Duration;

use ground::clock::{Nanos, Phase, SECOND, nanos};

/// When the phases begin, nanoseconds of the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub start: Nanos,
    pub measure: Nanos,
    /// The end of the measured part; `Nanos::MAX` if time does not limit it.
    pub end: Nanos,
}

impl Schedule {
    /// A run that starts at `start`.
    pub fn new(start: Nanos, warmup: Duration, measured: Option<Duration>) -> Self {
        let measure = start + nanos(warmup);
        Self { start, measure, end: measured.map_or(Nanos::MAX, |length| measure + nanos(length)) }
    }

    /// The first stretch of the run.
    pub fn first(&self) -> Stretch {
        let phase = if self.measure > self.start { Phase::Warmup } else { Phase::Measure };
        self.stretch(phase, self.start, 0)
    }

    /// The stretch that follows `stretch`.
    pub fn after(&self, stretch: &Stretch) -> Stretch {
        match stretch.phase {
            Phase::Warmup if stretch.ends >= self.measure => self.stretch(Phase::Measure, self.measure, 0),
            Phase::Measure if stretch.ends >= self.end => self.stretch(Phase::Drain, stretch.ends, 0),
            phase => self.stretch(phase, stretch.ends, stretch.second + 1),
        }
    }

    fn stretch(&self, phase: Phase, begins: Nanos, second: u32) -> Stretch {
        let limit = match phase {
            Phase::Warmup => self.measure,
            Phase::Measure => self.end,
            Phase::Drain => Nanos::MAX,
        };
        Stretch { phase, second, begins, ends: limit.min(begins + SECOND) }
    }
}

/// One second of a phase; the last one may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub phase: Phase,
    /// Counts from 0 in each phase.
    pub second: u32,
    pub begins: Nanos,
    pub ends: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(schedule: Schedule, count: usize) -> Vec<(Phase, u32, Nanos)> {
        let mut stretch = schedule.first();
        (0..count)
            .map(|_| {
                let current = stretch;
                stretch = schedule.after(&current);
                (current.phase, current.second, current.ends - current.begins)
            })
            .collect()
    }

    #[test]
    fn phases_are_cut_into_seconds_and_a_rest() {
        let schedule = Schedule::new(5, Duration::from_millis(1500), Some(Duration::from_secs(2)));
        let expected = [
            (Phase::Warmup, 0, SECOND),
            (Phase::Warmup, 1, SECOND / 2),
            (Phase::Measure, 0, SECOND),
            (Phase::Measure, 1, SECOND),
            (Phase::Drain, 0, SECOND),
            (Phase::Drain, 1, SECOND),
        ];
        assert_eq!(stretches(schedule, 6), expected);
    }

    #[test]
    fn without_limit_and_warm_up_everything_is_measured() {
        let schedule = Schedule::new(0, Duration::ZERO, None);
        assert!(stretches(schedule, 5).iter().all(|(phase, _, length)| *phase == Phase::Measure && *length == SECOND));
    }
}
