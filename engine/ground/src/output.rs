//! Standard output and standard error of the program.
//!
//! Each call writes its text in one piece. An error (a closed pipe) does not end the run: it is ignored.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::text;

/// Writes results, reports and help to standard output, and flushes it.
pub fn print_stdout(shown: impl fmt::Display) {
    let mut out = io::stdout();
    let _ = out.write_all(&text::bytes(&shown.to_string())).and_then(|()| out.flush());
}

/// Writes messages and progress to standard error.
pub fn print_stderr(shown: impl fmt::Display) {
    let _ = io::stderr().write_all(&text::bytes(&shown.to_string()));
}

/// A file that is written while a run goes on, or standard output. Errors are sentences.
pub struct OutputFile {
    out: BufWriter<Box<dyn Write>>,
    /// What could not be written, if that fails.
    pub name: String,
}

impl OutputFile {
    /// Standard output, by this name.
    pub fn stdout(name: &str) -> Self {
        Self { out: BufWriter::new(Box::new(io::stdout())), name: name.to_owned() }
    }

    /// A new file, which replaces an old one. Its name is its path in quotes after its kind.
    pub fn create(kind: &str, path: &Path) -> Result<Self, String> {
        let name = format!("{kind}\"{}\"", text::of_path(path));
        let file = File::create(path).map_err(could_not(format_args!("open {name}")))?;
        Ok(Self { out: BufWriter::new(Box::new(file)), name })
    }

    /// Hands to the system what `write` writes.
    pub fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        let written = write(&mut self.out).and_then(|()| self.out.flush());
        written.map_err(could_not(format_args!("write {}", self.name)))
    }
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
