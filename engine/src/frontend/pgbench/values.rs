//! The values of pgbench's options: what each may be, and the words in which the others are refused.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::messages::{self, Failure};
use crate::connection::statement::QueryMode;
use crate::load::Step;
use crate::program::pgbench::builtin::{self, Builtin};

/// A whole number within `min..=max`, with white space around it as C's `strtol` takes it; nothing counts as zero.
pub fn integer(text: &str, option: &str, min: u32, max: u32) -> Result<u32, Failure> {
    let digits = text.trim();
    let number = match digits.parse::<i64>() {
        Ok(number) => Some(number),
        Err(_) if digits.is_empty() => Some(0),
        Err(_) if is_whole_number(digits) => None,
        Err(_) => return Err(Failure::error(format!("invalid value \"{text}\" for option {option}"))),
    };
    number
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| Failure::error(format!("{option} must be in range {min}..{max}")))
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number from 1 to 2147483647.
pub fn count(text: &str, option: &str) -> Result<u32, Failure> {
    integer(text, option, 1, i32::MAX as u32)
}

/// The number of clients; raises the limit of open files where the system lets it.
pub fn client_count(text: &str) -> Result<usize, Failure> {
    let clients = count(text, "-c/--client")?;
    let needed = u64::from(clients) + 3;
    let system = |error: nix::Error| Failure::error(format!("getrlimit failed: {}", error.desc()));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(system)?;
    let advice = "Reduce number of clients, or use limit/ulimit to increase the system limit.";
    if hard < needed {
        let message = format!("need at least {needed} open files, but system limit is {hard}");
        return Err(Failure::error(message).hint(advice));
    }
    // Threads need a few files more than pgbench counts.
    let wanted = (needed + 2 * u64::from(clients)).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(|error| {
            let reason = error.desc();
            let message = format!("need at least {needed} open files, but couldn't raise the limit: {reason}");
            Failure::error(message).hint(advice)
        })?;
    }
    Ok(clients as usize)
}

/// `simple`, `extended` or `prepared`.
pub fn mode(text: &str) -> Result<QueryMode, Failure> {
    [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared]
        .into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| Failure::error(format!("invalid query mode (-M): \"{text}\"")))
}

/// Seconds from 0 to a day, with decimals.
pub fn warmup(text: &str) -> Result<Duration, Failure> {
    let seconds: f64 =
        text.parse().map_err(|_| Failure::error(format!("invalid value \"{text}\" for option --warmup")))?;
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err(Failure::error("--warmup must be in range 0..86400 seconds"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The letters of `--init-steps`, spaces between them allowed.
pub fn check_steps(steps: String) -> Result<String, Failure> {
    if steps.is_empty() {
        return Err(Failure::error("no initialization steps specified"));
    }
    match steps.chars().find(|letter| *letter != ' ' && Step::from_letter(*letter).is_none()) {
        Some(unknown) => Err(Failure::error(format!("unrecognized initialization step \"{unknown}\""))
            .detail("Allowed step characters are: \"dtgGvpf\".")),
        None => Ok(steps),
    }
}

/// The built-in script whose name starts with `name`.
pub fn script_named(name: &str) -> Result<&'static Builtin, Failure> {
    builtin::find(name).map_err(|message| Failure::error(message).plain(&builtin::listing()))
}

/// `NAME` or `NAME@WEIGHT`.
pub fn builtin_script(text: &str) -> Result<(&'static Builtin, u64), Failure> {
    let Some((name, weight)) = text.rsplit_once('@') else {
        return Ok((script_named(text)?, 1));
    };
    let number: i64 =
        weight.trim_start().parse().map_err(|_| Failure::error(format!("invalid weight specification: @{weight}")))?;
    let weight = u64::try_from(number)
        .ok()
        .filter(|weight| *weight <= i32::MAX as u64)
        .ok_or_else(|| Failure::error(format!("weight specification out of range (0 .. {}): {number}", i32::MAX)))?;
    Ok((script_named(name)?, weight))
}

/// The seed that an option or the environment asks for, which is told at once as pgbench does; without one, a seed of
/// the time, untold.
pub fn random_seed(text: Option<&str>) -> Result<u64, Failure> {
    let seed = match text {
        None | Some("time") => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            since.as_micros() as u64
        }
        Some("rand") => {
            use std::hash::{BuildHasher, Hasher};
            // The standard library seeds its hashers from the system's entropy.
            std::collections::hash_map::RandomState::new().build_hasher().finish()
        }
        Some(number) => scan_u64(number).ok_or_else(|| {
            Failure::error(format!("unrecognized random seed option \"{number}\""))
                .detail("Expecting an unsigned integer, \"time\" or \"rand\".")
        })?,
    };
    if text.is_some() {
        messages::info(format!("setting random seed to {seed}"));
    }
    Ok(seed)
}

/// As C's `scanf` reads `%lu`: white space before it, a sign that wraps, too much is the most.
fn scan_u64(text: &str) -> Option<u64> {
    let digits = text.trim_start();
    is_whole_number(digits).then(|| {
        let magnitude = digits.trim_start_matches(['-', '+']).parse().ok();
        match magnitude {
            Some(number) if digits.starts_with('-') => 0u64.wrapping_sub(number),
            Some(number) => number,
            None => u64::MAX,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(integer(" 7 ", "-x", 1, 9).unwrap(), 7);
        assert_eq!(integer("+7", "-x", 1, 9).unwrap(), 7);
        for text in ["", "0", "-1", "10", "99999999999999999999999999999999999999999999"] {
            assert_eq!(integer(text, "-x", 1, 9).unwrap_err().to_string(), "pgbench: error: -x must be in range 1..9");
        }
        for text in ["x", "7x", "7.5", "-", "--7"] {
            let expected = format!("pgbench: error: invalid value \"{text}\" for option -x");
            assert_eq!(integer(text, "-x", 1, 9).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn seeds_are_scanned_as_c_scans_them() {
        assert_eq!(scan_u64(" 42"), Some(42));
        assert_eq!(scan_u64("-1"), Some(u64::MAX));
        assert_eq!(scan_u64("99999999999999999999999"), Some(u64::MAX));
        for text in ["", "x", "42x", "42 ", "0x10", "-"] {
            assert_eq!(scan_u64(text), None, "{text}");
        }
    }

    #[test]
    fn steps_are_letters_and_spaces() {
        assert!(check_steps("d t gGvpf".to_owned()).is_ok());
        assert!(check_steps(String::new()).is_err());
        assert!(check_steps("dx".to_owned()).unwrap_err().to_string().contains("step \"x\""));
    }
}
