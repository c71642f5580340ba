//! The monotonic clock of a run, its unit, and the phases of a run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A time or a duration in nanoseconds. A time counts from the start of its [`Clock`], unless a function says otherwise.
pub type Nanos = u64;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// A duration in seconds.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}

/// The system's monotonic clock, counted from the start of this clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Nanos,
}

impl Clock {
    /// Starts a clock now.
    pub fn start() -> Self {
        Self { origin: monotonic() }
    }

    /// Returns the time since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        monotonic().wrapping_sub(self.origin)
    }

    /// Sleeps until `time`; returns at once if `time` is past.
    pub fn sleep_until(&self, time: Nanos) {
        while let Some(left) = time.checked_sub(self.now()).filter(|left| *left > 0) {
            std::thread::sleep(Duration::from_nanos(left));
        }
    }

    /// Converts `time` to the system's wall clock: the time since 1970-01-01 00:00 UTC. The two clocks are compared now.
    pub fn since_1970(&self, time: Nanos) -> Duration {
        let (now, wall) = self.both();
        if time > now { wall + Duration::from_nanos(time - now) } else { wall - Duration::from_nanos(now - time) }
    }

    /// Converts a wall clock time (since 1970) to this clock. Returns the current time if `time` is past.
    pub fn at_since_1970(&self, time: Duration) -> Nanos {
        let (now, wall) = self.both();
        now.saturating_add(nanos(time.saturating_sub(wall)))
    }

    /// Reads both clocks at the same time. Of three attempts it keeps the fastest, which is the most exact.
    fn both(&self) -> (Nanos, Duration) {
        let read = || {
            let before = self.now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (self.now() - before, before, wall)
        };
        let (took, before, wall) = read().min(read()).min(read());
        (before + took / 2, wall)
    }

    /// Converts `time` to the system's monotonic clock ([`monotonic`]).
    pub fn moment(&self, time: Nanos) -> Nanos {
        self.origin.saturating_add(time)
    }
}

/// Reads the system's monotonic clock. Unlike `Instant` it returns plain nanoseconds, which are cheap to compare and
/// subtract.
#[inline]
pub fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// A phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Warmup,
    Measure,
    /// After the measured phase: the clients finish the transactions that they have begun.
    Drain,
}

/// Converts a duration to nanoseconds. Durations that do not fit become a quarter of the largest [`Nanos`] (146 years),
/// so that they can still be added to a time.
pub fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_clocks_are_converted_into_each_other() {
        let clock = Clock::start();
        for ahead in [0, 1_000_000, 40 * SECOND] {
            let time = clock.now() + ahead;
            let back = clock.at_since_1970(clock.since_1970(time));
            // A clock that is being adjusted runs at most some parts in a thousand faster or slower. A time that has passed
            // meanwhile is converted to the current time.
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
