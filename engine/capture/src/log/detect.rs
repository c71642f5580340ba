//! Detects the format of a log from its beginning.

use std::rc::Rc;

use super::cloud::{self, Service};
use super::compressed::ReadCounts;
use super::csv;
use super::json;
use super::prefix::Prefix;
use super::record::Sink;
use super::row::{begins_row, rows_within};
use super::source::LogLines;
use super::stderr;
use super::words::part_ends;
use crate::error::CaptureError;

/// The format of a log, with the log_line_prefix of its lines if the format has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    Stderr(Prefix),
    Csv,
    Json,
    Cloud(Service, Prefix),
}

/// The number of lines at the beginning of a log from which the format is detected.
const LINES: usize = 50;

impl Format {
    /// Detects the format of a log that begins with `head`.
    fn of(name: &str, head: &[u8], prefix: Option<&Prefix>) -> Result<Self, CaptureError> {
        let text = String::from_utf8_lossy(head);
        let start = text.trim_start();
        let is_array = start.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'));
        if is_array || start.starts_with('{') {
            return if let Some(service) = Service::of(&text) {
                Ok(Self::Cloud(service, prefix_of(name, &cloud::payloads(head, service), prefix)?))
            } else if text.contains("\"error_severity\"") {
                Ok(Self::Json)
            } else {
                Err(CaptureError::OtherJson(name.to_owned()))
            };
        }
        let first_lines = || head.split(|c| *c == b'\n').take(LINES);
        // A line is a row if the row begins before any message in another format, even if the row is behind the remains
        // of a row that was cut off.
        let mut known = first_lines().filter_map(|line| {
            let has_part = |text: &[u8]| part_ends(&String::from_utf8_lossy(text), true).next().is_some();
            let is_row = rows_within(line).next().is_some_and(|at| !has_part(&line[..at]));
            (is_row || has_part(line)).then_some(is_row)
        });
        if first_lines().any(begins_row) || known.next() == Some(true) {
            return Ok(Self::Csv);
        }
        prefix_of(name, &text, prefix).map(Self::Stderr)
    }

    /// Returns the name of the log format as `capture.json` stores it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stderr(_) => "stderr",
            Self::Csv => "csvlog",
            Self::Json => "jsonlog",
            Self::Cloud(service, _) => service.name(),
        }
    }

    /// Returns the `log_line_prefix` with which the lines are read; `None` if the format has no prefix.
    pub fn prefix(&self) -> Option<&Prefix> {
        match self {
            Self::Stderr(prefix) | Self::Cloud(_, prefix) => Some(prefix),
            Self::Csv | Self::Json => None,
        }
    }
}

/// Returns the `log_line_prefix` of the lines. If the user has given one, it must fit at least one line; otherwise it
/// is guessed.
fn prefix_of(name: &str, lines: &str, given: Option<&Prefix>) -> Result<Prefix, CaptureError> {
    let log = || name.to_owned();
    let first = || stderr::shown(lines.lines().next().unwrap_or_default());
    let Some(given) = given else {
        return Prefix::guess(lines).ok_or_else(|| CaptureError::UnknownPrefix { log: log(), first: first() });
    };
    if lines.lines().any(|line| given.read(line).is_some()) {
        return Ok(given.clone());
    }
    let guess = Prefix::guess(lines).map(|guess| guess.text().to_owned());
    Err(CaptureError::AnotherPrefix { log: log(), prefix: given.text().to_owned(), first: first(), guess })
}

/// A log whose format was detected, and which is not read yet.
pub struct DetectedLog {
    lines: LogLines,
    format: Format,
}

impl DetectedLog {
    /// Opens a file, or standard input for `-`, and detects its format. Returns `None` if it is empty.
    pub fn open(name: &str, prefix: Option<&Prefix>) -> Result<Option<Self>, CaptureError> {
        let (lines, head) = LogLines::open(name)?;
        if head.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        Ok(Some(Self { lines, format: Format::of(name, &head, prefix)? }))
    }

    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Returns the counts that show how far the log has been read. They are shared with the reader, which updates them.
    pub fn counts(&self) -> Rc<ReadCounts> {
        self.lines.counts()
    }

    /// Reads the log to its end, and passes each message of the server to `sink` as a record.
    pub fn read(mut self, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        match &self.format {
            Format::Stderr(prefix) => stderr::read(&mut self.lines, prefix, sink),
            Format::Csv => csv::read(&mut self.lines, sink),
            Format::Json => json::read(&mut self.lines, sink),
            Format::Cloud(service, prefix) => cloud::read(&mut self.lines, *service, prefix, sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(head: &str, prefix: Option<&str>) -> Result<Format, CaptureError> {
        let prefix = prefix.map(|text| Prefix::parse(text).unwrap());
        Format::of("x.log", head.as_bytes(), prefix.as_ref())
    }

    #[test]
    fn formats_are_known_by_their_first_lines() {
        for (head, name, prefix) in [
            ("2026-11-23 08:00:00.123 UTC [1] LOG:  a\n", "stderr", Some("%m [%p] ")),
            ("hello\n2026-11-23 08:00:00 UTC:1.1.1.1(1):u@d:[1]:LOG:  a\n", "stderr", Some("%t:%r:%u@%d:[%p]:")),
            ("2026-11-23 08:00:00.1 UTC,,,5,,6560a1b2.5,1,,2026-11-23 08:00:00 UTC,,0,LOG,00000,\"a\n", "csvlog", None),
            (
                "2026-11-23 08:02026-11-23 08:00:00.1 UTC,,,5,,6560a1b2.5,1,,2026-11-23 08:00:00 UTC,,0,LOG,00000,\"'\n\
                 2026-11-23 08:00:00.123 UTC [1] LOG:  a\n",
                "csvlog",
                None,
            ),
            (
                "2026-11-23 08:00:00.123 UTC [1] LOG:  a\n\
                 \t'2026-11-23 08:00:00.1 UTC,,,5,,6560a1b2.5,1,,2026-11-23 08:00:00 UTC,,0,LOG,00000,\"'\n",
                "stderr",
                Some("%m [%p] "),
            ),
            ("{\"timestamp\":\"2026-11-23 08:00:00.123 UTC\",\"error_severity\":\"LOG\"}\n", "jsonlog", None),
            (
                "[\n {\"textPayload\": \"2026-11-23 08:00:00.123 UTC [1]: [1-1] db=d,user=u LOG:  a\"}]",
                "cloud-sql",
                Some("%m [%p]: [%l-1] db=%d,user=%u "),
            ),
        ] {
            let found = format(head, None).unwrap();
            assert_eq!((found.name(), found.prefix().map(Prefix::text)), (name, prefix), "{head}");
        }
    }

    #[test]
    fn a_given_prefix_is_used_if_lines_have_it() {
        let found = format("[7] 2026-11-23 08:00:00.123 UTC LOG:  a\n", Some("[%p] %m ")).unwrap();
        assert_eq!(found.prefix().map(Prefix::text), Some("[%p] %m "));
        let error = format("2026-11-23 08:00:00.123 UTC [1] LOG:  a\n", Some("[%p] %m ")).unwrap_err().to_string();
        let expected = "no line of \"x.log\" begins with the prefix '[%p] %m '; the first line is: 2026-11-23 08:00:00.123 UTC \
                        [1] LOG:  a. Give the server's log_line_prefix with --prefix; it looks like '%m [%p] '";
        assert_eq!(error, expected);
    }

    #[test]
    fn other_texts_are_refused_with_their_first_line() {
        let error = format("Nov 23 08:00:00 host postgres[1]: LOG:  a\n", None).unwrap_err().to_string();
        assert!(
            error.starts_with("no line of \"x.log\" begins with a known log_line_prefix; the first line is: Nov 23")
        );
        let error = format("{\"a\": 1}\n", None).unwrap_err().to_string();
        assert!(error.starts_with("\"x.log\" has JSON that is neither"));
    }
}
