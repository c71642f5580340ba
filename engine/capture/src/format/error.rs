//! The errors of reading and writing a capture.

use std::io;
use std::path::{Path, PathBuf};

use ground::output::plain_io_message;
use thiserror::Error;

/// An error of reading or writing a capture. Each message is a sentence.
#[derive(Debug, Error)]
pub enum Error {
    #[error("could not {what} \"{}\": {}", path.display(), plain_io_message(error))]
    Io { what: &'static str, path: PathBuf, error: io::Error },
    #[error("\"{}\" is not a capture: it has no capture.json. Name a directory that pgtrial capture has written", .0.display())]
    NotACapture(PathBuf),
    #[error("the capture in \"{}\" was not finished. Make it again from the logs", .0.display())]
    Unfinished(PathBuf),
    #[error(
        "\"{}\" is cut short: it has {has} bytes of {expected}. Copy the capture again or make it again from the logs",
        path.display()
    )]
    CutShort { path: PathBuf, has: u64, expected: u64 },
    #[error("\"{}\" is damaged ({what}). Copy the capture again or make it again from the logs", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "the capture in \"{}\" has format {found}, and this release reads formats up to {readable}. Use a newer pgtrial",
        path.display()
    )]
    Newer { path: PathBuf, found: u64, readable: u32 },
    #[error("\"{}\" is not empty. Name a new directory for the capture", .0.display())]
    Occupied(PathBuf),
    #[error("the capture has more than 4294967295 {0}, the most that its format can hold. Capture a shorter time")]
    TooMany(&'static str),
}

impl Error {
    /// Returns a function that turns an error of the operating system into "could not WHAT PATH: REASON".
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, path: path.to_owned(), error }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}
