//! When the load begins.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The furthest that a start may be ahead: what is further is a mistake in the time or a clock that is wrong.
const FURTHEST: Duration = Duration::from_secs(60);

/// A start that is agreed upon with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// At this time since 1970.
    Instant(Duration),
    /// As a line on standard input says when all clients are ready.
    Told,
}

impl StartAt {
    /// From the option's text: Unix seconds, or `-`. The error is a sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        if text == "-" {
            return Ok(Self::Told);
        }
        instant(text).map(Self::Instant)
    }
}

/// A time to start at as Unix seconds with decimals, at most a minute ahead; it may be past. The error is a sentence.
pub fn instant(text: &str) -> Result<Duration, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = text.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let at =
        at.ok_or_else(|| format!("\"{text}\" is no time to start at: it takes Unix seconds, such as 1795270323.5"))?;
    match at.checked_sub(now) {
        Some(ahead) if ahead > FURTHEST => Err(format!(
            "the time to start at, {text}, is {:.1} s ahead of this machine's clock, and at most {} s are allowed; \
             are the clocks right?",
            ahead.as_secs_f64(),
            FURTHEST.as_secs()
        )),
        _ => Ok(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_time_of_the_past_or_the_next_minute_or_told() {
        assert_eq!(StartAt::read("-"), Ok(StartAt::Told));
        assert_eq!(StartAt::read("0"), Ok(StartAt::Instant(Duration::ZERO)));
        assert_eq!(instant(" 1700000000.25\r"), Ok(Duration::from_millis(1_700_000_000_250)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(instant(&(now + 30).to_string()).is_ok());
        let ahead = instant(&(now + 3600).to_string()).unwrap_err();
        assert!(ahead.contains("s ahead of this machine's clock, and at most 60 s are allowed"), "{ahead}");
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in ["", "soon", "-1", "nan", "inf", "1e400", "12:00", "--"] {
            assert!(StartAt::read(text).unwrap_err().contains("is no time to start at"), "{text}");
        }
    }
}
