//! The options for runs in which several engines (processes of pgtrial-engine) take part: with `--shard` each engine
//! runs a share of one load, and with `--slice` engines with different loads take turns in slices of time.

use std::time::Duration;

use drive::slices::{SHORTEST, Slices};
use ground::clock::{Nanos, SECOND, nanos, seconds};
use ground::shard::Shard;
use thiserror::Error;

/// The longest slice of time, after which the next engine has its turn, that the options allow: one hour.
const LONGEST: Duration = Duration::from_secs(3600);

/// The reason why the options `--shard` or `--slice` are rejected. Each message is a whole sentence.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SharingError {
    #[error(
        "--shard needs {0} with a number that is the same for all shards of the run, since all of them derive their \
         random values from it"
    )]
    NoSeed(&'static str),
    #[error("invalid value \"{text}\" for option {option}: it must be I/N, {explained}")]
    Part { text: String, option: &'static str, explained: &'static str },
    #[error(
        "--shard={shard}: {total} {what} cannot be shared out among {} shards, since each shard needs at least one: \
         use fewer shards, or more {what}", .shard.of
    )]
    TooFew { shard: Shard, total: usize, what: &'static str },
    #[error("invalid value \"{0}\" for option --slice: it must be a time with its unit, such as 250ms or 1s")]
    Length(String),
    #[error(
        "--slice={0} is out of range: a slice must be from {shortest} ms to {longest} s long (transactions that end \
         late would take up most of a shorter slice)",
        shortest = SHORTEST.as_millis(),
        longest = LONGEST.as_secs()
    )]
    LengthOutOfRange(String),
    #[error(
        "invalid value \"{0}\" for option --slice-seed: it must be a whole number from 0 to {most}", most = u64::MAX
    )]
    Seed(String),
    #[error(
        "the options --slice, --slice-of, --slice-seed and --start-at must be given together; missing: {}",
        .0.join(", ")
    )]
    Incomplete(Vec<&'static str>),
    #[error(
        "{option}={time_s} does not consist of whole rounds of slices (slices per round: {engines}, of {slice_s} s \
         each): the nearest value that does is {nearest_s}"
    )]
    Rounds { option: &'static str, time_s: f64, engines: usize, slice_s: f64, nearest_s: f64 },
}

/// Returns the error for a load that several engines share without a given seed. `option` is the name of the option
/// that sets the seed.
pub fn needs_seed(option: &'static str) -> SharingError {
    SharingError::NoSeed(option)
}

/// Reads the value of `--shard`: `I/N`, where this engine runs share number I of a load that N engines share.
pub fn shard(text: &str) -> Result<Shard, SharingError> {
    part(text, "--shard", "the number of this shard and the number of all shards, such as 2/4 for the second of four")
}

/// Reads the value of `--slice-of`: `I/N`, where this engine has number I among the N engines that take turns.
pub fn slice_part(text: &str) -> Result<Shard, SharingError> {
    part(
        text,
        "--slice-of",
        "the number of this engine and the number of all engines, such as 1/2 for the first of two",
    )
}

/// Reads a value `I/N`, where I is a number from 1 to N. `explained` says in the error message what I and N are.
fn part(text: &str, option: &'static str, explained: &'static str) -> Result<Shard, SharingError> {
    let number = |digits: &str| digits.parse::<usize>().ok().filter(|number| *number > 0);
    let numbers = text.trim().split_once('/').and_then(|(index, of)| Some((number(index)?, number(of)?)));
    match numbers {
        Some((index, of)) if index <= of => Ok(Shard { index: index - 1, of }),
        _ => Err(SharingError::Part { text: text.to_owned(), option, explained }),
    }
}

/// Checks that each engine gets at least one of the `total` clients, threads or tasks that are shared out among all
/// engines. `what` is the word for the clients, threads or tasks in the error message.
pub fn check_enough(shard: Shard, total: usize, what: &'static str) -> Result<(), SharingError> {
    if total >= shard.of { Ok(()) } else { Err(SharingError::TooFew { shard, total, what }) }
}

/// The options of slices of time, in which engines with different loads take turns. A field is `None` if its option was
/// not given.
#[derive(Debug, Clone, Copy, Default)]
pub struct SliceOptions {
    pub length: Option<Nanos>,
    pub part: Option<Shard>,
    pub seed: Option<u64>,
}

/// The length of the warm-up or of the measured part, with the option that sets it. `unit` is the smallest step of this
/// option, such as one second. If the length is rejected, the proposed length is a multiple of it.
pub struct Length {
    pub option: &'static str,
    pub time: Duration,
    pub unit: Nanos,
}

/// Reads the value of `--slice`, the length of a slice: a number with the unit `ms` or `s`. Returns nanoseconds.
pub fn slice_length(text: &str) -> Result<Nanos, SharingError> {
    let scale = |number: &str, unit: f64| Some(number.trim().parse::<f64>().ok()? * unit);
    let trimmed = text.trim();
    let found = match (trimmed.strip_suffix("ms"), trimmed.strip_suffix('s')) {
        (Some(number), _) => scale(number, 1e6),
        (None, Some(number)) => scale(number, 1e9),
        (None, None) => None,
    };
    let length = found.filter(|length| length.is_finite()).ok_or_else(|| SharingError::Length(text.to_owned()))?;
    let is_in_range = (nanos(SHORTEST) as f64..=nanos(LONGEST) as f64).contains(&length);
    if is_in_range { Ok(length as Nanos) } else { Err(SharingError::LengthOutOfRange(trimmed.to_owned())) }
}

/// Reads the value of `--slice-seed`, the seed of the random order in which engines take turns.
pub fn slice_seed(text: &str) -> Result<u64, SharingError> {
    text.trim().parse().map_err(|_| SharingError::Seed(text.to_owned()))
}

impl SliceOptions {
    /// Returns this engine's slices of time, or `None` if the options request no slices. `has_start` is true if
    /// `--start-at` is given. Each of `lengths` (the warm-up and the measured part) must consist of whole rounds, in
    /// which each engine has one slice.
    pub fn settle(&self, has_start: bool, lengths: &[Length]) -> Result<Option<Slices>, SharingError> {
        let given = [
            ("--slice", self.length.is_some()),
            ("--slice-of", self.part.is_some()),
            ("--slice-seed", self.seed.is_some()),
            ("--start-at", has_start),
        ];
        if given[..3].iter().all(|(_, is_given)| !is_given) {
            return Ok(None);
        }
        let (Some(length), Some(Shard { index, of }), Some(seed), true) =
            (self.length, self.part, self.seed, has_start)
        else {
            let missing = given.iter().filter(|(_, is_given)| !is_given).map(|(option, _)| *option).collect();
            return Err(SharingError::Incomplete(missing));
        };
        let slices = Slices { length, index, of, seed };
        lengths.iter().try_for_each(|length| check_length(&slices, length))?;
        Ok(Some(slices))
    }
}

/// Checks that the warm-up or the measured part consists of whole rounds of slices, in which each engine has one slice.
/// The error message proposes the nearest length that does.
fn check_length(slices: &Slices, length: &Length) -> Result<(), SharingError> {
    let (round, time) = (slices.round(), nanos(length.time));
    if time % round == 0 {
        return Ok(());
    }
    let step = round.saturating_mul(length.unit / greatest_common_divisor(round, length.unit));
    let nearest = ((time + step / 2) / step).max(1) * step;
    Err(SharingError::Rounds {
        option: length.option,
        time_s: seconds(time),
        engines: slices.of,
        slice_s: seconds(slices.length),
        nearest_s: seconds(nearest),
    })
}

fn greatest_common_divisor(one: Nanos, other: Nanos) -> Nanos {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// The value of [`Length::unit`] for an option that can be set only in whole seconds.
pub const WHOLE_SECONDS: Nanos = SECOND;

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(length: &str, part: &str, warmup: u64, time: u64) -> Result<Option<Slices>, SharingError> {
        let options = SliceOptions {
            length: Some(slice_length(length)?),
            part: Some(slice_part(part)?),
            seed: Some(slice_seed("7")?),
        };
        let length = |option, time, unit| Length { option, time: Duration::from_millis(time), unit };
        options.settle(true, &[length("--warmup", warmup, 1), length("-T", time, WHOLE_SECONDS)])
    }

    #[test]
    fn slices_are_part_of_rounds_and_these_of_the_load() {
        let slices = settled("250ms", "2/4", 1000, 5000).unwrap().unwrap();
        assert_eq!(slices, Slices { length: 250_000_000, index: 1, of: 4, seed: 7 });
        assert_eq!(settled("0.01s", "1/1", 0, 1000).unwrap().unwrap().length, 10_000_000);
        for (length, part, message) in [
            (
                "250ms",
                "1/3",
                "-T=5 does not consist of whole rounds of slices (slices per round: 3, of 0.25 s each): the nearest \
                 value that does is 6",
            ),
            (
                "100s",
                "1/1",
                "-T=5 does not consist of whole rounds of slices (slices per round: 1, of 100 s each): the nearest \
                 value that does is 100",
            ),
            (
                "9ms",
                "1/2",
                "--slice=9ms is out of range: a slice must be from 10 ms to 3600 s long (transactions that end late \
                 would take up most of a shorter slice)",
            ),
            (
                "250",
                "1/2",
                "invalid value \"250\" for option --slice: it must be a time with its unit, such as 250ms or 1s",
            ),
            (
                "nans",
                "1/2",
                "invalid value \"nans\" for option --slice: it must be a time with its unit, such as 250ms or 1s",
            ),
            (
                "1s",
                "3/2",
                "invalid value \"3/2\" for option --slice-of: it must be I/N, the number of this engine and the number \
                 of all engines, such as 1/2 for the first of two",
            ),
        ] {
            assert_eq!(settled(length, part, 0, 5000).unwrap_err().to_string(), message);
        }
        let refused = settled("250ms", "1/2", 700, 5000).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--warmup=0.7 does not consist of whole rounds of slices (slices per round: 2, of 0.25 s each): the \
             nearest value that does is 0.5"
        );
    }

    #[test]
    fn the_options_of_slices_come_together() {
        let only = SliceOptions { seed: Some(1), ..SliceOptions::default() };
        assert_eq!(
            only.settle(false, &[]).unwrap_err().to_string(),
            "the options --slice, --slice-of, --slice-seed and --start-at must be given together; missing: --slice, \
             --slice-of, --start-at"
        );
        assert_eq!(SliceOptions::default().settle(true, &[]), Ok(None));
        assert!(slice_seed("-1").unwrap_err().to_string().contains("a whole number from 0 to 18446744073709551615"));
    }

    #[test]
    fn a_shard_is_one_of_several() {
        for (text, index, of) in [("1/1", 0, 1), ("1/3", 0, 3), (" 3/3", 2, 3)] {
            assert_eq!(shard(text), Ok(Shard { index, of }));
        }
        assert_eq!(shard("2/4").unwrap().to_string(), "2/4");
        for text in ["", "x", "1", "/", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "1.5/2", "2 of 4"] {
            assert!(shard(text).unwrap_err().to_string().contains("it must be I/N"), "{text}");
        }
    }

    #[test]
    fn nobody_is_to_be_without_work() {
        assert_eq!(check_enough(Shard { index: 0, of: 3 }, 3, "clients"), Ok(()));
        let refused = check_enough(Shard { index: 1, of: 3 }, 2, "clients").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--shard=2/3: 2 clients cannot be shared out among 3 shards, since each shard needs at least one: use \
             fewer shards, or more clients"
        );
    }
}
