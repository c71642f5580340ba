//! The monotonic clock of a run, its unit, and the phases of a run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A time or a duration in nanoseconds. A time counts from the start of its [`Clock`], unless a function says
/// otherwise.
pub type Nanos = u64;

/// A second in nanoseconds.
pub const SECOND: Nanos = 1_000_000_000;

/// The number of nanoseconds of a millisecond.
pub const MS: Nanos = 1_000_000;

/// Converts nanoseconds to seconds.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}

/// The system's monotonic clock, with its time counted from the moment at which this clock was started.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Nanos,
}

impl Clock {
    /// Starts a clock now.
    pub fn start() -> Self {
        Self { origin: monotonic() }
    }

    /// Returns the time since the clock was started.
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

    /// Reads this clock and the machine's clocks at the same moment. Of three attempts the fastest is returned, since
    /// it is the most exact.
    pub fn all(&self) -> Clocks {
        let read = || {
            let before = monotonic();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (monotonic() - before, before, wall)
        };
        let (took, before, wall) = read().min(read()).min(read());
        let monotonic = before + took / 2;
        Clocks { run: monotonic.wrapping_sub(self.origin), wall, monotonic }
    }

    /// Converts `time` of this clock to the time of the system's monotonic clock ([`monotonic`]).
    pub fn moment(&self, time: Nanos) -> Nanos {
        self.origin.saturating_add(time)
    }
}

/// The times that the clocks of a machine show at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// The time on the [`Clock`] of a run.
    pub run: Nanos,
    /// The time since 1970-01-01 00:00 UTC.
    pub wall: Duration,
    /// The time on the system's monotonic clock ([`monotonic`]).
    pub monotonic: Nanos,
}

impl Clocks {
    /// Converts `time` of the run's clock to the wall clock.
    pub fn since_1970(&self, time: Nanos) -> Duration {
        if time > self.run {
            self.wall + Duration::from_nanos(time - self.run)
        } else {
            self.wall.saturating_sub(Duration::from_nanos(self.run - time))
        }
    }
}

/// Reads the system's monotonic clock. Unlike `Instant`, the result is a plain number of nanoseconds, which is cheap to
/// compare and subtract.
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
    /// The phase after the measured part, in which the clients finish the transactions that they have begun.
    Drain,
}

/// Converts a duration to nanoseconds. A duration that does not fit becomes a quarter of the largest [`Nanos`] (146
/// years), so that it can still be added to a time.
pub fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_are_read_at_the_same_time() {
        let clock = Clock::start();
        let (before, clocks, after) = (clock.now(), clock.all(), clock.now());
        assert!((before..=after).contains(&clocks.run), "{before} {clocks:?} {after}");
        assert_eq!(clock.moment(clocks.run), clocks.monotonic);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        // A clock that is being adjusted runs at most some parts in a thousand faster or slower.
        assert!(wall.abs_diff(clocks.since_1970(clock.now())) < Duration::from_secs(1), "{wall:?} {clocks:?}");
    }

    #[test]
    fn a_time_of_the_run_is_as_far_from_now_by_the_wall_clock() {
        let clocks = Clocks { run: 7 * SECOND, wall: Duration::from_secs(1000), monotonic: 0 };
        let walls = [0, 7 * SECOND, 9 * SECOND].map(|time| clocks.since_1970(time).as_secs());
        assert_eq!(walls, [993, 1000, 1002]);
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
