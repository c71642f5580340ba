//! Reads the values of options, and rejects invalid values. The messages about options that pgbench has are worded as
//! in pgbench.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ground::c_numbers;
use ground::options::Argument;
use thiserror::Error;
use wire::statement::QueryMode;

/// The longest time that an option accepts: one day, in seconds.
const LONGEST_S: f64 = 86_400.0;

/// The longest mean time between two transactions that a rate can ask for: 136 years, in nanoseconds.
const LONGEST_INTERVAL_NS: f64 = u32::MAX as f64 * 1e9;

/// The reason why the value of an option is rejected. Each message is a whole sentence.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ValueError {
    #[error("invalid value \"{text}\" for option {option}")]
    Invalid { text: String, option: String },
    #[error("invalid value \"{text}\" for option {option}: it must be {expected}")]
    Unexpected { text: String, option: String, expected: String },
    /// The value is out of range. `unit` is written after the range in the message; it may be empty.
    #[error("{option} must be in range {min}..{max}{unit}")]
    OutOfRange { option: String, min: u32, max: u32, unit: &'static str },
    /// The value is invalid. This is the form in which pgbench reports invalid values of some of its options.
    #[error("invalid {what}: \"{text}\"")]
    InvalidOf { what: &'static str, text: String },
}

impl ValueError {
    /// Makes the error for an invalid value. `expected` describes the values that the option accepts.
    pub fn unexpected(value: &Argument<'_>, expected: impl Into<String>) -> Self {
        Self::Unexpected { text: value.text.to_owned(), option: value.option(), expected: expected.into() }
    }

    fn invalid(value: &Argument<'_>) -> Self {
        Self::Invalid { text: value.text.to_owned(), option: value.option() }
    }

    fn of(what: &'static str, text: &str) -> Self {
        Self::InvalidOf { what, text: text.to_owned() }
    }
}

/// Reads a whole number from `min` to `max`, as C's `strtol` does: white space around the number is allowed, and an
/// empty text is 0.
pub fn integer(value: &Argument<'_>, min: u32, max: u32) -> Result<u32, ValueError> {
    let (number, rest) = c_numbers::integer_prefix(value.text.as_bytes());
    if !c_numbers::trim_start(rest).is_empty() {
        return Err(ValueError::invalid(value));
    }
    let number = u32::try_from(number.unwrap_or(0)).ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| ValueError::OutOfRange { option: value.option(), min, max, unit: "" })
}

/// Reads a whole number from 1 to 2147483647.
pub fn count(value: &Argument<'_>) -> Result<u32, ValueError> {
    integer(value, 1, i32::MAX as u32)
}

/// Reads a time from 0 to 86400 seconds, which may have decimals.
pub fn seconds(value: &Argument<'_>) -> Result<Duration, ValueError> {
    let seconds: f64 = value.text.parse().map_err(|_| ValueError::invalid(value))?;
    if !(0.0..=LONGEST_S).contains(&seconds) {
        let (option, max) = (value.option(), LONGEST_S as u32);
        return Err(ValueError::OutOfRange { option, min: 0, max, unit: " seconds" });
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a whole number from 1 to `max`. Used for options that pgbench does not have.
pub fn count_to(value: &Argument<'_>, max: u32) -> Result<u32, ValueError> {
    let number = value.text.trim().parse::<u32>().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| ValueError::unexpected(value, format!("a whole number from 1 to {max}")))
}

/// Reads a time from 0.001 to 86400 seconds, which may have decimals.
pub fn positive_seconds(value: &Argument<'_>) -> Result<Duration, ValueError> {
    let seconds = value.text.trim().parse::<f64>().ok().filter(|seconds| (0.001..=LONGEST_S).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| ValueError::unexpected(value, format!("a number of seconds from 0.001 to {LONGEST_S}")))
}

/// Reads a seed that is a whole number.
pub fn seed(value: &Argument<'_>) -> Result<u64, ValueError> {
    let seed = value.text.trim().parse();
    seed.map_err(|_| ValueError::unexpected(value, format!("a whole number from 0 to {}", u64::MAX)))
}

/// Reads the query mode `simple`, `extended` or `prepared`.
pub fn query_mode(value: &Argument<'_>) -> Result<QueryMode, ValueError> {
    named_mode(value.text).ok_or_else(|| ValueError::unexpected(value, "simple, extended or prepared"))
}

/// Returns the query mode with this name, or `None` if there is no such mode.
pub fn named_mode(text: &str) -> Option<QueryMode> {
    [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared].into_iter().find(|mode| mode.name() == text)
}

/// Reads a latency limit in milliseconds, and rounds it down to whole microseconds. Returns `None`, which is no limit,
/// if it is less than one microsecond.
pub fn latency_limit(text: &str) -> Result<Option<Duration>, ValueError> {
    let ms = positive(text).ok_or_else(|| ValueError::of("latency limit", text))?;
    // The longest time that the run's clock can represent is 292 years.
    let us = ((ms * 1000.0) as u64).min(i64::MAX as u64 / 1000);
    Ok((us > 0).then(|| Duration::from_micros(us)))
}

/// Reads a rate in transactions per second. Returns the mean time between two transactions in nanoseconds, which is at
/// most `LONGEST_INTERVAL_NS`.
pub fn rate(text: &str) -> Result<f64, ValueError> {
    let rate = positive(text).ok_or_else(|| ValueError::of("rate limit", text))?;
    Ok((1e9 / rate).min(LONGEST_INTERVAL_NS))
}

/// Reads the fraction of transactions to be logged, which is more than 0 and at most 1.
pub fn sampling_rate(text: &str) -> Result<f64, ValueError> {
    positive(text).filter(|rate| *rate <= 1.0).ok_or_else(|| ValueError::of("sampling rate", text))
}

/// Reads how often a transaction may be tried. Returns `None`, which is no limit, for 0.
pub fn max_tries(text: &str) -> Result<Option<u32>, ValueError> {
    let tries = u32::try_from(c_numbers::atoi(text.as_bytes()));
    let tries = tries.map_err(|_| ValueError::of("number of maximum tries", text))?;
    Ok((tries > 0).then_some(tries))
}

fn positive(text: &str) -> Option<f64> {
    Some(c_numbers::atof(text)).filter(|number| *number > 0.0 && number.is_finite())
}

/// Returns a seed made from the current time: the number of microseconds since 1970.
pub fn seed_of_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Argument<'_> {
        Argument::new("-x, --things=NUM", text)
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(integer(&of(" 7 "), 1, 9).unwrap(), 7);
        assert_eq!(integer(&of("+7"), 1, 9).unwrap(), 7);
        for text in ["", "0", "-1", "10", "99999999999999999999999999999999999999999999"] {
            assert_eq!(integer(&of(text), 1, 9).unwrap_err().to_string(), "-x/--things must be in range 1..9");
        }
        for text in ["x", "7x", "7.5", "-", "--7"] {
            let expected = format!("invalid value \"{text}\" for option -x/--things");
            assert_eq!(integer(&of(text), 1, 9).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn extreme_rates_and_limits_are_cut_to_what_a_clock_can_hold() {
        assert_eq!(rate("1e-300").unwrap(), LONGEST_INTERVAL_NS);
        assert_eq!(rate("250").unwrap(), 4e6);
        assert_eq!(rate("3e9").unwrap(), 1e9 / 3e9);
        assert_eq!(latency_limit("0.0001").unwrap(), None);
        assert!(latency_limit("1e300").unwrap().unwrap().as_nanos() < u64::MAX.into());
        for text in ["0", "-1", "x", "inf", "nan"] {
            assert!(rate(text).is_err() && latency_limit(text).is_err() && sampling_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_and_times_of_our_own_options_have_their_ranges() {
        let of = |text| Argument::new("--pool-timeout=SECONDS", text);
        assert_eq!(count_to(&of("5000"), 10_000), Ok(5000));
        assert!(count_to(&of("0"), 10_000_000).unwrap_err().to_string().contains("from 1 to 10000000"));
        assert!(count_to(&of("1e3"), 10_000).is_err());
        assert_eq!(positive_seconds(&of("0.2")), Ok(Duration::from_millis(200)));
        for text in ["0", "-1", "nan", "1e9", "x"] {
            assert!(positive_seconds(&of(text)).is_err(), "{text}");
        }
        assert_eq!(seed(&of(" 7 ")), Ok(7));
        assert!(seed(&of("-1")).unwrap_err().to_string().ends_with("a whole number from 0 to 18446744073709551615"));
    }
}
