//! Command lines as GNU `getopt_long` reads them, with glibc's messages.
//!
//! Options and positional arguments may come in any order; `--` ends the options; short options may be combined
//! (`-nrS`) and carry their value attached or separate (`-c8`, `-c 8`); long options may be abbreviated as long as they
//! stay unambiguous, and carry their value after `=` or separate.

use std::collections::VecDeque;

use thiserror::Error;

/// An option of one letter: the letter, whether it takes a value, what it means.
pub type ShortOption<Id> = (char, bool, Id);

/// An option with a long name.
#[derive(Clone, Copy, Debug)]
pub struct LongOption<Id> {
    /// The name without its dashes.
    pub name: &'static str,
    /// Whether it takes a value.
    pub value: bool,
    /// What it means; two names with the same meaning do not make an abbreviation ambiguous.
    pub id: Id,
    /// Whether the original program lacks it: it never makes an abbreviation of the original's options ambiguous.
    pub addition: bool,
}

/// A command line that names no known option or misuses one, in glibc's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GetoptError {
    /// A long option that is not known.
    #[error("{program}: unrecognized option '--{option}'")]
    Unrecognized {
        /// The program's name.
        program: String,
        /// The option with its value, as it was written.
        option: String,
    },
    /// A long option cut too short.
    #[error("{program}: option '--{option}' is ambiguous; possibilities:{}", quoted(.possibilities))]
    Ambiguous {
        /// The program's name.
        program: String,
        /// The option with its value, as it was written.
        option: String,
        /// The names it may stand for.
        possibilities: Vec<&'static str>,
    },
    /// A value for a long option that takes none.
    #[error("{program}: option '--{option}' doesn't allow an argument")]
    UnwantedValue {
        /// The program's name.
        program: String,
        /// The option's full name.
        option: &'static str,
    },
    /// A long option without its value.
    #[error("{program}: option '--{option}' requires an argument")]
    MissingValue {
        /// The program's name.
        program: String,
        /// The option's full name.
        option: &'static str,
    },
    /// A letter that is no option.
    #[error("{program}: invalid option -- '{option}'")]
    InvalidShort {
        /// The program's name.
        program: String,
        /// The letter.
        option: char,
    },
    /// A short option without its value.
    #[error("{program}: option requires an argument -- '{option}'")]
    MissingShortValue {
        /// The program's name.
        program: String,
        /// The letter.
        option: char,
    },
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!(" '--{name}'")).collect()
}

/// The options of a command line, one at a time in the order given.
pub struct Getopt<'a, Id> {
    program: &'a str,
    shorts: &'a [ShortOption<Id>],
    longs: &'a [LongOption<Id>],
    rest: VecDeque<String>,
    /// Letters of the current argument that are still to be read.
    letters: VecDeque<char>,
    positional: Vec<String>,
}

impl<'a, Id: Copy + PartialEq> Getopt<'a, Id> {
    /// Starts on a command line, without the program's name in `args`; `program` is for messages.
    pub fn new(
        program: &'a str,
        args: impl IntoIterator<Item = impl Into<String>>,
        shorts: &'a [ShortOption<Id>],
        longs: &'a [LongOption<Id>],
    ) -> Self {
        Self {
            program,
            shorts,
            longs,
            rest: args.into_iter().map(Into::into).collect(),
            letters: VecDeque::new(),
            positional: Vec::new(),
        }
    }

    /// The positional arguments met so far and whatever has not been read.
    pub fn into_positional(mut self) -> Vec<String> {
        self.positional.extend(self.rest);
        self.positional
    }

    fn short(&mut self, letter: char) -> Result<(Id, Option<String>), GetoptError> {
        let known = self.shorts.iter().find(|(known, ..)| *known == letter);
        let Some((_, takes_value, id)) = known else {
            return Err(GetoptError::InvalidShort { program: self.program.to_owned(), option: letter });
        };
        if !takes_value {
            return Ok((*id, None));
        }
        let value =
            if self.letters.is_empty() { self.rest.pop_front() } else { Some(self.letters.drain(..).collect()) };
        match value {
            Some(value) => Ok((*id, Some(value))),
            None => Err(GetoptError::MissingShortValue { program: self.program.to_owned(), option: letter }),
        }
    }

    fn long(&mut self, written: &str) -> Result<(Id, Option<String>), GetoptError> {
        let (name, attached) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (written, None),
        };
        let program = || self.program.to_owned();
        let option = self.find_long(name, written)?;
        let value = match (option.value, attached) {
            (true, Some(value)) => Some(value),
            (true, None) => Some(
                self.rest
                    .pop_front()
                    .ok_or_else(|| GetoptError::MissingValue { program: program(), option: option.name })?,
            ),
            (false, Some(_)) => {
                return Err(GetoptError::UnwantedValue { program: program(), option: option.name });
            }
            (false, None) => None,
        };
        Ok((option.id, value))
    }

    /// The option with this name, or else the only one that starts with it.
    fn find_long(&self, name: &str, written: &str) -> Result<LongOption<Id>, GetoptError> {
        if let Some(exact) = self.longs.iter().find(|known| known.name == name) {
            return Ok(*exact);
        }
        let among = |addition| {
            self.longs.iter().filter(move |known| known.addition == addition && known.name.starts_with(name))
        };
        let mut candidates = among(false).peekable();
        if candidates.peek().is_none() {
            candidates = among(true).peekable();
        }
        let Some(first) = candidates.next() else {
            return Err(GetoptError::Unrecognized { program: self.program.to_owned(), option: written.to_owned() });
        };
        let others: Vec<_> = candidates
            .filter(|other| other.id != first.id || other.value != first.value)
            .map(|other| other.name)
            .collect();
        if others.is_empty() {
            return Ok(*first);
        }
        let mut possibilities = vec![first.name];
        possibilities.extend(others);
        Err(GetoptError::Ambiguous { program: self.program.to_owned(), option: written.to_owned(), possibilities })
    }
}

impl<Id: Copy + PartialEq> Iterator for Getopt<'_, Id> {
    type Item = Result<(Id, Option<String>), GetoptError>;

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
                // A lone dash is an argument like any other.
                _ => self.positional.push(argument),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Id {
        Client,
        NoVacuum,
        Log,
        LogPrefix,
        Latency,
        Report,
    }

    const SHORTS: &[ShortOption<Id>] = &[('c', true, Id::Client), ('n', false, Id::NoVacuum), ('l', false, Id::Log)];

    const fn long(name: &'static str, value: bool, id: Id) -> LongOption<Id> {
        LongOption { name, value, id, addition: false }
    }

    const LONGS: &[LongOption<Id>] = &[
        long("client", true, Id::Client),
        long("no-vacuum", false, Id::NoVacuum),
        long("log", false, Id::Log),
        long("log-prefix", true, Id::LogPrefix),
        long("latency-limit", true, Id::Latency),
        long("report-latencies", false, Id::Report),
        long("report-per-command", false, Id::Report),
    ];

    type Parsed<Id> = (Vec<(Id, Option<String>)>, Vec<String>);

    /// Reads a whole command line: its options in order with their values, and its positional arguments.
    fn parse<Id: Copy + PartialEq>(
        program: &str,
        args: impl IntoIterator<Item = impl Into<String>>,
        shorts: &[ShortOption<Id>],
        longs: &[LongOption<Id>],
    ) -> Result<Parsed<Id>, GetoptError> {
        let mut getopt = Getopt::new(program, args, shorts, longs);
        let options = getopt.by_ref().collect::<Result<_, _>>()?;
        Ok((options, getopt.into_positional()))
    }

    fn parsed(line: &str) -> Result<Parsed<Id>, String> {
        parse("pgbench", line.split_whitespace(), SHORTS, LONGS).map_err(|error| error.to_string())
    }

    fn options(line: &str) -> Vec<(Id, Option<String>)> {
        parsed(line).unwrap().0
    }

    fn positional(line: &str) -> Vec<String> {
        parsed(line).unwrap().1
    }

    fn message(line: &str) -> String {
        parsed(line).unwrap_err()
    }

    fn with(id: Id, value: &str) -> (Id, Option<String>) {
        (id, Some(value.to_owned()))
    }

    #[test]
    fn short_options_combine_and_take_values_attached_or_separate() {
        let expected = [(Id::NoVacuum, None), (Id::Log, None), with(Id::Client, "8")];
        assert_eq!(options("-nlc8"), expected);
        assert_eq!(options("-nl -c 8"), expected);
        assert_eq!(options("-c -n"), [with(Id::Client, "-n")]);
        assert_eq!(options("-c=8"), [with(Id::Client, "=8")]);
    }

    #[test]
    fn long_options_take_values_attached_or_separate() {
        assert_eq!(options("--client=8"), [with(Id::Client, "8")]);
        assert_eq!(options("--client 8"), [with(Id::Client, "8")]);
        assert_eq!(options("--client="), [with(Id::Client, "")]);
        assert_eq!(options("--client=a=b"), [with(Id::Client, "a=b")]);
        assert_eq!(options("--client --log"), [with(Id::Client, "--log")]);
    }

    #[test]
    fn unambiguous_abbreviations_stand_for_the_option() {
        assert_eq!(
            options("--cl=8 --no --la 5"),
            [with(Id::Client, "8"), (Id::NoVacuum, None), with(Id::Latency, "5")]
        );
        assert_eq!(options("--log"), [(Id::Log, None)]);
        assert_eq!(options("--log-=x"), [with(Id::LogPrefix, "x")]);
        assert_eq!(options("--report"), [(Id::Report, None)]);
    }

    #[test]
    fn positional_arguments_may_come_anywhere_and_end_with_two_dashes() {
        assert_eq!(positional("db -n x - -c 8 y"), ["db", "x", "-", "y"]);
        assert_eq!(positional("a -- -n --log --"), ["a", "-n", "--log", "--"]);
        assert_eq!(options("a -n -- -l"), [(Id::NoVacuum, None)]);
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
        let mut getopt = Getopt::new("pgbench", ["-c", "0", "--bogus"], SHORTS, LONGS);
        assert_eq!(getopt.next(), Some(Ok(with(Id::Client, "0"))));
        assert!(getopt.next().unwrap().is_err());
    }

    proptest! {
        #[test]
        fn any_arguments_are_read_or_refused(args in prop::collection::vec("[-=lcné]{0,6}|--[a-z=-]{0,9}", 0..6)) {
            let _ = parse("p", args, SHORTS, LONGS);
        }

        #[test]
        fn nothing_after_two_dashes_is_an_option(args in prop::collection::vec(".{0,8}", 0..5)) {
            let line = std::iter::once("--".to_owned()).chain(args.iter().cloned());
            prop_assert_eq!(parse("p", line, SHORTS, LONGS), Ok((Vec::new(), args)));
        }
    }
}
