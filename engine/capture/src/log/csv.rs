//! The format `csvlog`: 23 columns up to version 12, 24 in 13, 26 from 14 on.

use super::prefix::sqlstate;
use super::record::{Found, Record, Sink, Unreadable};
use super::source::{Line, Lines};
use super::words::{Part, part};
use crate::time::Timestamp;

/// How many columns a version may have.
const COLUMNS: [usize; 3] = [23, 24, 26];

/// Columns that captures need, from 0.
mod column {
    pub const TIME: usize = 0;
    pub const USER: usize = 1;
    pub const DATABASE: usize = 2;
    pub const PID: usize = 3;
    pub const SESSION_ID: usize = 5;
    pub const SESSION_START: usize = 8;
    pub const SEVERITY: usize = 11;
    pub const SQLSTATE: usize = 12;
    pub const MESSAGE: usize = 13;
    pub const DETAIL: usize = 14;
    pub const CONTEXT: usize = 18;
    pub const STATEMENT: usize = 19;
    pub const APPLICATION: usize = 22;
    /// From 13 on.
    pub const BACKEND_TYPE: usize = 23;
}

/// A row that has not ended after so many bytes has lost a quote. The row begins anew with its next line.
const LONGEST_ROW: usize = 64 << 20;

/// The longest time with its comma, in bytes.
const LONGEST_TIME: usize = 64;

/// Whether a line is the first one of a row: a time and a comma.
pub fn begins_row(line: &str) -> bool {
    Timestamp::take(line).is_some_and(|(_, rest, _)| rest.starts_with(','))
}

/// Reads a log to its end.
pub fn read(lines: &mut Lines, sink: &mut Sink<'_>) -> Result<(), String> {
    let mut rows = Rows::default();
    while let Some(line) = lines.next()? {
        rows.push(line, sink)?;
    }
    rows.finish(sink)
}

/// Makes records of lines.
#[derive(Default)]
struct Rows {
    /// The row so far.
    row: Vec<u8>,
    /// Of its first line.
    line: u64,
    quotes: usize,
    record: Record,
    fields: Vec<Vec<u8>>,
}

impl Rows {
    fn push(&mut self, line: Line<'_>, sink: &mut Sink<'_>) -> Result<(), String> {
        if self.row.is_empty() {
            self.line = line.number;
        } else {
            self.row.push(b'\n');
        }
        self.row.extend_from_slice(line.bytes);
        self.quotes += memchr::memchr_iter(b'"', line.bytes).count();
        if self.quotes % 2 == 1 && self.row.len() < LONGEST_ROW {
            return Ok(());
        }
        self.take_rows(line.is_whole, sink)
    }

    /// What is left at the end of the log is cut short.
    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), String> {
        while !self.row.is_empty() {
            self.drop_lines(Unreadable::CutShort, sink)?;
        }
        Ok(())
    }

    /// Reports the row. If it is none, what follows its first line is read as the begin of another one: it may be whole.
    fn take_rows(&mut self, is_whole: bool, sink: &mut Sink<'_>) -> Result<(), String> {
        while !self.row.is_empty() && self.quotes % 2 == 0 {
            match self.parse() {
                Ok(()) => {
                    sink(Found::Record(&self.record))?;
                    self.row.clear();
                    self.row.shrink_to(1 << 20);
                    self.quotes = 0;
                }
                Err(why) => self.drop_lines(if is_whole { why } else { Unreadable::CutShort }, sink)?,
            }
        }
        if self.row.len() >= LONGEST_ROW { self.drop_lines(Unreadable::Format, sink) } else { Ok(()) }
    }

    /// Gives up the lines before the next one that may begin a row.
    fn drop_lines(&mut self, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), String> {
        let first = self.line;
        let (mut at, mut kept) = (0, 0);
        while let Some(length) = memchr::memchr(b'\n', &self.row[at..]) {
            at += length + 1;
            self.line += 1;
            let begin = &self.row[at..self.row.len().min(at + LONGEST_TIME)];
            if begins_row(&String::from_utf8_lossy(begin)) {
                kept = self.row.len() - at;
                break;
            }
        }
        self.row.drain(..self.row.len() - kept);
        self.quotes = memchr::memchr_iter(b'"', &self.row).count();
        sink(Found::Unreadable { line: first, why })
    }

    /// Reads the row into the record.
    fn parse(&mut self) -> Result<(), Unreadable> {
        let count = split(&self.row, &mut self.fields);
        let fields = self.fields.get(..count).filter(|_| COLUMNS.contains(&count)).ok_or(Unreadable::Format)?;
        let mut texts = [""; 26];
        for (text, field) in texts.iter_mut().zip(fields) {
            *text = std::str::from_utf8(field).map_err(|_| Unreadable::Encoding)?;
        }
        fill(&mut self.record, &texts, self.line).ok_or(Unreadable::Format)
    }
}

fn fill(record: &mut Record, texts: &[&str; 26], line: u64) -> Option<()> {
    record.clear();
    record.line = line;
    record.time = Timestamp::take(texts[column::TIME])?.0;
    record.pid = texts[column::PID].parse().ok()?;
    record.session_start = Timestamp::take(texts[column::SESSION_START]).map(|(time, ..)| time);
    match part(texts[column::SEVERITY])? {
        Part::Message(severity) => record.severity = severity,
        Part::Foreign(language) => record.language = Some(language),
        _ => return None,
    }
    record.sqlstate = sqlstate(texts[column::SQLSTATE]).filter(|code| code != b"00000");
    for (text, column) in [
        (&mut record.user, column::USER),
        (&mut record.database, column::DATABASE),
        (&mut record.session_id, column::SESSION_ID),
        (&mut record.message, column::MESSAGE),
        (&mut record.detail, column::DETAIL),
        (&mut record.context, column::CONTEXT),
        (&mut record.statement, column::STATEMENT),
        (&mut record.application, column::APPLICATION),
        (&mut record.backend_type, column::BACKEND_TYPE),
    ] {
        Record::set(text, texts[column]);
    }
    Some(())
}

/// Splits a row at its commas into fields, of which memory is kept for the next row. Returns how many there are; 0 if a quote
/// stands where none may.
pub fn split(row: &[u8], fields: &mut Vec<Vec<u8>>) -> usize {
    let (mut count, mut rest) = (0, row);
    loop {
        if fields.len() == count {
            fields.push(Vec::new());
        }
        let field = &mut fields[count];
        field.clear();
        count += 1;
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            rest = quoted;
            loop {
                let Some(at) = memchr::memchr(b'"', rest) else { return 0 };
                field.extend_from_slice(&rest[..at]);
                rest = &rest[at + 1..];
                if rest.first() != Some(&b'"') {
                    break;
                }
                field.push(b'"');
                rest = &rest[1..];
            }
        } else {
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            field.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        match rest.split_first() {
            None => return count,
            Some((b',', next)) => rest = next,
            Some(_) => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::Severity;
    use super::*;

    const V12: &str = "2026-11-23 08:00:00.123 UTC,\"me\",\"db\",77,\"[local]\",6560a1b2.4d,3,\"SELECT\",2026-11-23 07:59:00 UTC,\
                       3/9,0,LOG,00000,\"execute a: select \"\"A\"\"\n, $1\",\"parameters: $1 = 'a,b'\",,,,,,,,\"app\"";

    fn found(log: &str) -> Vec<String> {
        let mut all = Vec::new();
        read(&mut Lines::of(log.as_bytes()), &mut |found| {
            all.push(found.told());
            Ok(())
        })
        .unwrap();
        all
    }

    const WHOLE: &str = "execute a: select \"A\"\n, $1|parameters: $1 = 'a,b'";

    #[test]
    fn rows_of_all_versions_are_records() {
        for more in ["", ",\"client backend\"", ",\"client backend\",,123456"] {
            assert_eq!(found(&format!("{V12}{more}\n{V12}{more}\n")), [format!("1 {WHOLE}"), format!("3 {WHOLE}")]);
        }
    }

    #[test]
    fn all_fields_are_kept() {
        let mut all = Vec::new();
        let error =
            V12.replace("LOG,00000", "ERROR,22012").replace(",,,,,,,,\"app\"", ",,,,\"ctx\",\"stmt\",,,\"app\"");
        read(&mut Lines::of(format!("{error},\"client backend\"\n").as_bytes()), &mut |found| {
            let Found::Record(record) = found else { panic!("{found:?}") };
            all.push(record.clone());
            Ok(())
        })
        .unwrap();
        let record = &all[0];
        assert_eq!((record.pid, record.severity, record.sqlstate), (77, Severity::Error, Some(*b"22012")));
        let texts = [&record.user, &record.database, &record.session_id, &record.application, &record.backend_type];
        assert_eq!(texts, ["me", "db", "6560a1b2.4d", "app", "client backend"]);
        assert_eq!([&record.context, &record.statement], ["ctx", "stmt"]);
        assert_eq!(record.time.utc - record.session_start.unwrap().utc, 60_123_000);
    }

    #[test]
    fn a_damaged_row_costs_no_other_one() {
        let lost_quote = V12.replace("$1\",", "$1,");
        let log = format!("{lost_quote}\n{V12}\n{V12}\n");
        assert_eq!(found(&log), ["1 Format".to_owned(), format!("3 {WHOLE}"), format!("5 {WHOLE}")]);
        let log = format!("hello\n{V12}\na,b\n{V12}\n");
        assert_eq!(
            found(&log),
            ["1 Format".to_owned(), format!("2 {WHOLE}"), "4 Format".to_owned(), format!("5 {WHOLE}")]
        );
    }

    #[test]
    fn a_row_that_the_log_does_not_end_is_cut_short() {
        let log = format!("{V12}\n{}", &V12[..V12.len() - 60]);
        assert_eq!(found(&log), [format!("1 {WHOLE}"), "3 CutShort".to_owned()]);
    }
}
