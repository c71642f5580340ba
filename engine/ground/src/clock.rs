//! The run's clock: its unit, its reading, and the parts of a run that it separates.

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
pub fn monotonic() -> Nanos {
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

/// A length of time in the clock's unit.
pub fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

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
}
