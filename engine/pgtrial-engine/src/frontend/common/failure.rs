//! The reason for which a front end rejects a command line or a command fails. The caller that prints it adds the
//! program's name.

use std::fmt::Display;

use super::pooling::PoolError;
use super::sharing::SharingError;
use super::values::ValueError;
use drive::start_at::StartError;
use ground::getopt::GetoptError;
use ground::interrupt::SignalError;
use ground::output::CouldNot;
use tables::TablesError;

/// A failure of one error or more, with details and hints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub parts: Vec<FailurePart>,
    /// True if the command line was misused, so that the help would help.
    pub is_misuse: bool,
}

/// A part of a failure. All kinds except the last are printed with the program's name before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailurePart {
    Error(String),
    /// The message of `getopt_long` about a command line.
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

    /// Makes a failure about wrong arguments.
    pub fn misuse(message: impl Display) -> Self {
        Self { is_misuse: true, ..Self::error(message) }
    }

    /// Adds a detail to the last error.
    pub fn detail(self, text: impl Display) -> Self {
        self.with(FailurePart::Detail(text.to_string()))
    }

    /// Adds a hint to the last error.
    pub fn hint(self, text: impl Display) -> Self {
        self.with(FailurePart::Hint(text.to_string()))
    }

    /// Adds another error to the failure.
    pub fn and(self, message: impl Display) -> Self {
        self.with(FailurePart::Error(message.to_string()))
    }

    /// Adds lines without the program's name.
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

/// Implements the conversion to a failure for error types whose messages are whole sentences.
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
