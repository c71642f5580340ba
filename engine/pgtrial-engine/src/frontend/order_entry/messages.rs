//! Messages beside the report.

use std::fmt::Display;

use ground::output::print_stderr;
use tables::order_entry::NAME;

/// Prints a warning.
pub fn warn(message: impl Display) {
    print_stderr(format_args!("{NAME}: warning: {message}\n"));
}

/// Prints an error that does not end the run.
pub fn report_error(message: &str) {
    print_stderr(format_args!("{NAME}: error: {message}\n"));
}
