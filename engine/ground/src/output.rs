//! Standard output and standard error of the program.
//!
//! Each call writes its text in one piece. An error (a closed pipe) does not end the run: it is ignored.

use std::fmt;
use std::io::{self, Write};

/// Writes results, reports and help to standard output, and flushes it.
pub fn print_stdout(text: impl fmt::Display) {
    let mut out = io::stdout();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Writes messages and progress to standard error.
pub fn print_stderr(text: impl fmt::Display) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Makes "could not WHAT: REASON" of an error.
pub fn could_not(what: impl fmt::Display) -> impl FnOnce(io::Error) -> String {
    move |error| format!("could not {what}: {}", plain_io_message(&error))
}

/// The system's message without Rust's error number, as `strerror` returns it.
pub fn plain_io_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
