//! The error type of front ends: why a command line is rejected or a command fails. The messages do not contain the
//! program's name; it is added when the failure is printed.

use std::fmt::Display;

use super::pooling::PoolError;
use super::sharing::SharingError;
use super::values::ValueError;
use drive::start_at::StartError;
use ground::getopt::GetoptError;
use ground::interrupt::SignalError;
use ground::output::CouldNot;
use tables::TablesError;

/// One or more errors, each with its details and hints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub parts: Vec<FailurePart>,
    /// True if the command line is wrong. The printed failure then advises to read `--help`.
    pub is_misuse: bool,
}

/// A line or several lines of a failure, each kind printed in its own form. All except `Plain` are printed with the
/// program's name before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailurePart {
    Error(String),
    /// An error in the command line, in the words of C's `getopt_long`.
    Usage(String),
    Detail(String),
    Hint(String),
    /// Lines that are printed without the program's name.
    Plain(String),
}

impl Failure {
    /// Makes a failure with one error.
    pub fn error(message: impl Display) -> Self {
        Self { parts: vec![FailurePart::Error(message.to_string())], is_misuse: false }
    }

    /// Makes a failure with one error about a wrong command line.
    pub fn misuse(message: impl Display) -> Self {
        Self { is_misuse: true, ..Self::error(message) }
    }

    /// Adds a detail to the last error: a line that explains it, printed after `detail:`.
    pub fn detail(self, text: impl Display) -> Self {
        self.with(FailurePart::Detail(text.to_string()))
    }

    /// Adds a hint to the last error: a line that says what the user can do, printed after `hint:`.
    pub fn hint(self, text: impl Display) -> Self {
        self.with(FailurePart::Hint(text.to_string()))
    }

    /// Adds another error, which is printed after the errors that the failure has already.
    pub fn and(self, message: impl Display) -> Self {
        self.with(FailurePart::Error(message.to_string()))
    }

    /// Adds lines that are printed without the program's name before them.
    pub fn plain(self, text: &str) -> Self {
        self.with(FailurePart::Plain(text.strip_suffix('\n').unwrap_or(text).to_owned()))
    }

    fn with(mut self, part: FailurePart) -> Self {
        self.parts.push(part);
        self
    }
}

impl From<GetoptError> for Failure {
    fn from(error: GetoptError) -> Self {
        Self { parts: vec![FailurePart::Usage(error.to_string())], is_misuse: true }
    }
}

/// Implements the conversion to a [`Failure`] for error types whose messages are whole sentences.
macro_rules! sentences {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::error(error)
            }
        })+
    };
}

sentences!(CouldNot, TablesError, ValueError, SharingError, PoolError, StartError, SignalError);
