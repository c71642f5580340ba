//! Parses a script into statements and backslash commands, and checks them as far as this is possible without the other
//! scripts of the run.

use super::error::ScriptError;
use super::lexer::{Ending, Scanner};
use super::steps::Store;
use crate::pgbench::meta_commands;
use crate::pgbench::meta_commands::{MetaCommand, OpenConditions, Place};
use ground::c_numbers::trim_start;

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub description: String,
    pub weight: u64,
    pub commands: Vec<ScriptCommand>,
    /// The number of the line on which each command begins, counted from 1.
    pub lines: Vec<usize>,
}

/// A command of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptCommand {
    Sql(Sql),
    /// A backslash command, with its text.
    Meta(MetaCommand, String),
}

/// A statement of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Sql {
    pub text: Vec<u8>,
    pub store: Option<Store>,
}

/// Parses a script. `description` is the script's name in error messages: the file name that the user gave, or the name
/// of a built-in script.
pub fn parse(description: &str, weight: u64, text: &[u8]) -> Result<Parsed, ScriptError> {
    let mut scanner = Scanner::new(text);
    let (mut commands, mut command_lines) = (Vec::new(), Vec::new());
    let mut lines = Lines { text: scanner.text(), at: 0, line: 1 };
    loop {
        let (sql, ending) = scanner.scan();
        if let Some(text) = without_comments(&sql) {
            commands.push(ScriptCommand::Sql(Sql { text: text.to_vec(), store: None }));
            command_lines.push(lines.line_of(scanner.begin));
        }
        match ending {
            Ending::Semicolon => {}
            Ending::End => break,
            Ending::Backslash => {
                let start = scanner.at - 1;
                let line = lines.line_of(start);
                let place = Place { script: description, text: scanner.text(), line, start };
                match meta_commands::parse(place, &mut scanner.at)? {
                    None => {}
                    Some((MetaCommand::Store(store), _)) => attach(&mut commands, store, place)?,
                    Some((meta, text)) => {
                        commands.push(ScriptCommand::Meta(meta, text));
                        command_lines.push(line);
                    }
                }
            }
        }
    }
    if commands.is_empty() {
        return Err(ScriptError::new(format!("empty command list for script \"{description}\"")));
    }
    check_conditions(description, &commands)?;
    Ok(Parsed { description: description.to_owned(), weight, commands, lines: command_lines })
}

/// Returns a statement without the spaces and line comments in front of it. Returns `None` if nothing else is left.
fn without_comments(sql: &[u8]) -> Option<&[u8]> {
    let mut rest = trim_start(sql);
    while rest.starts_with(b"--") {
        let length = rest.iter().position(|c| *c == b'\n')?;
        rest = trim_start(&rest[length..]);
    }
    (!rest.is_empty()).then_some(rest)
}

/// Attaches a `\gset` or `\aset` to the statement before it. Fails if there is no such statement.
fn attach(commands: &mut [ScriptCommand], store: Store, place: Place) -> Result<(), ScriptError> {
    let refuse = |more| Err(place.error(None, "\\gset must follow an SQL command", more));
    match commands.last_mut() {
        Some(ScriptCommand::Sql(sql)) if sql.store.is_none() => {
            sql.store = Some(store);
            Ok(())
        }
        Some(ScriptCommand::Meta(_, line)) => refuse(Some(line)),
        _ => refuse(None),
    }
}

/// Checks that every `\if` has its `\endif`, and that the order of `\elif` and `\else` between them is valid.
fn check_conditions(description: &str, commands: &[ScriptCommand]) -> Result<(), ScriptError> {
    let refuse = |index: usize, message| {
        ScriptError::new(format!("condition error in script \"{description}\" command {}: {message}", index + 1))
    };
    let mut conditions = OpenConditions::default();
    for (index, command) in commands.iter().enumerate() {
        if let ScriptCommand::Meta(meta, _) = command {
            conditions.add(meta).map_err(|message| refuse(index, message))?;
        }
    }
    conditions.end().map_err(|message| refuse(commands.len(), message))
}

/// Converts offsets in a script to line numbers. The offsets must be given in ascending order.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn line_of(&mut self, offset: usize) -> usize {
        self.line += self.text[self.at..offset].iter().filter(|c| **c == b'\n').count();
        self.at = offset;
        self.line
    }
}
