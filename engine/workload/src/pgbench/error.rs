//! Errors in scripts, with pgbench's messages.

use std::fmt;

/// An error because of which a script cannot run. Its message equals pgbench's message, without the name of the program
/// in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    message: String,
    /// The text of the command in the script, and the column of the mistake, counted from 0, if it is known.
    line: Option<(String, Option<usize>)>,
}

impl ScriptError {
    /// Makes an error about a whole script or statement.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), line: None }
    }

    /// Adds the text of the command and the column of the mistake to the error.
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
