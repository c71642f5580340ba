//! sysbench's options. The options of a test are known only after the test has been loaded. The general options that
//! are needed for loading it are therefore checked before, and all other options after. A new general option needs only
//! a row in `table.rs`.

pub mod command_line;
pub mod table;
#[cfg(test)]
mod tests;
pub mod values;

use crate::frontend::sysbench::log::SysbenchError;
use command_line::{CommandLine, GivenOption, same_name, wrong};
use table::{CHECKED_FIRST, Checks, Group, OPTIONS};
use values::{Numbers, OptionKind, Written, evaluate, evaluate_for_test};
use workload::settings::{OptionSpec, OptionValue, Settings};

/// The treatment of options that neither the test nor sysbench declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    /// The options are passed to the test as texts. The test is a script in the old style, which declares no options.
    Taken,
    /// The options have no effect, and a warning about each is printed.
    Ignored,
}

/// The options that a test declares.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    pub options: &'a [OptionSpec],
    pub unknown: Unknown,
    pub numbers: Numbers,
}

/// The values of all options, after all checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The options that the engine reads. If a test declares an option with the name of a general option, this field
    /// has the value of the general option.
    pub all: Settings,
    /// The options that a Lua script reads. If the script declares an option with the name of a general option, this
    /// field has the value of the script's option. Options that only pgtrial has are left out.
    pub script: Settings,
    /// The options that have no effect, as they were written.
    pub ignored: Vec<String>,
}

/// Checks the options that sysbench checks before it looks for the test. `warn` is called with each warning about a
/// deprecated or dubious option.
pub fn check(line: &CommandLine, warn: &mut dyn FnMut(&str)) -> Result<Settings, SysbenchError> {
    let mut checks = Checks { line, settings: Settings::default(), warn };
    for option in CHECKED_FIRST.iter().filter_map(|name| table::find(name)) {
        (option.check)(&mut checks, option)?;
    }
    Ok(checks.settings)
}

impl CommandLine {
    /// Returns the values of all options. `checked` are the general options that have been checked already; all others,
    /// including the options that the test declares, are checked here.
    pub fn settle(&self, checked: &Settings, declared: Declared<'_>) -> Result<Chosen, SysbenchError> {
        let specs = declared.options;
        let all = self.settle_general(checked.clone(), specs)?;
        let mut chosen = Chosen { all, script: Settings::default(), ignored: Vec::new() };
        for option in OPTIONS {
            if option.group != Group::Own && option.kind != OptionKind::File {
                if let Some(value) = chosen.all.get(&option.name.replace('-', "_")) {
                    chosen.script.set(option.name, value.clone());
                }
            }
        }
        for given in &self.given {
            let is_declared = specs.iter().any(|spec| same_name(&spec.name, &given.name));
            match table::find(&given.name) {
                _ if is_declared => {}
                // If a switch is given several times, the last value counts, but all values must be valid.
                Some(option) if option.kind == OptionKind::Bool => {
                    evaluate(OptionKind::Bool, &given.written).ok_or_else(|| wrong(OptionKind::Bool, given))?;
                }
                Some(_) => {}
                None => chosen.take_unknown(given, declared.unknown)?,
            }
        }
        for spec in specs {
            let value = match self.last(&spec.name) {
                Some(given) => evaluate_for_test(&spec.default, &given.written, declared.numbers)
                    .ok_or_else(|| wrong(OptionKind::of(&spec.default), given))?,
                None => spec.default.clone(),
            };
            if table::find(&spec.name).is_none() {
                chosen.all.set(&spec.name, value.clone());
            }
            chosen.script.set(&spec.name, value);
        }
        Ok(chosen)
    }

    /// Checks the general options that have not been checked yet.
    fn settle_general(&self, settings: Settings, specs: &[OptionSpec]) -> Result<Settings, SysbenchError> {
        let mut checks = Checks { line: self, settings, warn: &mut |_| {} };
        for option in OPTIONS.iter().filter(|option| !CHECKED_FIRST.contains(&option.name)) {
            if option.group != Group::Own {
                (option.check)(&mut checks, option)?;
            } else {
                // If the test declares an option with the name of one of pgtrial's options, the option belongs to the
                // test.
                let is_declared = specs.iter().any(|spec| same_name(&spec.name, option.name));
                if is_declared {
                    checks.settings.set(option.name, option.default());
                    continue;
                }
                (option.check)(&mut checks, option)?;
                let name = option.name.replace('-', "_");
                if let (Some(OptionValue::Text(None)), Some(given)) =
                    (checks.settings.get(&name), self.last(option.name))
                {
                    return Err(wrong(option.kind, given));
                }
            }
        }
        Ok(checks.settings)
    }
}

impl Chosen {
    fn take_unknown(&mut self, given: &GivenOption, unknown: Unknown) -> Result<(), SysbenchError> {
        // A script can read the option `--test=` that named it, so this option is never unknown.
        let names_test = given.name == "test" && matches!(given.written, Written::Text(_));
        if names_test || unknown == Unknown::Taken {
            let text = evaluate(OptionKind::Text, &given.written).ok_or_else(|| wrong(OptionKind::Text, given))?;
            self.script.set(&given.name, text);
            return Ok(());
        }
        if unknown == Unknown::Refused {
            return Err(SysbenchError::error(format_args!("invalid option: {}", given.shown)));
        }
        self.ignored.push(given.shown.clone());
        Ok(())
    }
}

/// Reads and checks a command line for a test that declares an option `tables`. Returns true if the command line is
/// valid. Each file that an option names has this `content`. Used by fuzz tests.
pub fn accepts(args: &[String], content: &[u8]) -> bool {
    let Ok(line) = CommandLine::read(args, &|_| Ok(content.to_vec()), &mut |_| {}) else { return false };
    let Ok(checked) = check(&line, &mut |_| {}) else { return false };
    let tables = OptionSpec { name: "tables".to_owned(), description: String::new(), default: OptionValue::Int(1) };
    let declared = Declared { options: &[tables], unknown: Unknown::Refused, numbers: Numbers::Sizes };
    line.settle(&checked, declared).is_ok()
}
