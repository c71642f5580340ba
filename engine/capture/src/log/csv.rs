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

/// A row that has not ended after so many bytes has lost a quote.
const LONGEST_ROW: usize = 64 << 20;

/// The columns by which the begin of a row is known stand within so many bytes.
const LONGEST_HEAD: usize = 2048;

/// Whether a row begins here: its first columns up to the SQLSTATE have the form that the server gives them. Within a quoted
/// text quotes are doubled, so a row that is quoted in a statement is not taken for one.
pub fn begins_row(line: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&line[..line.len().min(LONGEST_HEAD)]);
    let mut columns = [""; column::SQLSTATE + 1];
    let mut rest: &str = &head;
    for column in &mut columns {
        let Some((text, next)) = head_column(rest) else { return false };
        (*column, rest) = (text, next);
    }
    let is_time = |text: &str| Timestamp::take(text).is_some_and(|(_, rest, _)| rest.is_empty());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_session = |text: &str| {
        text.split_once('.').is_some_and(|(start, pid)| {
            !start.is_empty() && !pid.is_empty() && (start.bytes().chain(pid.bytes())).all(|c| c.is_ascii_hexdigit())
        })
    };
    is_time(columns[column::TIME])
        && is_number(columns[column::PID])
        && is_session(columns[column::SESSION_ID])
        && is_time(columns[column::SESSION_START])
        && matches!(part(columns[column::SEVERITY]), Some(Part::Message(_) | Part::Foreign(_)))
        && sqlstate(columns[column::SQLSTATE]).is_some()
}

/// Takes a column and the comma behind it from the front of a row.
fn head_column(row: &str) -> Option<(&str, &str)> {
    let Some(quoted) = row.strip_prefix('"') else { return row.split_once(',') };
    let mut end = 0;
    loop {
        end += quoted[end..].find('"')?;
        match quoted.as_bytes().get(end + 1)? {
            b'"' => end += 2,
            b',' => return Some((&quoted[..end], &quoted[end + 2..])),
            _ => return None,
        }
    }
}

/// The place of a row that begins within a line, behind what is left of one that was torn off there.
fn row_within(line: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(line, b"-").filter_map(|dash| dash.checked_sub(4)).find(|at| {
        let rest = &line[*at..];
        let is_date = rest.len() > 10 && rest[7] == b'-' && rest[..4].iter().all(u8::is_ascii_digit);
        *at > 0 && is_date && begins_row(rest)
    })
}

/// Reads a log to its end.
pub fn read(lines: &mut Lines, sink: &mut Sink<'_>) -> Result<(), String> {
    let mut rows = Rows::default();
    while let Some(line) = lines.next()? {
        rows.push(line, sink)?;
    }
    rows.finish(sink)
}

/// Makes records of lines. A row that was torn off, by a crash of the server or of its disk, is known by the row that begins
/// before its last quote. Each line is looked at once.
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
        if !self.row.is_empty() && (begins_row(line.bytes) || self.row.len() >= LONGEST_ROW) {
            self.give_up(Unreadable::Format, sink)?;
        }
        if self.row.is_empty() {
            self.line = line.number;
        } else {
            self.row.push(b'\n');
        }
        self.row.extend_from_slice(line.bytes);
        self.quotes += memchr::memchr_iter(b'"', line.bytes).count();
        if self.quotes % 2 == 1 {
            return Ok(());
        }
        let why = match self.parse() {
            Ok(()) => {
                sink(Found::Record(&self.record))?;
                self.clear();
                return Ok(());
            }
            Err(why) => why,
        };
        if line.is_whole { self.give_up(why, sink) } else { self.give_up(Unreadable::CutShort, sink) }
    }

    /// What is left at the end of the log is cut short.
    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), String> {
        if self.row.is_empty() { Ok(()) } else { self.give_up(Unreadable::CutShort, sink) }
    }

    /// Reports the row as one that cannot be read, but for a row that begins within its last line and is whole.
    fn give_up(&mut self, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), String> {
        sink(Found::Unreadable { line: self.line, why })?;
        let last_line = memchr::memrchr(b'\n', &self.row).map_or(0, |at| at + 1);
        if let Some(at) = row_within(&self.row[last_line..]) {
            self.line += memchr::memchr_iter(b'\n', &self.row).count() as u64;
            self.row.drain(..last_line + at);
            if self.parse().is_ok() {
                sink(Found::Record(&self.record))?;
            }
        }
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.row.clear();
        self.row.shrink_to(1 << 20);
        self.quotes = 0;
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
    record.has_no_user = record.user.is_empty();
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

    /// A row of 14 and newer that says so much, by a client.
    fn row(number: usize, message: &str) -> String {
        format!(
            "2026-11-23 08:00:{:02}.000 UTC,\"app\",\"shop\",10,\"[local]\",65f1a2b3.a,{number},\"SELECT\",2026-11-23 07:00:00 UTC,\
             3/1,0,LOG,00000,\"{message}\",,,,,,,,,\"web\",\"client backend\",,0",
            number % 60
        )
    }

    #[test]
    fn a_row_that_was_torn_off_costs_itself_alone() {
        let torn = &row(2, "statement: SELECT 2")[..150];
        let rows: Vec<_> = (3..13).map(|number| row(number, &format!("statement: SELECT {number}"))).collect();
        for (between, first) in [("\n", 3), ("", 2)] {
            let log = format!("{}\n{torn}{between}{}\n", row(1, "statement: SELECT 1"), rows.join("\n"));
            let mut expected = vec!["1 statement: SELECT 1|".to_owned(), "2 Format".to_owned()];
            expected.extend((3..13).map(|number| format!("{} statement: SELECT {number}|", number - 3 + first)));
            assert_eq!(found(&log), expected, "{between:?}");
        }
    }

    #[test]
    fn several_torn_rows_are_each_counted() {
        let torn = |number| row(number, "statement: SELECT '")[..150].to_owned();
        let log = [row(1, "a"), torn(2), torn(3), row(4, "b"), torn(5), row(6, "c")].join("\n");
        assert_eq!(found(&format!("{log}\n")), ["1 a|", "2 Format", "3 Format", "4 b|", "5 Format", "6 c|"]);
    }

    #[test]
    fn a_statement_that_quotes_rows_of_a_log_is_one_statement() {
        let quoted = row(7, "statement: SELECT 7").replace('"', "\"\"");
        let text = format!("statement: INSERT INTO lines VALUES ('\n{quoted}\n{quoted}')");
        let log = format!("{}\n{}\n", row(1, &text), row(2, "b"));
        assert_eq!(found(&log), [format!("1 {}|", text.replace("\"\"", "\"")), "4 b|".to_owned()]);
    }

    #[test]
    fn a_row_that_the_log_does_not_end_is_cut_short() {
        let log = format!("{V12}\n{}", &V12[..V12.len() - 60]);
        assert_eq!(found(&log), [format!("1 {WHOLE}"), "3 CutShort".to_owned()]);
    }
}
