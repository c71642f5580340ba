//! Lists the commands of a script for other programs, such as the lab: the lines of the commands, and the statements as
//! a server parses them.

use super::error::ScriptError;
use super::script::{Parsed, ScriptCommand};
use super::sql;
use super::symbols::Symbols;
use wire::statement::QueryMode;

/// A command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCommand {
    /// The number of the command's first line, counted from 1.
    pub line: usize,
    /// The text of the command's first line.
    pub text: String,
    /// The statement, if the command is one; `None` for a backslash command.
    pub statement: Option<ListedStatement>,
}

/// A statement as a server parses it, with `$1`, `$2` and so on in place of the script's variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedStatement {
    pub sql: String,
    /// The names of the variables for which `$1`, `$2` and so on stand.
    pub variables: Vec<String>,
}

/// Returns the commands of a script in the order of the script.
pub fn listed(script: &Parsed) -> Result<Vec<ListedCommand>, ScriptError> {
    let commands = script.commands.iter().zip(&script.lines);
    commands
        .map(|(command, line)| {
            let (text, statement) = match command {
                ScriptCommand::Sql(sql) => (sql::first_line(&sql.text), Some(statement(&sql.text)?)),
                ScriptCommand::Meta(_, text) => (sql::first_line(text.as_bytes()), None),
            };
            Ok(ListedCommand { line: *line, text, statement })
        })
        .collect()
}

fn statement(text: &[u8]) -> Result<ListedStatement, ScriptError> {
    let mut symbols = Symbols::default();
    let statement = sql::compile(text, 0, QueryMode::Extended, &mut symbols)?;
    let variables = statement.variables().map(str::to_owned).collect();
    Ok(ListedStatement { sql: statement.text().unwrap_or_default().to_owned(), variables })
}

#[cfg(test)]
mod tests {
    use super::super::script::parse;
    use super::*;

    #[test]
    fn a_command_has_the_line_on_which_it_begins() {
        let text = "-- about\n\n\\set a 1\nSELECT :a,\n  :b + :a;  /* x */ SELECT\n2\n\\gset\n\nEND;";
        let script = parse("s.sql", 1, text.as_bytes()).unwrap();
        let found = listed(&script).unwrap();
        let places: Vec<_> = found.iter().map(|command| (command.line, command.text.as_str())).collect();
        assert_eq!(places, [(3, "\\set a 1"), (4, "SELECT :a,"), (5, "/* x */ SELECT"), (9, "END;")]);
        let statement = found[1].statement.as_ref().unwrap();
        assert_eq!(statement.sql, "SELECT $1,\n  $2 + $3;");
        assert_eq!(statement.variables, ["a", "b", "a"]);
        assert_eq!(found[0].statement, None);
    }
}
