//! The command line once the test is known: its own options, and what is no option at all.

use super::checks::check_own;
use super::values::{Kind, Written, evaluate, evaluate_for_test};
use super::{CommandLine, Given, Refusal, default, wrong};
use crate::frontend::sysbench::options::table;
use crate::frontend::sysbench::options::table::{Group, OPTIONS, same_name};
use workload::settings::{OptionSpec, OptionValue, Settings};

/// What becomes of options that nobody has declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    /// The test gets them as texts: scripts from before options were declared.
    Taken,
    /// They have no effect, which is told.
    Ignored,
}

/// What a test says of its options.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    pub options: &'a [OptionSpec],
    pub unknown: Unknown,
    /// Whether whole numbers may be sizes such as `64K`: scripts do not say which of them are.
    pub sizes: bool,
}

/// All options with their values.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// For the engine. An option of a test does not change the engine's of the same name.
    pub all: Settings,
    /// For a script: with its own options in place of others of the same names, and without what only pgtrial has.
    pub script: Settings,
    /// Options without an effect, as they were written.
    pub ignored: Vec<String>,
}

impl CommandLine {
    /// Adds to the `checked` general options all others, those that the test declares included.
    pub fn settle(&self, checked: &Settings, declared: Declared<'_>) -> Result<Chosen, Refusal> {
        let specs = declared.options;
        let mut chosen = Chosen { all: checked.clone(), script: Settings::default(), ignored: Vec::new() };
        self.settle_general(&mut chosen, specs)?;
        for given in &self.given {
            let is_declared = specs.iter().any(|spec| same_name(&spec.name, &given.name));
            match table::find(&given.name) {
                _ if is_declared => {}
                // The last one of a switch counts, but none may be wrong.
                Some(known) if known.kind == Kind::Bool && evaluate(Kind::Bool, &given.written).is_none() => {
                    return Err(wrong(Kind::Bool, given));
                }
                Some(_) => {}
                None => chosen.take_unknown(given, self.names_test(given), declared.unknown)?,
            }
        }
        for spec in specs {
            let value = match self.last(&spec.name) {
                Some(given) => evaluate_for_test(&spec.default, &given.written, declared.sizes)
                    .ok_or_else(|| wrong(Kind::of(&spec.default), given))?,
                None => spec.default.clone(),
            };
            if table::find(&spec.name).is_none() {
                chosen.all.set(&spec.name, value.clone());
            }
            chosen.script.set(&spec.name, value);
        }
        Ok(chosen)
    }

    /// The options of sysbench and the engine that have not been checked yet.
    fn settle_general(&self, chosen: &mut Chosen, specs: &[OptionSpec]) -> Result<(), Refusal> {
        for known in OPTIONS {
            let is_declared = specs.iter().any(|spec| same_name(&spec.name, known.name));
            let name = known.name.replace('-', "_");
            let value = match chosen.all.get(&name) {
                Some(value) => value.clone(),
                // What a test declares is the test's.
                None if is_declared && known.group == Group::Own => default(known),
                None if known.kind == Kind::Bool => OptionValue::Bool(self.is_on(known.name)),
                None => self.value(known)?,
            };
            if known.group == Group::Own {
                if let (OptionValue::Text(None), Some(given), false) = (&value, self.last(known.name), is_declared) {
                    return Err(wrong(known.kind, given));
                }
                check_own(known, &value)?;
            } else if known.kind != Kind::File {
                chosen.script.set(&name, value.clone());
            }
            chosen.all.set(&name, value);
        }
        Ok(())
    }

    /// Whether this is the `--test=` that named the test.
    fn names_test(&self, given: &Given) -> bool {
        given.name == "test" && matches!(given.written, Written::Text(_))
    }
}

impl Chosen {
    fn take_unknown(&mut self, given: &Given, names_test: bool, unknown: Unknown) -> Result<(), Refusal> {
        if names_test || unknown == Unknown::Taken {
            let text = evaluate(Kind::Text, &given.written).ok_or_else(|| wrong(Kind::Text, given))?;
            self.script.set(&given.name, text);
            return Ok(());
        }
        if unknown == Unknown::Refused {
            return Err(Refusal::error(format_args!("invalid option: {}", given.shown)));
        }
        self.ignored.push(given.shown.clone());
        Ok(())
    }
}
