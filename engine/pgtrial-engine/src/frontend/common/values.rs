//! Reads the values of options, and rejects invalid values. The messages about options that pgbench has are worded as
//! in pgbench.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ground::c_numbers;
use ground::options::Argument;
use thiserror::Error;
use wire::statement::QueryMode;

/// The longest time that an option accepts: one day, in seconds.
const LONGEST_S: f64 = 86_400.0;

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

    /// Makes the error for an invalid value, in the form in which pgbench reports it for some of its options.
    pub fn of(what: &'static str, text: &str) -> Self {
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

/// Reads a number that is greater than 0 and finite, as C's `atof` does. Returns `None` for any other text.
pub fn positive(text: &str) -> Option<f64> {
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
