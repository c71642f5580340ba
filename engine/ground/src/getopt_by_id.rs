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
