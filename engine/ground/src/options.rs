//! Tables of command-line options. Each row is one option, with its names, its help text, and what it sets.
//!
//! A front end has one table. [`read`](crate::getopt::read) uses it to read command lines, and the
//! [manual](crate::manual) uses it to list the options. To add an option, add a row.

use std::process::ExitCode;

use crate::output::{print_stderr, print_stdout};

/// A row of the table: one option. `T` is the struct whose fields the options set, `E` is the front end's error type,
/// and `G` is the type of the groups under which the help lists the options.
pub struct OptionRow<T: 'static, E: 'static, G> {
    /// The names and the argument of the option, as the help shows them: `-F, --fillfactor=NUM`, `-q, --quiet`,
    /// `--debug`.
    pub spec: &'static str,
    pub group: G,
    /// The explanation of the option, which may have several lines.
    pub help: &'static str,
    pub set: Setter<T, E>,
}

/// The effect of an option on the struct `T` whose fields the options set.
pub enum Setter<T: 'static, E: 'static> {
    /// The option has no value, and sets this field to true.
    Switch(fn(&mut T) -> &mut bool),
    /// The option has no value and calls this function.
    Action(fn(&mut T) -> SetResult<E>),
    /// The value is stored in this field as it was written.
    Text(fn(&mut T) -> &mut Option<String>),
    /// The value is checked and stored by this function.
    Value(fn(&mut T, &Argument<'_>) -> SetResult<E>),
    /// The option belongs to a nested struct of `T`, and sets a field of that struct.
    Part(&'static dyn PartOption<T, E>),
}

/// An option of a nested struct of `T`. It lets several front ends share an option.
pub trait PartOption<T, E>: Sync {
    fn takes_value(&self) -> bool;
    fn apply(&self, target: &mut T, text: &str) -> SetResult<E>;
}

impl<T: AsMut<P>, P: 'static, E: 'static, G: Sync> PartOption<T, E> for OptionRow<P, E, G> {
    fn takes_value(&self) -> bool {
        self.takes_value()
    }

    fn apply(&self, target: &mut T, text: &str) -> SetResult<E> {
        self.apply(target.as_mut(), text)
    }
}

/// The result of setting an option. An error means that no further options are read.
pub type SetResult<E> = Result<(), Stop<E>>;

/// The reason for which no further options are read.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// The program prints this text on standard output and exits with status 0.
    Print(String),
    /// The program prints this text on standard error and exits with status 0.
    List(String),
    /// The command line is wrong.
    Error(E),
}

impl<E> Stop<E> {
    /// Converts the error with `change`, if the reason is an error. Other reasons stay the same.
    pub fn map<F>(self, change: impl FnOnce(E) -> F) -> Stop<F> {
        match self {
            Self::Print(text) => Stop::Print(text),
            Self::List(text) => Stop::List(text),
            Self::Error(error) => Stop::Error(change(error)),
        }
    }
}

impl<E> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Self::Error(error)
    }
}

/// The exit status of every error of a front end that imitates no other program. The statuses 1 and 2 are for results:
/// a regression, and a run that is incomplete or undecided.
pub const ERROR: u8 = 3;

/// Prints the reason for which reading the options has ended: a text such as the help, or an error in the words of
/// `describe`. Returns the exit status, which is `error_status` after an error.
pub fn exit_status<E>(done: Result<u8, Stop<E>>, error_status: u8, describe: impl FnOnce(&E) -> String) -> ExitCode {
    match done {
        Ok(status) => return ExitCode::from(status),
        Err(Stop::Print(text)) => print_stdout(text),
        Err(Stop::List(text)) => print_stderr(text),
        Err(Stop::Error(error)) => {
            print_stderr(format_args!("{}\n", describe(&error)));
            return ExitCode::from(error_status);
        }
    }
    ExitCode::SUCCESS
}

/// The value of an option.
#[derive(Debug, Clone, Copy)]
pub struct Argument<'a> {
    pub text: &'a str,
    spec: &'static str,
}

impl<'a> Argument<'a> {
    /// Makes the value of an option. `spec` is the option as the help shows it.
    pub fn new(spec: &'static str, text: &'a str) -> Self {
        Self { text, spec }
    }

    /// Returns the option's names as messages show them: `-F/--fillfactor`, `--partitions`.
    pub fn option(&self) -> String {
        let long = long_name(self.spec);
        match short_name(self.spec) {
            Some(letter) => format!("-{letter}/--{long}"),
            None => format!("--{long}"),
        }
    }
}

/// Stores `value` in `field`. If reading the value has failed, changes nothing and returns the error.
pub fn set<F: From<V>, V, E>(field: &mut F, value: Result<V, impl Into<E>>) -> SetResult<E> {
    *field = F::from(value.map_err(|error| Stop::Error(error.into()))?);
    Ok(())
}

// Rows are copied in constants, which the compiler allows only for types without a destructor; hence `Copy`.
impl<T, E, G: Copy> OptionRow<T, E, G> {
    /// Makes an option without a value. The function `set` returns the flag of the options' struct that the option sets
    /// to true.
    pub const fn switch(spec: &'static str, group: G, help: &'static str, set: fn(&mut T) -> &mut bool) -> Self {
        Self { spec, group, help, set: Setter::Switch(set) }
    }

    /// Makes an option without a value that calls `set`. It is for options that do more than set a flag to true.
    pub const fn action(spec: &'static str, group: G, help: &'static str, set: fn(&mut T) -> SetResult<E>) -> Self {
        Self { spec, group, help, set: Setter::Action(set) }
    }

    /// Makes an option whose value is stored as a text without a check.
    pub const fn text(
        spec: &'static str,
        group: G,
        help: &'static str,
        set: fn(&mut T) -> &mut Option<String>,
    ) -> Self {
        Self { spec, group, help, set: Setter::Text(set) }
    }

    /// Makes an option whose value is checked and stored by a function.
    pub const fn value(
        spec: &'static str,
        group: G,
        help: &'static str,
        set: fn(&mut T, &Argument<'_>) -> SetResult<E>,
    ) -> Self {
        Self { spec, group, help, set: Setter::Value(set) }
    }

    /// Makes an option from a row that several front ends share. The row sets a field of `P`, which is a nested struct
    /// of this front end's options `T`.
    pub const fn part<P, H: Sync>(row: &'static OptionRow<P, E, H>, group: G, help: &'static str) -> Self
    where
        T: AsMut<P>,
    {
        Self { spec: row.spec, group, help, set: Setter::Part(row) }
    }
}

impl<T, E, G> OptionRow<T, E, G> {
    /// Returns the option's long name without the dashes.
    pub fn long(&self) -> &'static str {
        long_name(self.spec)
    }

    /// Returns the letter of the option's short name.
    pub fn short(&self) -> Option<char> {
        short_name(self.spec)
    }

    /// Returns the name of the option's argument in the help text, if it takes one.
    pub fn argument(&self) -> Option<&'static str> {
        let (_, name) = self.spec.split_once("--")?;
        let (_, argument) = name.split_once(['=', ' ']).filter(|_| self.takes_value())?;
        Some(argument)
    }

    /// Returns true if the option takes a value.
    pub fn takes_value(&self) -> bool {
        match &self.set {
            Setter::Switch(_) | Setter::Action(_) => false,
            Setter::Text(_) | Setter::Value(_) => true,
            Setter::Part(option) => option.takes_value(),
        }
    }

    /// Sets the option. `text` is its value if the option takes one.
    pub fn apply(&self, target: &mut T, text: &str) -> SetResult<E> {
        match self.set {
            Setter::Switch(field) => *field(target) = true,
            Setter::Action(act) => act(target)?,
            Setter::Text(field) => *field(target) = Some(text.to_owned()),
            Setter::Value(set) => set(target, &Argument { text, spec: self.spec })?,
            Setter::Part(option) => option.apply(target, text)?,
        }
        Ok(())
    }
}

fn long_name(spec: &'static str) -> &'static str {
    let name = spec.split_once("--").map_or("", |(_, name)| name);
    name.split(['=', ' ']).next().unwrap_or_default()
}

fn short_name(spec: &str) -> Option<char> {
    spec.strip_prefix('-')?.chars().next().filter(|letter| *letter != '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = OptionRow<(bool, Option<u32>), String, &'static str>;

    const TABLE: &[Row] = &[
        Row::switch("-q, --quiet", "First:", "say less", |(quiet, _)| quiet),
        Row::value("--number-of-things=NUM", "First:", "so many", |(_, number), value| {
            set(number, value.text.parse::<u32>().map_err(|_| format!("{} is wrong", value.option())))
        }),
        Row::action("-?, --a-very-long-name-indeed", "", "one\ntwo", |_| Err(Stop::Print("help".to_owned()))),
    ];

    #[test]
    fn names_follow_from_what_the_help_shows() {
        let names: Vec<_> = TABLE.iter().map(|row| (row.short(), row.long(), row.takes_value())).collect();
        let expected = [
            (Some('q'), "quiet", false),
            (None, "number-of-things", true),
            (Some('?'), "a-very-long-name-indeed", false),
        ];
        assert_eq!(names, expected);
        assert_eq!(Argument::new("-F, --fillfactor=NUM", "").option(), "-F/--fillfactor");
    }

    #[test]
    fn a_row_sets_its_field_or_stops() {
        let mut target = (false, None);
        assert_eq!(TABLE[0].apply(&mut target, ""), Ok(()));
        assert_eq!(TABLE[1].apply(&mut target, "7"), Ok(()));
        assert_eq!(target, (true, Some(7)));
        let wrong = Stop::Error("--number-of-things is wrong".to_owned());
        assert_eq!(TABLE[1].apply(&mut target, "x"), Err(wrong));
        assert_eq!(TABLE[2].apply(&mut target, ""), Err(Stop::Print("help".to_owned())));
    }
}
