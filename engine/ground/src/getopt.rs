//! Reads command lines as GNU `getopt_long` does, with glibc's messages.
//!
//! Options and positional arguments may come in any order. `--` ends the options. Short options may be combined
//! (`-nrS`), and their value may be attached or separate (`-c8`, `-c 8`). Long options may be abbreviated if they stay
//! unambiguous, and their value comes after `=` or is separate.

use std::collections::VecDeque;

use thiserror::Error;

use crate::options::{OptionRow, Stop};

/// The error for a command line with an unknown or misused option. The message is glibc's, without the program's name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GetoptError {
    /// An unknown option. The field is the option with its value, as the user wrote it.
    #[error("unrecognized option '--{0}'")]
    Unrecognized(String),
    /// An abbreviated option that can stand for several names. `written` is the option with its value, as the user
    /// wrote it.
    #[error("option '--{written}' is ambiguous; possibilities:{}", quoted(.possibilities))]
    Ambiguous { written: String, possibilities: Vec<&'static str> },
    #[error("option '--{0}' doesn't allow an argument")]
    UnwantedValue(&'static str),
    #[error("option '--{0}' requires an argument")]
    MissingValue(&'static str),
    #[error("invalid option -- '{0}'")]
    InvalidShort(char),
    #[error("option requires an argument -- '{0}'")]
    MissingShortValue(char),
}

impl From<GetoptError> for String {
    fn from(error: GetoptError) -> Self {
        error.to_string()
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!(" '--{name}'")).collect()
}

/// Reads a command line by a table of options, which may consist of several parts. `args` does not include the program's
/// name. Returns the positional arguments.
pub fn read<T, E: From<GetoptError>, G>(
    table: &[&[OptionRow<T, E, G>]],
    args: Vec<String>,
    target: &mut T,
) -> Result<Vec<String>, Stop<E>> {
    let mut getopt = Getopt::new(table, &[], args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(E::from)?;
        row.apply(target, &value)?;
    }
    Ok(getopt.into_positional())
}

/// Reads the options of a command line one at a time, in the order in which they were given. Each comes with its value,
/// which is empty for an option without a value.
pub struct Getopt<'a, T: 'static, E: 'static, G> {
    table: &'a [&'a [OptionRow<T, E, G>]],
    /// The names of the long options that the imitated program (such as pgbench) has, in its order. An abbreviation
    /// that is unambiguous among these names stays unambiguous, even if the table has further options that begin with
    /// it.
    originals: &'a [&'static str],
    rest: VecDeque<String>,
    /// The letters of the current argument that have not been read yet.
    letters: VecDeque<char>,
    positional: Vec<String>,
}

impl<'a, T: 'static, E: 'static, G> Getopt<'a, T, E, G> {
    /// Starts to read a command line. `args` does not include the program's name.
    pub fn new(
        table: &'a [&'a [OptionRow<T, E, G>]],
        originals: &'a [&'static str],
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            table,
            originals,
            rest: args.into_iter().map(Into::into).collect(),
            letters: VecDeque::new(),
            positional: Vec::new(),
        }
    }

    /// Returns the positional arguments that were read so far, and all arguments that have not been read.
    pub fn into_positional(mut self) -> Vec<String> {
        self.positional.extend(self.rest);
        self.positional
    }

    fn rows(&self) -> impl Iterator<Item = &'a OptionRow<T, E, G>> + use<'a, T, E, G> {
        self.table.iter().copied().flatten()
    }

    fn short(&mut self, letter: char) -> FoundRow<'a, T, E, G> {
        let row = self.rows().find(|row| row.short() == Some(letter));
        let row = row.ok_or(GetoptError::InvalidShort(letter))?;
        if !row.takes_value() {
            return Ok((row, String::new()));
        }
        let value =
            if self.letters.is_empty() { self.rest.pop_front() } else { Some(self.letters.drain(..).collect()) };
        Ok((row, value.ok_or(GetoptError::MissingShortValue(letter))?))
    }

    fn long(&mut self, written: &str) -> FoundRow<'a, T, E, G> {
        let (name, attached) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (written, None),
        };
        let row = self.find_long(name, written)?;
        let value = match (row.takes_value(), attached) {
            (true, Some(value)) => value,
            (true, None) => self.rest.pop_front().ok_or(GetoptError::MissingValue(row.long()))?,
            (false, Some(_)) => return Err(GetoptError::UnwantedValue(row.long())),
            (false, None) => String::new(),
        };
        Ok((row, value))
    }

    /// Returns the option with this name or, if there is none, the only option whose name begins with it.
    fn find_long(&self, name: &str, written: &str) -> Result<&'a OptionRow<T, E, G>, GetoptError> {
        let exact = |name: &str| self.rows().find(|row| row.long() == name);
        if let Some(row) = exact(name) {
            return Ok(row);
        }
        let mut candidates: Vec<_> = self.originals.iter().copied().filter(|long| long.starts_with(name)).collect();
        if candidates.is_empty() {
            candidates = self.rows().map(OptionRow::long).filter(|long| long.starts_with(name)).collect();
        }
        match candidates.as_slice() {
            [one] => exact(one),
            [] => None,
            [_, _, ..] => {
                return Err(GetoptError::Ambiguous { written: written.to_owned(), possibilities: candidates });
            }
        }
        .ok_or_else(|| GetoptError::Unrecognized(written.to_owned()))
    }
}

type FoundRow<'a, T, E, G> = Result<(&'a OptionRow<T, E, G>, String), GetoptError>;

impl<'a, T: 'static, E: 'static, G> Iterator for Getopt<'a, T, E, G> {
    type Item = FoundRow<'a, T, E, G>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(letter) = self.letters.pop_front() {
            return Some(self.short(letter));
        }
        loop {
            let argument = self.rest.pop_front()?;
            if argument == "--" {
                self.positional.extend(self.rest.drain(..));
                return None;
            }
            if let Some(written) = argument.strip_prefix("--") {
                return Some(self.long(written));
            }
            match argument.strip_prefix('-') {
                Some(letters) if !letters.is_empty() => {
                    self.letters = letters.chars().collect();
                    let letter = self.letters.pop_front()?;
                    return Some(self.short(letter));
                }
                // A single dash is a positional argument.
                _ => self.positional.push(argument),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Row = OptionRow<(), String, ()>;

    const fn flag(spec: &'static str) -> Row {
        Row::action(spec, (), "", |()| Ok(()))
    }

    const fn with_value(spec: &'static str) -> Row {
        Row::value(spec, (), "", |(), _| Ok(()))
    }

    const TABLE: &[Row] = &[
        with_value("-c, --client=NUM"),
        flag("-n, --no-vacuum"),
        flag("-l, --log"),
        with_value("--log-prefix=PREFIX"),
        with_value("--latency-limit=NUM"),
        flag("--report-per-command"),
        flag("--logger"),
    ];

    /// The options of this test's table that exist in pgbench: all except the last one.
    const ORIGINALS: &[&str] = &["client", "no-vacuum", "log", "log-prefix", "latency-limit", "report-per-command"];

    /// An option that was read: its long name, and its value if it takes one.
    type Read = (&'static str, Option<String>);

    type Parsed = (Vec<Read>, Vec<String>);

    /// Reads a whole command line. Returns its options in order with their values, and its positional arguments.
    fn parse(args: impl IntoIterator<Item = impl Into<String>>) -> Result<Parsed, GetoptError> {
        let mut getopt = Getopt::new(&[TABLE], ORIGINALS, args);
        let named = |(row, value): (&Row, String)| (row.long(), row.takes_value().then_some(value));
        let options = getopt.by_ref().map(|option| option.map(named)).collect::<Result<_, _>>()?;
        Ok((options, getopt.into_positional()))
    }

    fn options(line: &str) -> Vec<Read> {
        parse(line.split_whitespace()).unwrap().0
    }

    fn positional(line: &str) -> Vec<String> {
        parse(line.split_whitespace()).unwrap().1
    }

    fn message(line: &str) -> String {
        format!("pgbench: {}", parse(line.split_whitespace()).unwrap_err())
    }

    fn with(id: &'static str, value: &str) -> Read {
        (id, Some(value.to_owned()))
    }

    #[test]
    fn short_options_combine_and_take_values_attached_or_separate() {
        let expected = [("no-vacuum", None), ("log", None), with("client", "8")];
        assert_eq!(options("-nlc8"), expected);
        assert_eq!(options("-nl -c 8"), expected);
        assert_eq!(options("-c -n"), [with("client", "-n")]);
        assert_eq!(options("-c=8"), [with("client", "=8")]);
    }

    #[test]
    fn long_options_take_values_attached_or_separate() {
        assert_eq!(options("--client=8"), [with("client", "8")]);
        assert_eq!(options("--client 8"), [with("client", "8")]);
        assert_eq!(options("--client="), [with("client", "")]);
        assert_eq!(options("--client=a=b"), [with("client", "a=b")]);
        assert_eq!(options("--client --log"), [with("client", "--log")]);
    }

    #[test]
    fn unambiguous_abbreviations_stand_for_the_option() {
        assert_eq!(
            options("--cl=8 --no --la 5"),
            [with("client", "8"), ("no-vacuum", None), with("latency-limit", "5")]
        );
        assert_eq!(options("--log"), [("log", None)]);
        assert_eq!(options("--log-=x"), [with("log-prefix", "x")]);
        assert_eq!(options("--report"), [("report-per-command", None)]);
        assert_eq!(options("--logg"), [("logger", None)]);
    }

    #[test]
    fn positional_arguments_may_come_anywhere_and_end_with_two_dashes() {
        assert_eq!(positional("db -n x - -c 8 y"), ["db", "x", "-", "y"]);
        assert_eq!(positional("a -- -n --log --"), ["a", "-n", "--log", "--"]);
        assert_eq!(options("a -n -- -l"), [("no-vacuum", None)]);
        assert!(positional("").is_empty());
    }

    #[test]
    fn errors_are_glibcs() {
        assert_eq!(message("--x=1"), "pgbench: unrecognized option '--x=1'");
        assert_eq!(
            message("--l"),
            "pgbench: option '--l' is ambiguous; possibilities: '--log' '--log-prefix' '--latency-limit'"
        );
        assert_eq!(message("--cli"), "pgbench: option '--client' requires an argument");
        assert_eq!(message("--no=1"), "pgbench: option '--no-vacuum' doesn't allow an argument");
        assert_eq!(message("-nx"), "pgbench: invalid option -- 'x'");
        assert_eq!(message("-nc"), "pgbench: option requires an argument -- 'c'");
    }

    #[test]
    fn options_before_a_wrong_one_can_be_judged_first() {
        let mut getopt = Getopt::new(&[TABLE], ORIGINALS, ["-c", "0", "--bogus"]);
        let (row, value) = getopt.next().unwrap().unwrap();
        assert_eq!((row.long(), value.as_str()), ("client", "0"));
        assert!(getopt.next().unwrap().is_err());
    }

    proptest! {
        #[test]
        fn any_arguments_are_read_or_refused(args in prop::collection::vec("[-=lcné]{0,6}|--[a-z=-]{0,9}", 0..6)) {
            let _ = parse(args);
        }

        #[test]
        fn nothing_after_two_dashes_is_an_option(args in prop::collection::vec(".{0,8}", 0..5)) {
            let line = std::iter::once("--".to_owned()).chain(args.iter().cloned());
            prop_assert_eq!(parse(line), Ok((Vec::new(), args)));
        }
    }
}
