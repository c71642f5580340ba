//! The errors for which a script is refused, in pgbench's lines.

use std::fmt;

/// A script that cannot be run. It is shown as pgbench shows it, without the program's name before the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    message: String,
    /// The command as it stands in the script, and the column of the mistake from 0.
    line: Option<(String, Option<usize>)>,
}

impl ScriptError {
    /// Makes an error of a whole script or statement.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), line: None }
    }

    /// Adds the command's text and the column of the mistake.
    pub fn at(mut self, line: String, column: Option<usize>) -> Self {
        self.line = Some((line, column));
        self
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((line, column)) = &self.line {
            write!(f, "\n{line}")?;
            if let Some(column) = column {
                write!(f, "\n{:>width$} error found here", '^', width = column + 1)?;
            }
        }
        Ok(())
    }
}
