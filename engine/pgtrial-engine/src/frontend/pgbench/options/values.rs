//! The values of pgbench's options: what each may be, and pgbench's messages for the others.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::frontend::pgbench::messages;
use crate::frontend::pgbench::messages::Failure;
use ground::c_numbers;
use ground::options::Argument;
use tables::{PartitionMethod, Step};
use wire::statement::QueryMode;
use workload::pgbench::is_variable_name;

/// A whole number within `min..=max`, as `strtol` reads it, with white space around it; an empty text is 0.
pub fn integer(value: &Argument<'_>, min: u32, max: u32) -> Result<u32, Failure> {
    let (number, rest) = c_numbers::integer_prefix(value.text.as_bytes());
    if !c_numbers::trim_start(rest).is_empty() {
        return Err(invalid(value));
    }
    u32::try_from(number.unwrap_or(0))
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| Failure::error(format!("{} must be in range {min}..{max}", value.option())))
}

/// A number from 1 to 2147483647.
pub fn count(value: &Argument<'_>) -> Result<u32, Failure> {
    integer(value, 1, i32::MAX as u32)
}

/// Seconds from 0 to a day, with decimals.
pub fn seconds(value: &Argument<'_>) -> Result<Duration, Failure> {
    let seconds: f64 = value.text.parse().map_err(|_| invalid(value))?;
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err(Failure::error(format!("{} must be in range 0..86400 seconds", value.option())));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn invalid(value: &Argument<'_>) -> Failure {
    Failure::error(format!("invalid value \"{}\" for option {}", value.text, value.option()))
}

/// `simple`, `extended` or `prepared`.
pub fn query_mode(text: &str) -> Result<QueryMode, Failure> {
    named_mode(text).ok_or_else(|| Failure::error(format!("invalid query mode (-M): \"{text}\"")))
}

/// The query mode of this name.
pub fn named_mode(text: &str) -> Option<QueryMode> {
    [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared].into_iter().find(|mode| mode.name() == text)
}

/// The letters of `--init-steps`, spaces between them allowed.
pub fn init_steps(steps: &str) -> Result<String, Failure> {
    if steps.is_empty() {
        return Err(Failure::error("no initialization steps specified"));
    }
    match steps.chars().find(|letter| *letter != ' ' && Step::from_letter(*letter).is_none()) {
        Some(unknown) => Err(Failure::error(format!("unrecognized initialization step \"{unknown}\""))
            .detail("Allowed step characters are: \"dtgGvpf\".")),
        None => Ok(steps.to_owned()),
    }
}

/// `range` or `hash`, in any case of letters.
pub fn partition_method(text: &str) -> Result<PartitionMethod, Failure> {
    match text.to_ascii_lowercase().as_str() {
        "range" => Ok(PartitionMethod::Range),
        "hash" => Ok(PartitionMethod::Hash),
        _ => Err(Failure::error(format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""))),
    }
}

/// `NAME=VALUE` of a variable.
pub fn definition(text: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let Some((name, value)) = parts else {
        return Err(Failure::error(format!("invalid variable definition: \"{text}\"")));
    };
    if !is_variable_name(name.as_bytes()) {
        return Err(Failure::error(format!("option: invalid variable name: \"{name}\"")));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A latency limit in milliseconds, kept in whole microseconds; less than one microsecond is no limit.
pub fn latency_limit(text: &str) -> Result<Option<Duration>, Failure> {
    let ms = positive(text).ok_or_else(|| Failure::error(format!("invalid latency limit: \"{text}\"")))?;
    // The longest that fits the run's clock, 292 years.
    let us = ((ms * 1000.0) as u64).min(i64::MAX as u64 / 1000);
    Ok((us > 0).then(|| Duration::from_micros(us)))
}

/// The longest mean time between two transactions, 136 years.
const LONGEST_INTERVAL_NS: f64 = u32::MAX as f64 * 1e9;

/// A rate in transactions per second; the mean time between two in nanoseconds, at most that of the largest duration.
pub fn rate(text: &str) -> Result<f64, Failure> {
    let rate = positive(text).ok_or_else(|| Failure::error(format!("invalid rate limit: \"{text}\"")))?;
    Ok((1e9 / rate).min(LONGEST_INTERVAL_NS))
}

/// A share above 0 and up to 1.
pub fn sampling_rate(text: &str) -> Result<f64, Failure> {
    positive(text)
        .filter(|rate| *rate <= 1.0)
        .ok_or_else(|| Failure::error(format!("invalid sampling rate: \"{text}\"")))
}

/// The number of tries; `None` for any number.
pub fn max_tries(text: &str) -> Result<Option<u32>, Failure> {
    let tries = u32::try_from(c_numbers::atoi(text.as_bytes()))
        .map_err(|_| Failure::error(format!("invalid number of maximum tries: \"{text}\"")))?;
    Ok((tries > 0).then_some(tries))
}

fn positive(text: &str) -> Option<f64> {
    Some(c_numbers::atof(text)).filter(|number| *number > 0.0 && number.is_finite())
}

/// The seed that an option or the environment asks for: a number, `time` or `rand`. As pgbench does, it is reported at once.
pub fn random_seed(text: &str) -> Result<u64, Failure> {
    let seed = match text {
        "time" => seed_of_time(),
        "rand" => {
            use std::hash::{BuildHasher, Hasher};
            // The standard library seeds its hashers from the system's entropy.
            std::collections::hash_map::RandomState::new().build_hasher().finish()
        }
        number => c_numbers::unsigned(number).ok_or_else(|| {
            Failure::error(format!("unrecognized random seed option \"{number}\""))
                .detail("Expecting an unsigned integer, \"time\" or \"rand\".")
        })?,
    };
    messages::info(format!("setting random seed to {seed}"));
    Ok(seed)
}

/// Microseconds since 1970.
pub fn seed_of_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

/// Whether a valid seed is a number, the same on every machine.
pub fn is_number(seed: &str) -> bool {
    !matches!(seed, "time" | "rand")
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
            assert_eq!(
                integer(&of(text), 1, 9).unwrap_err().to_string(),
                "pgbench: error: -x/--things must be in range 1..9"
            );
        }
        for text in ["x", "7x", "7.5", "-", "--7"] {
            let expected = format!("pgbench: error: invalid value \"{text}\" for option -x/--things");
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
    fn steps_are_letters_and_spaces() {
        assert!(init_steps("d t gGvpf").is_ok());
        assert!(init_steps("").is_err());
        assert!(init_steps("dx").unwrap_err().to_string().contains("step \"x\""));
    }
}
