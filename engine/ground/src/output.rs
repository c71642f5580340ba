//! Standard output and standard error of the program.
//!
//! Each call writes its text in one piece. A closed pipe ends the program by SIGPIPE, as it ends pgbench and sysbench:
//! Rust's runtime ignores this signal, so that closed sockets do not end the program. Other errors are ignored.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;
use thiserror::Error;

use crate::text;
use crate::trust::create_file;

/// Writes results, reports and help to standard output, and flushes it.
pub fn print_stdout(shown: impl fmt::Display) {
    let mut out = io::stdout();
    let _ = heed_closed_pipe(out.write_all(&text::bytes(&shown.to_string())).and_then(|()| out.flush()));
}

/// Writes messages and progress to standard error.
pub fn print_stderr(shown: impl fmt::Display) {
    write_stderr(&text::bytes(&shown.to_string()));
}

/// Writes bytes to standard error as they are.
pub fn write_stderr(bytes: &[u8]) {
    let _ = heed_closed_pipe(io::stderr().write_all(bytes));
}

/// Ends the program by SIGPIPE if `written` failed because nobody reads the pipe any more; returns other results.
pub fn heed_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    if matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        emulate_default_handler(SIGPIPE)?;
    }
    written
}

/// A file that is written while a run goes on, or standard output.
pub struct OutputFile {
    out: BufWriter<Box<dyn Write + Send>>,
    /// The name of the file in messages about a failed write.
    pub name: String,
}

impl OutputFile {
    /// Returns standard output, by this name.
    pub fn stdout(name: &str) -> Self {
        Self { out: BufWriter::new(Box::new(io::stdout())), name: name.to_owned() }
    }

    /// Creates a new file, which replaces an old one. Its name is its path in quotes after its kind.
    pub fn create(kind: &str, path: &Path) -> Result<Self, CouldNot> {
        let name = format!("{kind}\"{}\"", text::of_path(path));
        let file = create_file(path).map_err(could_not(format_args!("open {name}")))?;
        Ok(Self { out: BufWriter::new(Box::new(file)), name })
    }

    /// Hands to the system what `write` writes.
    pub fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CouldNot> {
        let written = write(&mut self.out).and_then(|()| self.out.flush());
        written.map_err(could_not(format_args!("write {}", self.name)))
    }
}

/// The error of an action that failed, with the reason that the operating system gives.
#[derive(Debug, Error)]
#[error("could not {what}: {}", plain_io_message(source))]
pub struct CouldNot {
    what: String,
    source: io::Error,
}

/// Makes "could not WHAT: REASON" of an error.
pub fn could_not(what: impl fmt::Display) -> impl FnOnce(io::Error) -> CouldNot {
    move |source| CouldNot { what: what.to_string(), source }
}

/// Returns the system's message without the number that Rust adds to it, as `strerror` returns it.
pub fn plain_io_message(error: &io::Error) -> String {
    let text = error.to_string();
    let number = error.raw_os_error().map(|number| format!(" (os error {number})"));
    number.and_then(|number| text.strip_suffix(&number).map(str::to_owned)).unwrap_or(text)
}
