//! The type of sysbench's general options, and functions that check their values.

use super::command_line::CommandLine;
use super::values::{OptionKind, Written, evaluate};
use crate::frontend::sysbench::log::SysbenchError;
use workload::settings::{OptionValue, Settings};

/// A general option, which belongs to sysbench itself and not to one of its tests.
#[derive(Debug, Clone, Copy)]
pub struct SysbenchOption {
    pub group: Group,
    /// The name of the option, in which words are separated by dashes.
    pub name: &'static str,
    pub kind: OptionKind,
    /// The default value, as it would be written on a command line; `None` if the option has no default.
    pub default: Option<&'static str>,
    pub description: &'static str,
    /// The function that checks the value and stores it in the settings.
    pub check: Check,
}

/// The section of the help in which an option is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    General,
    Random,
    LogText,
    LogLatency,
    Database,
    Mysql,
    Pgsql,
    /// The options that later versions of sysbench have.
    Later,
    /// The options that only pgtrial has. Scripts cannot read these options.
    Own,
}

/// A function that checks the value of an option and stores it in the settings.
pub type Check = fn(&mut Checks<'_>, &SysbenchOption) -> Result<(), SysbenchError>;

impl SysbenchOption {
    /// Returns the value that the setting has if the option is not given: the default value, or
    /// `OptionValue::Text(None)` if there is no default.
    pub fn default(&self) -> OptionValue {
        let written = self.default.map_or_else(|| Written::Words(Vec::new()), |text| Written::Text(text.to_owned()));
        evaluate(self.kind, &written).unwrap_or(OptionValue::Text(None))
    }
}

/// The state of checking the general options: the command line, and the values of the options that have been checked so
/// far.
pub struct Checks<'a> {
    pub line: &'a CommandLine,
    pub settings: Settings,
    /// The function that is called with each warning about a deprecated or dubious option. It is called at once, also
    /// if a later option causes an error.
    pub warn: &'a mut dyn FnMut(&str),
}

impl Checks<'_> {
    /// Stores the value of an option. A switch with an invalid value counts as off here, and is rejected later when the
    /// test is known.
    pub fn keep(&mut self, option: &SysbenchOption) -> Result<OptionValue, SysbenchError> {
        let value = if option.kind == OptionKind::Bool {
            OptionValue::Bool(self.line.is_on(option.name))
        } else {
            self.line.value(option.name, option.kind)?.unwrap_or_else(|| option.default())
        };
        self.settings.set(option.name, value.clone());
        Ok(value)
    }

    /// Stores the value of an option that is a text or the name of a file, and returns the text.
    pub fn text(&mut self, option: &SysbenchOption) -> Result<Option<String>, SysbenchError> {
        self.keep(option)?;
        Ok(self.settings.text(&option.name.replace('-', "_")).map(str::to_owned))
    }

    /// Stores the value of an option that is a list of texts, and returns the list.
    pub fn list(&mut self, option: &SysbenchOption) -> Result<Vec<String>, SysbenchError> {
        Ok(if let OptionValue::List(items) = self.keep(option)? { items } else { Vec::new() })
    }

    /// Stores the value of an option that is a number, and returns it. Fails if the number is less than `min`. An
    /// option without a value is 0.
    pub fn number(&mut self, option: &SysbenchOption, min: i64) -> Result<i64, SysbenchError> {
        let OptionValue::Int(number) = self.keep(option)? else { return Ok(0) };
        if number < min { Err(invalid_number(option.name, number)) } else { Ok(number) }
    }

    /// Stores the value of an option that is a number and that can also be given by a `deprecated` name, and returns
    /// the number. A value under the deprecated name is used if it is greater than `unset`; otherwise the value under
    /// the new name is used.
    pub fn renamed(&mut self, option: &SysbenchOption, deprecated: &str, unset: i64) -> Result<i64, SysbenchError> {
        match self.line.value(deprecated, OptionKind::Int)? {
            Some(OptionValue::Int(number)) if number < 0 => Err(invalid_number(deprecated, number)),
            Some(OptionValue::Int(number)) if number > unset => {
                (self.warn)(&format!("--{deprecated} is deprecated, use --{} instead", option.name));
                self.settings.set(option.name, OptionValue::Int(number));
                Ok(number)
            }
            Some(_) | None => self.number(option, 0),
        }
    }
}

/// Returns sysbench's error for an option whose number is out of range.
pub fn invalid_number(name: &str, number: i64) -> SysbenchError {
    SysbenchError::fatal(format_args!("Invalid value for --{name}: {number}.\n"))
}

/// Returns sysbench's error for an option whose text is not valid.
pub fn invalid_text(name: &str, text: &str) -> SysbenchError {
    SysbenchError::fatal(format_args!("Invalid value for --{name}: '{text}'"))
}
