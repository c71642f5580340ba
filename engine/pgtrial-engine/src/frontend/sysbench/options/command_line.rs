//! Reads sysbench's command line without checking the values. All options are stored in the order in which they are
//! given.
//!
//! An option begins with two dashes, and its value comes after an equals sign. A dash and an underscore in a name mean
//! the same. Words that are not options are the name of the test and the command. If an option is given several times,
//! the last value counts, whether it comes from the command line or from a file.

use std::io;

use super::values::{OptionKind, Written, evaluate};
use crate::frontend::sysbench::config;
use crate::frontend::sysbench::log::SysbenchError;
use ground::output::plain_io_message;
use workload::settings::OptionValue;

/// The name of the option that names a file with more options.
pub const CONFIG_FILE: &str = "config-file";

/// sysbench's warning about the option `--test=`.
pub const TEST_IS_DEPRECATED: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                                      the command line without any options.";

/// An option as it was written on the command line or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption {
    pub name: String,
    pub written: Written,
    /// The option as messages show it. For an option from a file, it includes the name of the file and the number of
    /// the line.
    pub shown: String,
}

/// A command line that has been read, including the files of options that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub test: Option<String>,
    pub command: Option<String>,
    pub given: Vec<GivenOption>,
}

/// A function that reads the file with this name.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

impl CommandLine {
    /// Reads the arguments (without the program's name). `warn` is called with the warning about `--test=` as soon as
    /// this option is read.
    pub fn read(args: &[String], read_file: ReadFile<'_>, warn: &mut dyn FnMut(&str)) -> Result<Self, SysbenchError> {
        let mut line = Self::default();
        for arg in args {
            let Some(option) = arg.strip_prefix("--") else {
                line.word(arg)?;
                continue;
            };
            let (name, written) = match option.split_once('=') {
                Some((name, value)) => (name, Written::Text(value.to_owned())),
                None => (option, Written::Nothing),
            };
            if let (Some(value), true) = (option.strip_prefix("test="), name == "test") {
                warn(TEST_IS_DEPRECATED);
                line.test = (!value.is_empty()).then(|| value.to_owned());
            }
            let given = GivenOption { name: name.to_owned(), shown: shown(name, &written, "--"), written };
            if same_name(name, CONFIG_FILE) {
                line.file(&given, read_file)?;
            }
            line.given.push(given);
        }
        Ok(line)
    }

    /// Stores a word that is not an option. The first such word is the name of the test, and the second is the command.
    fn word(&mut self, word: &str) -> Result<(), SysbenchError> {
        let place = match (&self.test, &self.command) {
            (None, _) => &mut self.test,
            (Some(_), None) => &mut self.command,
            _ => return Err(SysbenchError::error(format_args!("Unrecognized command line argument: {word}"))),
        };
        *place = Some(word.to_owned());
        Ok(())
    }

    /// Reads the file that `option` names, and stores its options as if they were written on the command line before
    /// this option.
    fn file(&mut self, option: &GivenOption, read_file: ReadFile<'_>) -> Result<(), SysbenchError> {
        let Written::Text(file) = &option.written else { return Err(wrong(OptionKind::File, option)) };
        if file.is_empty() {
            return Err(wrong(OptionKind::File, option));
        }
        let bytes = read_file(file)
            .map_err(|error| SysbenchError::error(format_args!("{file}: {}", plain_io_message(&error))))?;
        let lines = config::parse(&String::from_utf8_lossy(&bytes)).map_err(SysbenchError::error)?;
        for line in lines {
            let written = Written::Words(line.words);
            let shown = format!("{} ({file}, line {})", shown(&line.name, &written, ""), line.number);
            if same_name(&line.name, CONFIG_FILE) || same_name(&line.name, "test") {
                return Err(SysbenchError::error(format_args!(
                    "this option is allowed only on the command line: {shown}"
                )));
            }
            self.given.push(GivenOption { name: line.name, written, shown });
        }
        Ok(())
    }

    /// Returns the last occurrence of an option, whose value counts; `None` if the option was not given.
    pub fn last(&self, name: &str) -> Option<&GivenOption> {
        self.given.iter().rfind(|given| same_name(&given.name, name))
    }

    /// Returns true if this switch, which is a general option, is on. An invalid value counts as off here, and is
    /// rejected later when the test is known.
    pub fn is_on(&self, name: &str) -> bool {
        let value = self.last(name).and_then(|given| evaluate(OptionKind::Bool, &given.written));
        value == Some(OptionValue::Bool(true))
    }

    /// Returns true if this general option was given with exactly the value `text`.
    pub fn is_text(&self, name: &str, text: &str) -> bool {
        self.last(name).is_some_and(|given| given.written.shown() == text)
    }

    /// Returns the value of a general option, or `None` if the option was not given. Fails if the value is not valid
    /// for `kind`.
    pub fn value(&self, name: &str, kind: OptionKind) -> Result<Option<OptionValue>, SysbenchError> {
        let evaluated = |given: &GivenOption| evaluate(kind, &given.written).ok_or_else(|| wrong(kind, given));
        self.last(name).map(evaluated).transpose()
    }
}

/// Returns true if two names of options are the same, where a dash and an underscore count as the same character.
pub fn same_name(one: &str, other: &str) -> bool {
    let folded = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.bytes().map(folded).eq(other.bytes().map(folded))
}

/// Returns the error for a value that is not valid for the kind of the option.
pub fn wrong(kind: OptionKind, given: &GivenOption) -> SysbenchError {
    if kind == OptionKind::Bool {
        return SysbenchError::error(format_args!("invalid option: {}", given.shown));
    }
    let name = given.name.replace('-', "_");
    SysbenchError::error(format_args!(
        "Invalid value for the '{name}' option: '{}'",
        shown_value(&name, &given.written)
    ))
}

/// Returns an option as messages show it, with `dashes` before its name.
fn shown(name: &str, written: &Written, dashes: &str) -> String {
    match written {
        Written::Nothing => format!("{dashes}{name}"),
        Written::Text(_) | Written::Words(_) => format!("{dashes}{name}={}", shown_value(name, written)),
    }
}

/// Returns a value as messages show it. If the name of the option contains `pas`, the value may be a password, and
/// `***` is returned instead.
fn shown_value(name: &str, written: &Written) -> String {
    if name.to_ascii_lowercase().contains("pas") { "***".to_owned() } else { written.shown() }
}
