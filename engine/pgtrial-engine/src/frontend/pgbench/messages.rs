//! Messages as PostgreSQL's client programs write them.

use std::fmt;

use ground::output::print_stderr;

/// A refusal or a failure: one or more messages, each prefixed with the program's name, and what follows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    lines: Vec<String>,
}

impl Failure {
    /// One error.
    pub fn error(message: impl fmt::Display) -> Self {
        Self { lines: vec![format!("pgbench: error: {message}")] }
    }

    /// Several errors.
    pub fn lines(messages: &[&str]) -> Self {
        Self { lines: messages.iter().map(|message| format!("pgbench: error: {message}")).collect() }
    }

    /// A misuse of the command line in getopt's words, with the hint that follows it.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { lines: vec![message.to_string()] }.hint("Try \"pgbench --help\" for more information.")
    }

    /// Adds a detail.
    pub fn detail(mut self, text: impl fmt::Display) -> Self {
        self.lines.push(format!("pgbench: detail: {text}"));
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, text: impl fmt::Display) -> Self {
        self.lines.push(format!("pgbench: hint: {text}"));
        self
    }

    /// Adds another error.
    pub fn and(mut self, message: impl fmt::Display) -> Self {
        self.lines.push(format!("pgbench: error: {message}"));
        self
    }

    /// Adds text that stands without the program's name; it ends with a line feed like the other lines.
    pub fn plain(mut self, text: &str) -> Self {
        self.lines.push(text.strip_suffix('\n').unwrap_or(text).to_owned());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// Says something worth knowing on standard error.
pub fn info(message: impl fmt::Display) {
    print_stderr(format_args!("pgbench: {message}\n"));
}

/// Warns on standard error.
pub fn warning(message: impl fmt::Display) {
    print_stderr(format_args!("pgbench: warning: {message}\n"));
}

/// Reports an error that does not end the run.
pub fn error(message: impl fmt::Display) {
    print_stderr(format_args!("pgbench: error: {message}\n"));
}
