//! The file of a transaction log. Lines are collected in a buffer, which is written to the file when it is full.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ground::output::could_not;

/// The number of bytes in the buffer at which it is written to the file.
const FULL: usize = 64 * 1024;

/// An upper limit for the length of a line, in bytes.
const LONGEST_LINE: usize = 1024;

/// A log file that remembers its first error and writes nothing after that.
pub struct LogFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

impl LogFile {
    /// Creates the file, or truncates it if it exists.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = ground::trust::create_file(&path).map_err(|error| sentence("open", &path, error))?;
        Ok(Self { path, file, buffer: Vec::with_capacity(FULL + LONGEST_LINE), error: None })
    }

    /// Returns the buffer to which the next line is appended.
    #[inline]
    pub fn line(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Completes the current line. Writes the buffer to the file if it is full.
    #[inline]
    pub fn end_line(&mut self) {
        if self.buffer.len() >= FULL {
            self.flush();
        }
    }

    /// Writes the lines that are still in the buffer. Returns the first error that occurred in any write to the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.error.map_or(Ok(()), Err)
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.file.write_all(&self.buffer).err().map(|error| sentence("write", &self.path, error));
        }
        self.buffer.clear();
    }
}

fn sentence(what: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), could_not(format_args!("{what} logfile \"{}\"", ground::text::of_path(path)))(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told_once_at_the_end() {
        let mut file = LogFile::create("/dev/full".into()).unwrap();
        for _ in 0..FULL {
            file.line().extend_from_slice(b"0 1 2 3\n");
            file.end_line();
        }
        let error = file.finish().unwrap_err();
        assert_eq!(error.to_string(), "could not write logfile \"/dev/full\": No space left on device");
    }
}
