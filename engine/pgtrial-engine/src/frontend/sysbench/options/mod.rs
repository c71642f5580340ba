//! sysbench's command line: what was given, in its order, and the values that follow from it.
//!
//! Options begin with two dashes and have their value after an equals sign; dashes and underscores in names are the same.
//! The other words are the test and the command. Which options there are is known only when the test is, so that what is
//! not general is kept until then ([`settle`]). The last of several values counts, whether it came from the command line
//! or from a file.

pub mod checks;
mod settle;
pub mod table;
pub mod values;

use std::io;

use super::config;
use super::refusal::Refusal;
use ground::output::plain_io_message;
pub use settle::{Chosen, Declared, Unknown};
use table::{Definition, same_name};
use values::{Kind, Written, evaluate};
use workload::settings::OptionValue;

/// What `--test=` is told on standard error.
pub const TEST_IS_DEPRECATED: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                                      the command line without any options.";

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    name: String,
    written: Written,
    /// As it was written, for messages; in a file with its place.
    shown: String,
}

/// A command line, with the files of options that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub test: Option<String>,
    pub command: Option<String>,
    given: Vec<Given>,
}

/// Reads files by their names.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

impl CommandLine {
    /// Reads the arguments (without the program's name); `warn` is told what is deprecated as soon as it is met.
    pub fn read(args: &[String], read_file: ReadFile<'_>, warn: &mut dyn FnMut(&str)) -> Result<Self, Refusal> {
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
            let given = Given { name: name.to_owned(), shown: shown(name, &written, "--"), written };
            if table::find(name).is_some_and(|known| known.kind == Kind::File) {
                line.file(&given, read_file)?;
            }
            line.given.push(given);
        }
        Ok(line)
    }

    /// A word that is no option: the test, then the command.
    fn word(&mut self, word: &str) -> Result<(), Refusal> {
        let place = match (&self.test, &self.command) {
            (None, _) => &mut self.test,
            (Some(_), None) => &mut self.command,
            _ => return Err(Refusal::error(format_args!("Unrecognized command line argument: {word}"))),
        };
        *place = Some(word.to_owned());
        Ok(())
    }

    /// The options of a file, which come where the file is named.
    fn file(&mut self, option: &Given, read_file: ReadFile<'_>) -> Result<(), Refusal> {
        let Written::Text(file) = &option.written else { return Err(wrong(Kind::File, option)) };
        if file.is_empty() {
            return Err(wrong(Kind::File, option));
        }
        let bytes =
            read_file(file).map_err(|error| Refusal::error(format_args!("{file}: {}", plain_io_message(&error))))?;
        let lines = config::parse(&String::from_utf8_lossy(&bytes)).map_err(Refusal::error)?;
        for line in lines {
            let written = Written::Words(line.words);
            let shown = format!("{} ({file}, line {})", shown(&line.name, &written, ""), line.number);
            let is_file = table::find(&line.name).is_some_and(|known| known.kind == Kind::File);
            if is_file || same_name(&line.name, "test") {
                return Err(Refusal::error(format_args!("option of the command line only: {shown}")));
            }
            self.given.push(Given { name: line.name, written, shown });
        }
        Ok(())
    }

    /// What was last given for an option.
    fn last(&self, name: &str) -> Option<&Given> {
        self.given.iter().rfind(|given| same_name(&given.name, name))
    }

    /// Whether a general option was given.
    pub fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// Whether a general switch is on. What is no value of a switch is refused when the test is known.
    pub fn is_on(&self, name: &str) -> bool {
        let value = self.last(name).and_then(|given| evaluate(Kind::Bool, &given.written));
        value == Some(OptionValue::Bool(true))
    }

    /// Whether a general option was given with this text.
    pub fn is_text(&self, name: &str, text: &str) -> bool {
        self.last(name).is_some_and(|given| given.written.shown() == text)
    }

    /// The value of a general option.
    fn value(&self, known: &Definition) -> Result<OptionValue, Refusal> {
        match self.last(known.name) {
            Some(given) => evaluate(known.kind, &given.written).ok_or_else(|| wrong(known.kind, given)),
            None => Ok(default(known)),
        }
    }
}

/// The default of a general option; where there is none, the value that stands for that.
fn default(known: &Definition) -> OptionValue {
    let written = known.default.map_or_else(|| Written::Words(Vec::new()), |text| Written::Text(text.to_owned()));
    evaluate(known.kind, &written).unwrap_or(OptionValue::Text(None))
}

/// What is said of a value that is not of the option's kind.
fn wrong(kind: Kind, given: &Given) -> Refusal {
    if kind == Kind::Bool {
        return Refusal::error(format_args!("invalid option: {}", given.shown));
    }
    let name = given.name.replace('-', "_");
    Refusal::error(format_args!("Invalid value for the '{name}' option: '{}'", shown_value(&name, &given.written)))
}

/// An option as it was written.
fn shown(name: &str, written: &Written, dashes: &str) -> String {
    match written {
        Written::Nothing => format!("{dashes}{name}"),
        _ => format!("{dashes}{name}={}", shown_value(name, written)),
    }
}

/// A value for messages. Passwords are not shown, nor is what has a name like one's.
fn shown_value(name: &str, written: &Written) -> String {
    if name.to_ascii_lowercase().contains("pas") { "***".to_owned() } else { written.shown() }
}

#[cfg(test)]
mod tests;
