//! Scripts: text in, commands out. A command is a line that starts with a backslash, or a statement up to its semicolon.

use super::expression::{self, Expression};
use super::symbols::Symbols;
use crate::connection::statement::Statement;

/// One command of a script.
#[derive(Debug)]
pub struct Command {
    /// Its first line, for reports.
    pub first_line: String,
    pub operation: Operation,
}

/// What a command does.
#[derive(Debug)]
pub enum Operation {
    /// `\set variable expression`
    Set { slot: usize, expression: Expression },
    /// A statement for the server.
    Sql(Statement),
}

/// A compiled script.
#[derive(Debug)]
pub struct Script {
    pub description: String,
    pub weight: u64,
    pub commands: Vec<Command>,
}

/// Where and why a script cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{script}:{line}: {message}")]
pub struct ScriptError {
    pub script: String,
    pub line: usize,
    pub message: String,
}

/// Compiles a script; the run's statements are numbered through, those of this script from `first_statement`.
pub fn compile(
    description: &str,
    weight: u64,
    text: &str,
    first_statement: usize,
    symbols: &mut Symbols,
) -> Result<Script, ScriptError> {
    let mut commands = Vec::new();
    let mut statements = first_statement;
    for (line, source) in split(text) {
        let error = |message| ScriptError { script: description.to_owned(), line, message };
        let operation = if let Some(meta) = source.strip_prefix('\\') {
            compile_meta(meta, symbols).map_err(error)?
        } else {
            let name = format!("P_{statements}");
            let statement = compile_sql(&source, statements, &name, symbols);
            statements += 1;
            Operation::Sql(statement)
        };
        commands.push(Command { first_line: source.lines().next().unwrap_or("").to_owned(), operation });
    }
    if commands.is_empty() {
        let message = "empty command list".to_owned();
        return Err(ScriptError { script: description.to_owned(), line: 1, message });
    }
    Ok(Script { description: description.to_owned(), weight, commands })
}

/// The commands of a text, each with the line it starts on (from 1).
fn split(text: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut statement = String::new();
    let mut started = 0;
    for (number, line) in text.lines().enumerate() {
        if statement.is_empty() {
            started = number + 1;
            if line.trim_start().starts_with('\\') {
                commands.push((started, line.trim().to_owned()));
                continue;
            }
        } else {
            statement.push('\n');
        }
        statement.push_str(if statement.is_empty() { line.trim_start() } else { line });
        if statement.trim_end().ends_with(';') {
            commands.push((started, statement.trim_end().to_owned()));
            statement.clear();
        }
    }
    if !statement.trim().is_empty() {
        commands.push((started, statement.trim_end().to_owned()));
    }
    commands
}

fn compile_meta(meta: &str, symbols: &mut Symbols) -> Result<Operation, String> {
    let (word, rest) = meta.split_once(char::is_whitespace).unwrap_or((meta, ""));
    if word != "set" {
        return Err(format!("invalid command in command \"{word}\""));
    }
    let rest = rest.trim_start();
    let (name, source) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() || source.trim().is_empty() {
        return Err("missing argument in command \"set\"".to_owned());
    }
    let expression = expression::parse(source, symbols)
        .map_err(|(column, message)| format!("{message} in command \"set\" at \"{}\"", &source[column..]))?;
    Ok(Operation::Set { slot: symbols.slot(name), expression })
}

/// Cuts `:name` out of a statement; `::` is a cast and stays.
fn compile_sql(text: &str, id: usize, name: &str, symbols: &mut Symbols) -> Statement {
    let (mut pieces, mut holes, mut piece) = (Vec::new(), Vec::new(), String::new());
    let mut rest = text;
    while let Some(colon) = rest.find(':') {
        let after = &rest[colon + 1..];
        let length = after.find(|c: char| !is_variable(c)).unwrap_or(after.len());
        if length > 0 {
            piece.push_str(&rest[..colon]);
            pieces.push(std::mem::take(&mut piece));
            holes.push(symbols.slot(&after[..length]));
            rest = &after[length..];
        } else {
            let colons = after.len() - after.trim_start_matches(':').len();
            let mut end = colon + 1 + colons;
            if colons > 0 {
                end += after[colons..].find(|c: char| !is_variable(c)).unwrap_or(after.len() - colons);
            }
            piece.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    piece.push_str(rest);
    pieces.push(piece);
    Statement::new(id, name, pieces, holes)
}

fn is_variable(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::statement::QueryMode;
    use crate::program::value::Value;

    fn simple_text(sql: &str) -> String {
        let mut symbols = Symbols::default();
        let statement = compile_sql(sql, 0, "P0_0", &mut symbols);
        let mut out = Vec::new();
        statement.encode(QueryMode::Simple, false, &vec![Value::Int(5); symbols.len()], &mut out);
        String::from_utf8(out[5..out.len() - 1].to_vec()).unwrap()
    }

    #[test]
    fn variables_are_replaced_and_casts_are_not() {
        assert_eq!(simple_text("SELECT :a + :b_2;"), "SELECT 5 + 5;");
        assert_eq!(simple_text("SELECT '1'::int, :a::text;"), "SELECT '1'::int, 5::text;");
        assert_eq!(simple_text("SELECT a[1:2] : ;"), "SELECT a[15] : ;");
    }

    #[test]
    fn statements_may_span_lines_and_report_their_first() {
        let script = compile("s", 1, "\\set a 1\n\nSELECT\n  :a;\nSELECT 2", 0, &mut Symbols::default()).unwrap();
        let lines: Vec<_> = script.commands.iter().map(|c| c.first_line.as_str()).collect();
        assert_eq!(lines, ["\\set a 1", "SELECT", "SELECT 2"]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = compile("my.sql", 1, "SELECT 1;\n\\frobnicate\n", 0, &mut Symbols::default()).unwrap_err();
        assert_eq!(error.to_string(), "my.sql:2: invalid command in command \"frobnicate\"");
        assert!(compile("e", 1, "\n", 0, &mut Symbols::default()).is_err());
    }
}
