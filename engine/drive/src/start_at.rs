//! Reads the option for a start time on which several engines have agreed, and converts it to the clock of a run.

use std::io;
use std::time::Duration;

use thiserror::Error;

use ground::clock::{Clock, Clocks, Nanos, nanos};

/// The furthest that a start may be ahead: a later one is a mistake in the time, or a wrong clock.
const FURTHEST: Duration = Duration::from_secs(60);

/// The prefix of a time in seconds of the machine's monotonic clock.
const MONOTONIC: &str = "monotonic:";

/// A start that is agreed upon with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    At(Moment),
    /// The start time is read from a line on standard input, once all clients are ready.
    Told,
}

/// A moment by a clock that the engines have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The time since 1970 by the wall clock.
    Wall(Duration),
    /// The time by the monotonic clock of the one machine that all engines run on. Nobody can set that clock.
    Monotonic(Duration),
}

/// The reason for which a load has no start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(
        "\"{0}\" is no time to start at: it takes Unix seconds, such as 1795270323.5, or \"{MONOTONIC}\" and seconds of \
         this machine's monotonic clock"
    )]
    NoTime(String),
    #[error(
        "the time to start at, {text}, is {:.1} s ahead of this machine's clock, and at most {} s are allowed; are the \
         clocks right?",
        .ahead.as_secs_f64(),
        FURTHEST.as_secs()
    )]
    TooFarAhead { text: String, ahead: Duration },
    /// The start time is past. This is an error only with slices, since all engines count their slices from that time.
    #[error(
        "the clients were ready {:.3} s after the time to start at, and slices count from it on all engines: name a later \
         one",
        .0.as_secs_f64()
    )]
    Past(Duration),
    #[error("could not read the time to start at from standard input: {0}")]
    Unread(#[from] io::Error),
    #[error("standard input ended before it said when to start (--start-at=-)")]
    Untold,
}

impl StartAt {
    /// Reads the option's text: a moment, or `-` for standard input.
    pub fn read(text: &str) -> Result<Self, StartError> {
        if text == "-" { Ok(Self::Told) } else { Moment::read(text, &Clock::start().all()).map(Self::At) }
    }
}

impl Moment {
    /// Reads Unix seconds with decimals, or `monotonic:` and seconds of that clock. The moment must be at most a minute
    /// ahead of `now`, and can be past.
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

    /// Returns how long ago the moment was; `None`: it lies ahead.
    pub fn late(self, now: &Clocks) -> Option<Duration> {
        let (at, now) = self.and_now(now);
        now.checked_sub(at)
    }

    /// Returns the moment as a time of the run's clock, or the present if the moment is past.
    pub fn by(self, now: &Clocks) -> Nanos {
        now.run.saturating_add(nanos(self.ahead(now)))
    }

    /// Returns the moment as the time since 1970, by the wall clock as it is now.
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

    /// Returns the moment and the present, both by the clock that the moment refers to.
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

    /// Clocks at 1,700,000,000 s since 1970 and 5,000 s of the monotonic clock, one second after the start of the run.
    const NOW: Clocks =
        Clocks { run: 1_000_000_000, wall: Duration::from_secs(1_700_000_000), monotonic: 5_000_000_000_000 };

    #[test]
    fn a_start_is_a_time_of_the_past_or_the_next_minute_or_told() {
        assert_eq!(StartAt::read("-").unwrap(), StartAt::Told);
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
            assert!(StartAt::read(text).unwrap_err().to_string().contains("is no time to start at"), "{text}");
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
