//! Reads the option `--start-at`, which names a start time on which several engines have agreed, and converts the time
//! to the clock of a run.

use std::io;
use std::time::Duration;

use thiserror::Error;

use ground::clock::{Clock, Clocks, Nanos, nanos};

/// The longest time from now to the start that is accepted. A later start is a mistake in the option, or a clock is
/// wrong.
const FURTHEST: Duration = Duration::from_secs(60);

/// The prefix of a start time that is given in seconds of the machine's monotonic clock.
const MONOTONIC: &str = "monotonic:";

/// A start time on which several engines have agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    At(Moment),
    /// The start time is read from a line on standard input, once all clients are ready.
    StandardInput,
}

/// A moment on a clock that all engines of the run can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The time since 1970 by the wall clock.
    Wall(Duration),
    /// The time by the monotonic clock, if all engines run on the same machine. Nobody can set this clock.
    Monotonic(Duration),
}

/// The error for which a load cannot start at the planned time.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(
        "\"{0}\" is not a time to start at: give Unix seconds, such as 1795270323.5, or \"{MONOTONIC}\" and seconds of \
         this machine's monotonic clock"
    )]
    NoTime(String),
    #[error(
        "the time to start at, {text}, is {:.1} s ahead of this machine's clock, and at most {} s are allowed: check \
         that time and the machines' clocks",
        .ahead.as_secs_f64(),
        FURTHEST.as_secs()
    )]
    TooFarAhead { text: String, ahead: Duration },
    /// The start time is past. This is an error only if several engines take turns in slices of time, since all engines
    /// count their slices from the start time.
    #[error(
        "the clients were ready {:.3} s after the time to start at, from which all engines count their slices: give a \
         later time",
        .0.as_secs_f64()
    )]
    Past(Duration),
    #[error("could not read the time to start at from standard input: {0}")]
    Unread(#[from] io::Error),
    #[error(
        "standard input ended before a whole line with the time to start at (--start-at=-): write the time and a line \
         feed after it"
    )]
    InputEnded,
}

impl StartAt {
    /// Reads the value of the option `--start-at`: a moment, or `-` for standard input.
    pub fn read(text: &str) -> Result<Self, StartError> {
        if text == "-" { Ok(Self::StandardInput) } else { Moment::read(text, &Clock::start().all()).map(Self::At) }
    }
}

impl Moment {
    /// Reads a moment: Unix seconds with decimals, or `monotonic:` and seconds of the monotonic clock. The moment must
    /// be at most a minute later than `now`, and can be past.
    pub fn read(text: &str, now: &Clocks) -> Result<Self, StartError> {
        let text = text.trim();
        let (seconds, moment): (_, fn(Duration) -> Self) = match text.strip_prefix(MONOTONIC) {
            Some(seconds) => (seconds, Self::Monotonic),
            None => (text, Self::Wall),
        };
        let at = seconds.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let at = at.map(moment).ok_or_else(|| StartError::NoTime(text.to_owned()))?;
        match at.ahead(now) {
            ahead if ahead > FURTHEST => Err(StartError::TooFarAhead { text: text.to_owned(), ahead }),
            _ => Ok(at),
        }
    }

    /// Returns how long ago the moment was, or `None` if it is still to come.
    pub fn late(self, now: &Clocks) -> Option<Duration> {
        let (at, now) = self.and_now(now);
        now.checked_sub(at)
    }

    /// Returns the moment as a time of the run's clock. If the moment is past, returns the current time.
    pub fn by(self, now: &Clocks) -> Nanos {
        now.run.saturating_add(nanos(self.ahead(now)))
    }

    /// Returns the moment as the time since 1970, by what the wall clock shows now.
    pub fn since_1970(self, now: &Clocks) -> Duration {
        match self {
            Self::Wall(at) => at,
            Self::Monotonic(_) => (now.wall + self.ahead(now)).saturating_sub(self.late(now).unwrap_or_default()),
        }
    }

    /// Returns the time until the moment; 0 if it is past.
    fn ahead(self, now: &Clocks) -> Duration {
        let (at, now) = self.and_now(now);
        at.saturating_sub(now)
    }

    /// Returns the moment and the current time, both by the clock on which the moment is given.
    fn and_now(self, now: &Clocks) -> (Duration, Duration) {
        match self {
            Self::Wall(at) => (at, now.wall),
            Self::Monotonic(at) => (at, Duration::from_nanos(now.monotonic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks that show 1,700,000,000 s since 1970, and 5,000 s on the monotonic clock, one second after the start of
    /// the run.
    const NOW: Clocks =
        Clocks { run: 1_000_000_000, wall: Duration::from_secs(1_700_000_000), monotonic: 5_000_000_000_000 };

    #[test]
    fn a_start_is_a_time_of_the_past_or_the_next_minute_or_on_standard_input() {
        assert_eq!(StartAt::read("-").unwrap(), StartAt::StandardInput);
        assert_eq!(StartAt::read("0").unwrap(), StartAt::At(Moment::Wall(Duration::ZERO)));
        assert_eq!(StartAt::read("monotonic:0.5").unwrap(), StartAt::At(Moment::Monotonic(Duration::from_millis(500))));
        let quarter = Moment::Wall(Duration::from_millis(1_700_000_000_250));
        assert_eq!(Moment::read(" 1700000000.25\r", &NOW).unwrap(), quarter);
        for (prefix, now) in [("", 1_700_000_000), (MONOTONIC, 5_000)] {
            assert!(Moment::read(&format!("{prefix}{}", now + 60), &NOW).is_ok());
            let ahead = Moment::read(&format!("{prefix}{}", now + 3600), &NOW).unwrap_err().to_string();
            assert!(
                ahead.contains("is 3600.0 s ahead of this machine's clock, and at most 60 s are allowed"),
                "{ahead}"
            );
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in ["", "soon", "-1", "nan", "inf", "1e400", "12:00", "--", "monotonic:", "monotonic:-1", "monotonic"]
        {
            assert!(StartAt::read(text).unwrap_err().to_string().contains("is not a time to start at"), "{text}");
        }
    }

    #[test]
    fn both_clocks_name_the_same_moment() {
        for (text, monotonic) in [("1700000040", "monotonic:5040"), ("1699999000", "monotonic:4000")] {
            let moments = [text, monotonic].map(|text| Moment::read(text, &NOW).unwrap());
            let [wall, monotonic] = moments.map(|at| (at.by(&NOW), at.late(&NOW), at.since_1970(&NOW)));
            assert_eq!(wall, monotonic);
        }
        let ahead = Moment::Monotonic(Duration::from_secs(5_040));
        assert_eq!((ahead.by(&NOW), ahead.late(&NOW)), (41_000_000_000, None));
        let past = Moment::Monotonic(Duration::from_secs(4_000));
        assert_eq!((past.by(&NOW), past.late(&NOW)), (1_000_000_000, Some(Duration::from_secs(1_000))));
    }
}
