//! Standard output and standard error of the program.
//!
//! Each call writes its text in one piece. If the reader has closed the pipe, the program is ended by SIGPIPE, as
//! pgbench and sysbench are. Rust's runtime ignores this signal, so that a closed socket does not end the program;
//! therefore this module raises it. Other errors of writing are ignored.

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

/// Writes bytes to standard error without any change.
pub fn write_stderr(bytes: &[u8]) {
    let _ = heed_closed_pipe(io::stderr().write_all(bytes));
}

/// Ends the program by SIGPIPE if `written` failed because the reader has closed the pipe. Returns all other results.
pub fn heed_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    if matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        emulate_default_handler(SIGPIPE)?;
    }
    written
}

/// An output that is written while a run goes on: a file or standard output.
pub struct OutputFile {
    out: BufWriter<Box<dyn Write + Send>>,
    /// The name of the output in messages about a failed write.
    pub name: String,
}

impl OutputFile {
    /// Makes an output to standard output, which messages call `name`.
    pub fn stdout(name: &str) -> Self {
        Self { out: BufWriter::new(Box::new(io::stdout())), name: name.to_owned() }
    }

    /// Creates a file, or truncates an existing one. Messages call it by its kind and its quoted path.
    pub fn create(kind: &str, path: &Path) -> Result<Self, CouldNot> {
        let name = format!("{kind}\"{}\"", text::of_path(path));
        let file = create_file(path).map_err(could_not(format_args!("open {name}")))?;
        Ok(Self { out: BufWriter::new(Box::new(file)), name })
    }

    /// Calls `write` to write to the output, and flushes it.
    pub fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CouldNot> {
        let written = write(&mut self.out).and_then(|()| self.out.flush());
        written.map_err(could_not(format_args!("write {}", self.name)))
    }
}

/// The error of an action that failed, with the reason from the operating system.
#[derive(Debug, Error)]
#[error("could not {what}: {}", plain_io_message(source))]
pub struct CouldNot {
    what: String,
    source: io::Error,
}

/// Makes the error "could not WHAT: REASON" from an error of the operating system.
pub fn could_not(what: impl fmt::Display) -> impl FnOnce(io::Error) -> CouldNot {
    move |source| CouldNot { what: what.to_string(), source }
}

/// Returns the operating system's message as `strerror` does, without the error number that Rust adds to it.
pub fn plain_io_message(error: &io::Error) -> String {
    let text = error.to_string();
    let number = error.raw_os_error().map(|number| format!(" (os error {number})"));
    number.and_then(|number| text.strip_suffix(&number).map(str::to_owned)).unwrap_or(text)
}
