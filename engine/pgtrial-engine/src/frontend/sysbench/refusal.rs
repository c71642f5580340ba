//! Why sysbench does not do what it was asked for; its exit status is 1.

use std::fmt;
use std::io::Write;

use super::log::{Level, Log};
use ground::output;
use workload::Fatal;

/// What is said of it, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// On standard error, as it is.
    Error(String),
    /// On standard output, as it is.
    Plain(String),
    /// In the log, each line as a fatal one.
    Fatal(Vec<String>),
}

impl Refusal {
    /// One line on standard error.
    pub fn error(line: impl fmt::Display) -> Self {
        Self::Error(line.to_string())
    }

    /// One fatal line.
    pub fn fatal(line: impl fmt::Display) -> Self {
        Self::Fatal(vec![line.to_string()])
    }

    /// Says it.
    pub fn tell<W: Write>(&self, log: &mut Log<W>) {
        match self {
            Self::Error(line) => tell(line),
            Self::Plain(line) => log.always(Level::Notice, line),
            Self::Fatal(lines) => lines.iter().for_each(|line| log.always(Level::Fatal, line)),
        }
    }
}

impl From<Fatal> for Refusal {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal.lines)
    }
}

/// Writes a line on standard error.
pub fn tell(line: &str) {
    output::print_stderr(format_args!("{line}\n"));
}
