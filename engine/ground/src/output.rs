//! What the programs write for people. That nobody reads it is no reason to stop.

use std::fmt;
use std::io::Write;

/// Writes on standard error as it is, in one piece.
pub fn tell(text: impl fmt::Display) {
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}

/// Writes on standard output as it is, before anything that follows on standard error.
pub fn print(text: impl fmt::Display) {
    let mut out = std::io::stdout();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// The system's words without Rust's error number, as `strerror` gives them.
pub fn plain_io_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
