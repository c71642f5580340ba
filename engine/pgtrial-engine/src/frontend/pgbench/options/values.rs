//! Reads the values of options that only pgbench has, and of options for which pgbench has error messages of its own.

use crate::frontend::common::failure::Failure;
use crate::frontend::common::options::Seed;
use crate::frontend::common::values::{ValueError, named_mode, positive, seed_of_time};
use crate::frontend::pgbench::program::PGBENCH;
use ground::c_numbers;
use ground::random::entropy;
use tables::{InitStep, PartitionMethod};
use wire::statement::QueryMode;
use workload::pgbench::is_variable_name;

/// Reads the query mode `simple`, `extended` or `prepared`.
pub fn query_mode(text: &str) -> Result<QueryMode, Failure> {
    named_mode(text).ok_or_else(|| Failure::error(format!("invalid query mode (-M): \"{text}\"")))
}

/// Reads the value of `--init-steps`: letters, between which spaces are allowed.
pub fn init_steps(steps: &str) -> Result<String, Failure> {
    if steps.is_empty() {
        return Err(Failure::error("no initialization steps specified"));
    }
    match steps.chars().find(|letter| *letter != ' ' && InitStep::from_letter(*letter).is_none()) {
        Some(unknown) => Err(Failure::error(format!("unrecognized initialization step \"{unknown}\""))
            .detail("Allowed step characters are: \"dtgGvpf\".")),
        None => Ok(steps.to_owned()),
    }
}

/// Reads the partition method `range` or `hash`, in upper or lower case.
pub fn partition_method(text: &str) -> Result<PartitionMethod, Failure> {
    match text.to_ascii_lowercase().as_str() {
        "range" => Ok(PartitionMethod::Range),
        "hash" => Ok(PartitionMethod::Hash),
        _ => Err(Failure::error(format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""))),
    }
}

/// Reads the fraction of transactions to be logged, which is more than 0 and at most 1.
pub fn sampling_rate(text: &str) -> Result<f64, ValueError> {
    positive(text).filter(|rate| *rate <= 1.0).ok_or_else(|| ValueError::of("sampling rate", text))
}

/// Reads the definition `NAME=VALUE` of a variable.
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

/// Reads the random seed from an option or an environment variable: a number, `time` for the current time, or `rand`
/// for a random number. Prints the seed at once, as pgbench does.
pub fn random_seed(text: &str) -> Result<Seed, Failure> {
    let (number, is_given) = match text {
        "time" => (seed_of_time(), false),
        "rand" => (entropy(), false),
        digits => {
            let number = c_numbers::unsigned(digits).ok_or_else(|| {
                Failure::error(format!("unrecognized random seed option \"{digits}\""))
                    .detail("Expecting an unsigned integer, \"time\" or \"rand\".")
            })?;
            (number, true)
        }
    };
    PGBENCH.info(format_args!("setting random seed to {number}"));
    Ok(Seed { number, is_given })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_letters_and_spaces() {
        assert!(init_steps("d t gGvpf").is_ok());
        assert!(init_steps("").is_err());
        assert!(PGBENCH.describe(&init_steps("dx").unwrap_err()).contains("step \"x\""));
    }

    #[test]
    fn a_sampling_rate_is_a_fraction() {
        assert_eq!(sampling_rate("1").unwrap(), 1.0);
        for text in ["0", "-1", "1.01", "x", "inf", "nan"] {
            assert!(sampling_rate(text).is_err(), "{text}");
        }
    }
}
