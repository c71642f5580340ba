//! The run's clock and its phases: warm-up, measured part, drain; each cut into seconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds since the engine started; cheap to compare and subtract.
pub type Nanos = u64;

/// The engine's clock: the system's monotonic one from an origin of our own.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Nanos,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { origin: monotonic() }
    }

    /// Time since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        monotonic().wrapping_sub(self.origin)
    }

    /// Waits for `time` on the processor of others.
    pub fn sleep_until(&self, time: Nanos) {
        while let Some(left) = time.checked_sub(self.now()).filter(|left| *left > 0) {
            std::thread::sleep(Duration::from_nanos(left));
        }
    }

    /// The time since 1970 that `time` is on the system's other clock, as that one runs now.
    pub fn since_1970(&self, time: Nanos) -> Duration {
        let (now, wall) = self.both();
        if time > now { wall + Duration::from_nanos(time - now) } else { wall - Duration::from_nanos(now - time) }
    }

    /// The reverse; what is past is now.
    pub fn at_since_1970(&self, time: Duration) -> Nanos {
        let (now, wall) = self.both();
        now.saturating_add(nanos(time.saturating_sub(wall)))
    }

    /// Both clocks read at one moment: of a few attempts the one that took the least time.
    fn both(&self) -> (Nanos, Duration) {
        let read = || {
            let before = self.now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (self.now() - before, before, wall)
        };
        let (took, before, wall) = read().min(read()).min(read());
        (before + took / 2, wall)
    }

    /// A time as the system's monotonic clock has it.
    pub fn moment(&self, time: Nanos) -> Nanos {
        self.origin.saturating_add(time)
    }
}

/// The system's monotonic clock. Unlike `Instant` it is plain nanoseconds: no checks, no splitting.
#[inline]
pub(super) fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Warmup,
    Measure,
    /// After the end of the measured part: transactions under way are finished.
    Drain,
}

/// When the phases begin, nanoseconds of the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub start: Nanos,
    pub measure: Nanos,
    /// The end of the measured part, if it is limited by time.
    pub end: Option<Nanos>,
}

impl Schedule {
    /// A run that starts at `start`.
    pub fn new(start: Nanos, warmup: Duration, measured: Option<Duration>) -> Self {
        let measure = start + nanos(warmup);
        Self { start, measure, end: measured.map(|length| measure + nanos(length)) }
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
            Phase::Measure if self.end.is_some_and(|end| stretch.ends >= end) => {
                self.stretch(Phase::Drain, stretch.ends, 0)
            }
            phase => self.stretch(phase, stretch.ends, stretch.second + 1),
        }
    }

    fn stretch(&self, phase: Phase, begins: Nanos, second: u32) -> Stretch {
        let limit = match phase {
            Phase::Warmup => self.measure,
            Phase::Measure => self.end.unwrap_or(Nanos::MAX),
            Phase::Drain => Nanos::MAX,
        };
        Stretch { phase, second, begins, ends: limit.min(begins + SECOND) }
    }
}

const SECOND: Nanos = 1_000_000_000;

/// One second of a phase; the last one may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub phase: Phase,
    /// Counts from 0 in each phase.
    pub second: u32,
    pub begins: Nanos,
    pub ends: Nanos,
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX / 4)
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
    fn the_two_clocks_are_converted_into_each_other() {
        let clock = Clock::start();
        for ahead in [0, 1_000_000, 40 * SECOND] {
            let time = clock.now() + ahead;
            let back = clock.at_since_1970(clock.since_1970(time));
            // A clock that is being adjusted runs at most some parts in a thousand faster or slower. What is past by now,
            // as anything may be that was a moment ahead, is now.
            let (least, most) = (time.saturating_sub(SECOND), time.max(clock.now()) + SECOND);
            assert!((least..most).contains(&back), "{back} {time}");
        }
        let (before, past) = (clock.now(), clock.at_since_1970(Duration::from_secs(5)));
        assert!((before..=clock.now()).contains(&past));
    }

    #[test]
    fn a_sleep_ends_at_its_time_and_not_before() {
        let clock = Clock::start();
        let at = clock.now() + 1_500_000;
        clock.sleep_until(at);
        assert!(clock.now() >= at);
        clock.sleep_until(at);
    }

    #[test]
    fn without_limit_and_warm_up_everything_is_measured() {
        let schedule = Schedule::new(0, Duration::ZERO, None);
        assert!(stretches(schedule, 5).iter().all(|(phase, _, length)| *phase == Phase::Measure && *length == SECOND));
    }
}
