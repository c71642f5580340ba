//! Messages as PostgreSQL's client programs write them.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ground::getopt::GetoptError;
use ground::output::{CouldNot, print_stderr};
use ground::text;
use tables::TablesError;

/// The version of pgbench whose behaviour this front end has.
pub const VERSION: &str = "18";

/// The program's name in its messages.
pub const PROGRAM: &str = "pgbench";

/// Why a command line is rejected or a command fails: one or more messages, each with the program's name, and details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    lines: Vec<String>,
    /// The first message alone.
    pub sentence: String,
    /// Whether the command line was misused, so that the help would help.
    pub is_misuse: bool,
}

impl Failure {
    /// One error.
    pub fn error(message: impl fmt::Display) -> Self {
        let sentence = message.to_string();
        Self { lines: vec![format!("pgbench: error: {sentence}")], sentence, is_misuse: false }
    }

    /// Wrong arguments.
    pub fn misuse(message: impl fmt::Display) -> Self {
        Self { is_misuse: true, ..Self::error(message) }.hint("Try \"pgbench --help\" for more information.")
    }

    /// In one sentence, as a front end of another name says it.
    pub fn told_by(&self, name: &str) -> String {
        let hint = if self.is_misuse { format!("; try \"{name} --help\"") } else { String::new() };
        format!("{name}: error: {}{hint}", self.sentence)
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

impl From<CouldNot> for Failure {
    fn from(error: CouldNot) -> Self {
        Self::error(error)
    }
}

impl From<TablesError> for Failure {
    fn from(error: TablesError) -> Self {
        Self::error(error)
    }
}

impl From<String> for Failure {
    fn from(sentence: String) -> Self {
        Self::error(sentence)
    }
}

/// glibc's messages have no `error:`, and begin with the program as it was called.
impl From<GetoptError> for Failure {
    fn from(error: GetoptError) -> Self {
        let mut failure = Self::misuse(&error);
        failure.lines[0] = format!("{}: {error}", called_name());
        failure
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// The name by which the program was called, if that is a path to a link named `pgbench`.
fn called_name() -> String {
    let name = std::env::args_os().next().unwrap_or_default();
    let is_link = Path::new(&name).file_name() == Some(OsStr::new("pgbench"));
    if is_link { text::of(name.as_bytes()) } else { "pgbench".to_owned() }
}

/// Writes a message without a level to standard error.
pub fn info(message: impl fmt::Display) {
    print_stderr(format_args!("pgbench: {message}\n"));
}

/// Writes a warning to standard error.
pub fn warning(message: impl fmt::Display) {
    print_stderr(format_args!("pgbench: warning: {message}\n"));
}

/// Writes an error that does not end the run to standard error.
pub fn error(message: impl fmt::Display) {
    print_stderr(format_args!("pgbench: error: {message}\n"));
}
