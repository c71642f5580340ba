//! Reads the lines of a log from a file or from standard input, and decompresses them if necessary.

use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;

use ground::output::could_not;

use super::compressed::{Compression, ReadCounts, Unpacked};
use super::envelope::{Envelope, Unwrapped, foreign_form};
use super::line::{LONGEST_LINE, read_line};
use crate::error::CaptureError;

/// The number of bytes at the beginning of a log from which its format is detected.
const HEAD: u64 = 256 << 10;

/// A log that is read once, line by line.
pub struct LogLines {
    input: BufReader<Box<dyn Read>>,
    name: String,
    line: Vec<u8>,
    counts: Rc<ReadCounts>,
    /// True if lines end with a carriage return and a line feed, as on Windows. If false, a carriage return belongs to
    /// the text.
    has_returns: bool,
}

/// A line without its line end.
#[derive(Debug, Clone, Copy)]
pub struct LogLine<'a> {
    /// The number of the line, counted from 1.
    pub number: u64,
    pub bytes: &'a [u8],
    /// True if the log contains the line's end. False for a last line that was cut off.
    pub is_whole: bool,
}

impl<'a> LogLine<'a> {
    /// Returns the text of the line, or `None` if it is not valid UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes).ok()
    }

    /// True if the line has zero bytes. PostgreSQL writes none, so a file system has filled lost data with them.
    pub fn has_hole(&self) -> bool {
        memchr::memchr(0, self.bytes).is_some()
    }
}

impl LogLines {
    /// Opens a file, or standard input for `-`. Returns a reader of its lines, and the beginning of the log, whose last
    /// line may be incomplete.
    pub fn open(name: &str) -> Result<(Self, Vec<u8>), CaptureError> {
        let input: Box<dyn Read> = match name {
            "-" => Box::new(io::stdin()),
            _ => Box::new(
                ground::trust::open_file(&ground::text::path(name))
                    .map_err(could_not(format_args!("open the log \"{name}\"")))?,
            ),
        };
        Self::new(name, input)
    }

    fn new(name: &str, input: Box<dyn Read>) -> Result<(Self, Vec<u8>), CaptureError> {
        let counts = Rc::<ReadCounts>::default();
        let (mut whole, mut head) = peek(name, Box::new(Counted { input, counts: Rc::clone(&counts) }))?;
        if let Some(compression) = Compression::of(&head) {
            (whole, head) = peek(name, Box::new(Unpacked::new(compression, whole, &counts)))?;
        }
        if let Some((form, cure)) = foreign_form(&head) {
            return Err(CaptureError::Foreign { log: name.to_owned(), form, cure });
        }
        if let Some(envelope) = Envelope::of(&head) {
            let input = BufReader::with_capacity(HEAD as usize, whole);
            (whole, head) = peek(name, Box::new(Unwrapped::new(input, envelope)))?;
        }
        let has_returns = ends_as_on_windows(&head);
        let input = BufReader::with_capacity(HEAD as usize, whole);
        Ok((Self { input, name: name.to_owned(), line: Vec::new(), counts, has_returns }, head))
    }

    /// Returns the lines of a text, for tests.
    #[cfg(test)]
    pub fn of(text: &[u8]) -> Self {
        Self::new("test", Box::new(Cursor::new(text.to_vec()))).expect("memory can be read").0
    }

    /// Returns the next line, or `None` at the end of the log.
    pub fn next(&mut self) -> Result<Option<LogLine<'_>>, CaptureError> {
        self.line.clear();
        self.line.shrink_to(1 << 20);
        let read = read_line(&mut self.input, &mut self.line, LONGEST_LINE);
        let length = read.map_err(could_not(format_args!("read the log \"{}\"", self.name)))?;
        if length == 0 {
            return Ok(None);
        }
        let ReadCounts { bytes, lines, .. } = &*self.counts;
        lines.set(lines.get() + 1);
        bytes.set(bytes.get() + length);
        let whole = self.line.strip_suffix(b"\n");
        let text = whole.unwrap_or(&self.line);
        let text = text.strip_suffix(b"\r").filter(|_| self.has_returns).unwrap_or(text);
        Ok(Some(LogLine { number: lines.get(), bytes: text, is_whole: whole.is_some() }))
    }

    /// Returns the counts that show how far the log has been read. They are shared with this reader, which updates
    /// them.
    pub fn counts(&self) -> Rc<ReadCounts> {
        Rc::clone(&self.counts)
    }
}

/// Reads the first bytes of an input. Returns a reader of the whole input, and these bytes.
fn peek(name: &str, mut input: Box<dyn Read>) -> Result<(Box<dyn Read>, Vec<u8>), CaptureError> {
    let mut head = Vec::new();
    let read = input.by_ref().take(HEAD).read_to_end(&mut head);
    read.map_err(could_not(format_args!("read the log \"{name}\"")))?;
    Ok((Box::new(Cursor::new(head.clone()).chain(input)), head))
}

/// A reader of a file that counts the bytes that were read.
struct Counted {
    input: Box<dyn Read>,
    counts: Rc<ReadCounts>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.counts.read.set(self.counts.read.get() + count as u64);
        Ok(count)
    }
}

/// True if all lines of a text end with a carriage return. The last line, which may be incomplete, is ignored.
fn ends_as_on_windows(head: &[u8]) -> bool {
    let mut lines: Vec<&[u8]> = head.split(|c| *c == b'\n').collect();
    lines.pop();
    !lines.is_empty() && lines.iter().all(|line| line.ends_with(b"\r"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_at_the_end_of_some_lines_belongs_to_the_text() {
        let mut lines = LogLines::of(b"INSERT (\r\n\t1);\n'a\r\n\tb'\n");
        for expected in [&b"INSERT (\r"[..], b"\t1);", b"'a\r", b"\tb'"] {
            assert_eq!(lines.next().unwrap().unwrap().bytes, expected);
        }
    }

    #[test]
    fn lines_come_without_their_ends() {
        let mut lines = LogLines::of(b"a\n\nb\r\nc");
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.number, line.text().unwrap().to_owned(), line.is_whole));
        }
        let expected = [(1, "a", true), (2, "", true), (3, "b\r", true), (4, "c", false)];
        assert_eq!(found, expected.map(|(number, text, whole)| (number, text.to_owned(), whole)));
        assert_eq!(lines.counts().bytes.get(), 7);
    }

    #[test]
    fn a_log_of_windows_has_no_returns_in_its_lines() {
        let mut lines = LogLines::of(b"a\r\nb\r\n");
        for expected in [b"a", b"b"] {
            assert_eq!(lines.next().unwrap().unwrap().bytes, expected);
        }
    }
}
