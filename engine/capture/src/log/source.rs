//! A log as lines: a file or standard input.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use ground::output::could_not;

use super::envelope::{Envelope, Unwrapped, foreign_form};
use crate::error::CaptureError;

/// How much of a log decides its format.
const HEAD: u64 = 256 << 10;

/// A log that is read once, line by line.
pub struct Lines {
    input: BufReader<Box<dyn Read>>,
    name: String,
    line: Vec<u8>,
    number: u64,
    bytes: Rc<Cell<u64>>,
    /// Whether lines end as on Windows. Elsewhere a carriage return belongs to the statement.
    has_returns: bool,
}

/// A line without its end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    pub bytes: &'a [u8],
    /// Whether its end is in the log.
    pub is_whole: bool,
}

impl<'a> Line<'a> {
    /// The text, if it is UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes).ok()
    }

    /// Whether a file system has put zeros in the place of what it lost: texts of PostgreSQL have none.
    pub fn has_hole(&self) -> bool {
        memchr::memchr(0, self.bytes).is_some()
    }
}

impl Lines {
    /// Opens a file, or standard input for `-`. Returns its lines and its first part, in which the last line may be cut.
    pub fn open(name: &str) -> Result<(Self, Vec<u8>), CaptureError> {
        let input: Box<dyn Read> = match name {
            "-" => Box::new(io::stdin()),
            _ => Box::new(
                File::open(ground::text::path(name)).map_err(could_not(format_args!("open the log \"{name}\"")))?,
            ),
        };
        Self::new(name, input)
    }

    fn new(name: &str, mut input: Box<dyn Read>) -> Result<(Self, Vec<u8>), CaptureError> {
        let mut head = Vec::new();
        let read = input.by_ref().take(HEAD).read_to_end(&mut head);
        read.map_err(could_not(format_args!("read the log \"{name}\"")))?;
        if head.starts_with(&[0x1f, 0x8b]) {
            return Err(CaptureError::Compressed(name.to_owned()));
        }
        if let Some((form, cure)) = foreign_form(&head) {
            return Err(CaptureError::Foreign { log: name.to_owned(), form, cure });
        }
        let mut whole: Box<dyn Read> = Box::new(Cursor::new(head.clone()).chain(input));
        if let Some(envelope) = Envelope::of(&head) {
            let unwrapped = |input| Unwrapped::new(BufReader::with_capacity(HEAD as usize, input), envelope);
            let mut inner = unwrapped(whole);
            head.clear();
            inner
                .by_ref()
                .take(HEAD)
                .read_to_end(&mut head)
                .map_err(could_not(format_args!("read the log \"{name}\"")))?;
            whole = Box::new(Cursor::new(head.clone()).chain(inner));
        }
        let has_returns = ends_as_on_windows(&head);
        let input = BufReader::with_capacity(HEAD as usize, whole);
        Ok((
            Self { input, name: name.to_owned(), line: Vec::new(), number: 0, bytes: Rc::default(), has_returns },
            head,
        ))
    }

    /// Lines of a text, for tests.
    #[cfg(test)]
    pub fn of(text: &[u8]) -> Self {
        Self::new("test", Box::new(Cursor::new(text.to_vec()))).expect("memory can be read").0
    }

    /// Reads the next line.
    pub fn next(&mut self) -> Result<Option<Line<'_>>, CaptureError> {
        self.line.clear();
        self.line.shrink_to(1 << 20);
        let read = self.input.read_until(b'\n', &mut self.line);
        let length = read.map_err(could_not(format_args!("read the log \"{}\"", self.name)))?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes.set(self.bytes.get() + length as u64);
        let whole = self.line.strip_suffix(b"\n");
        let bytes = whole.unwrap_or(&self.line);
        let bytes = bytes.strip_suffix(b"\r").filter(|_| self.has_returns).unwrap_or(bytes);
        Ok(Some(Line { number: self.number, bytes, is_whole: whole.is_some() }))
    }

    /// How many bytes have been read; it goes on counting.
    pub fn bytes(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.bytes)
    }
}

/// Whether all lines of a text, of which the last one may be cut, end with a carriage return.
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
        let mut lines = Lines::of(b"INSERT (\r\n\t1);\n'a\r\n\tb'\n");
        for expected in [&b"INSERT (\r"[..], b"\t1);", b"'a\r", b"\tb'"] {
            assert_eq!(lines.next().unwrap().unwrap().bytes, expected);
        }
    }

    #[test]
    fn lines_come_without_their_ends() {
        let mut lines = Lines::of(b"a\n\nb\r\nc");
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.number, line.text().unwrap().to_owned(), line.is_whole));
        }
        let expected = [(1, "a", true), (2, "", true), (3, "b\r", true), (4, "c", false)];
        assert_eq!(found, expected.map(|(number, text, whole)| (number, text.to_owned(), whole)));
        assert_eq!(lines.bytes().get(), 7);
    }

    #[test]
    fn a_log_of_windows_has_no_returns_in_its_lines() {
        let mut lines = Lines::of(b"a\r\nb\r\n");
        for expected in [b"a", b"b"] {
            assert_eq!(lines.next().unwrap().unwrap().bytes, expected);
        }
    }
}
