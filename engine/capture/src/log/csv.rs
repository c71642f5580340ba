//! Reads logs in the format `csvlog`. A row has 23 columns up to PostgreSQL 12, 24 in version 13, and 26 from version
//! 14 on.

use super::fields::{sqlstate, transaction};
use super::mixed::messages_of_another_form;
use super::record::{LogItem, Record, Sink, Unreadable, report};
use super::row::{COLUMNS, begins_row, column, rows_within, split, time};
use super::source::{LogLine, LogLines};
use super::words::{Part, part};
use crate::error::CaptureError;

/// The size in bytes from which the reader abandons a row that has no end. Such a row has lost a quote.
const LONGEST_ROW: usize = 64 << 20;

/// Reads a log to its end, and passes each message of the server to `sink` as a record.
pub fn read(lines: &mut LogLines, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    let mut rows = Rows::default();
    while let Some(line) = lines.next()? {
        rows.push(line, sink)?;
    }
    rows.finish(sink)
}

/// Assembles rows from lines, and makes records of the rows. If a crash of the server or a failure of its disk has cut
/// a row off, another row begins before the cut row's last quote: from this the assembler recognizes the cut row. Each
/// line is examined once.
#[derive(Default)]
struct Rows {
    /// The part of the current row that has been read.
    row: Vec<u8>,
    /// The number of the line on which the row begins.
    line: u64,
    quotes: usize,
    record: Record,
    fields: Vec<Vec<u8>>,
}

impl Rows {
    fn push(&mut self, line: LogLine<'_>, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        if !self.row.is_empty() && (begins_row(line.bytes) || self.row.len() >= LONGEST_ROW) {
            self.close(Unreadable::Format, sink)?;
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
                sink(LogItem::Record(&mut self.record))?;
                self.clear();
                return Ok(());
            }
            Err(why) => why,
        };
        self.take_last(if line.is_whole { why } else { Unreadable::CutShort }, sink)
    }

    /// Ends the log. A row that is not complete is counted as cut short.
    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        if self.row.is_empty() { Ok(()) } else { self.close(Unreadable::CutShort, sink) }
    }

    /// Finishes the current row because no further line can belong to it. If the row was cut off and a complete row
    /// begins within it, the complete row is recorded. Everything else is counted as unreadable.
    fn close(&mut self, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        self.take_last(why, sink)?;
        if self.row.is_empty() { Ok(()) } else { self.give_up(why, sink) }
    }

    /// Drops a row that was cut off, up to the last row that begins within it. The last row is recorded if it is
    /// complete; otherwise it stays, so that the next line can continue it. Other rows within the cut row, and messages
    /// in another format, are counted as lost.
    fn take_last(&mut self, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        let begins: Vec<usize> = [0].into_iter().chain(rows_within(&self.row)).collect();
        let Some((last, torn)) = begins.split_last().filter(|(last, _)| **last > 0) else {
            return self.give_up(why, sink);
        };
        let lost = torn.iter().zip(&begins[1..]).map(|(begin, end)| messages_in(&self.row[*begin..*end])).sum();
        report(self.line, why, lost, sink)?;
        self.line += memchr::memchr_iter(b'\n', &self.row[..*last]).count() as u64;
        self.row.drain(..last);
        self.quotes = memchr::memchr_iter(b'"', &self.row).count();
        if self.quotes % 2 == 1 {
            return Ok(());
        }
        if let Err(why) = self.parse() {
            return self.give_up(why, sink);
        }
        sink(LogItem::Record(&mut self.record))?;
        self.clear();
        Ok(())
    }

    /// Drops the current row, within which no other row begins, and counts it as unreadable.
    fn give_up(&mut self, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        report(self.line, why, messages_in(&self.row), sink)?;
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.row.clear();
        self.row.shrink_to(1 << 20);
        self.quotes = 0;
    }

    /// Parses the row into the record. Zero bytes in a row mean that a part of it was lost.
    fn parse(&mut self) -> Result<(), Unreadable> {
        if memchr::memchr(0, &self.row).is_some() {
            return Err(Unreadable::Format);
        }
        let count = split(&self.row, &mut self.fields);
        let fields = self.fields.get(..count).filter(|_| COLUMNS.contains(&count)).ok_or(Unreadable::Format)?;
        let mut texts = [""; 26];
        for (text, field) in texts.iter_mut().zip(fields) {
            *text = std::str::from_utf8(field).map_err(|_| Unreadable::Encoding)?;
        }
        fill(&mut self.record, &texts, self.line).ok_or(Unreadable::Format)
    }
}

/// Returns the number of messages that are lost with a cut row: the row itself, and messages in another format on the
/// lines that were taken for a part of the row.
fn messages_in(row: &[u8]) -> u64 {
    let counts = row.split(|c| *c == b'\n').map(|line| messages_of_another_form(&String::from_utf8_lossy(line)));
    counts.enumerate().map(|(line, count)| if line == 0 { count.max(1) } else { count }).sum()
}

fn fill(record: &mut Record, texts: &[&str; 26], line: u64) -> Option<()> {
    record.clear();
    record.line = line;
    record.time = time(texts[column::TIME])?;
    record.pid = texts[column::PID].parse().ok()?;
    record.session_start = Some(time(texts[column::SESSION_START])?);
    match part(texts[column::SEVERITY])? {
        Part::Message(severity) => record.severity = severity,
        Part::Foreign(language) => record.language = Some(language),
        _ => return None,
    }
    record.sqlstate = sqlstate(texts[column::SQLSTATE]).filter(|code| code != b"00000");
    record.transaction = transaction(texts[column::TRANSACTION]);
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
    record.has_position = !texts[column::POSITION].is_empty();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::words::Severity;
    use super::*;

    const V12: &str = "2026-11-23 08:00:00.123 UTC,\"me\",\"db\",77,\"[local]\",6560a1b2.4d,3,\"SELECT\",2026-11-23 07:59:00 UTC,\
                       3/9,0,LOG,00000,\"execute a: select \"\"A\"\"\n, $1\",\"parameters: $1 = 'a,b'\",,,,,,,,\"app\"";

    fn found(log: &str) -> Vec<String> {
        let mut all = Vec::new();
        read(&mut LogLines::of(log.as_bytes()), &mut |found| {
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
        read(&mut LogLines::of(format!("{error},\"client backend\"\n").as_bytes()), &mut |found| {
            let LogItem::Record(record) = found else { panic!("{found:?}") };
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

    /// Makes a row in the format of PostgreSQL 14 and later, with a message of a client's session.
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

    /// Reads a log. Returns the number of rows that are counted as lost, and the messages of the rows that could be
    /// read.
    fn counted(log: &str) -> (usize, Vec<String>) {
        let is_lost = |found: &String| found.ends_with("Format") || found.ends_with("CutShort");
        let (lost, kept): (Vec<_>, Vec<_>) = found(log).into_iter().partition(is_lost);
        (lost.len(), kept)
    }

    #[test]
    fn a_row_that_was_torn_off_in_its_time_is_no_part_of_the_next_one() {
        let whole = row(2, "statement: SELECT 2");
        for torn in
            ["2026-11-23 08:00:00", "2026-11-23 08:00:00.000 UTC", "2026-11-23 08:00:00.000 UTC,\"app\",\"sh", "2026-1"]
        {
            let log = format!("{}\n{torn}{whole}\n", row(1, "a"));
            assert_eq!(counted(&log), (1, vec!["1 a|".to_owned(), "2 statement: SELECT 2|".to_owned()]), "{torn}");
        }
    }

    #[test]
    fn each_of_several_rows_in_a_line_is_counted() {
        let torn = |number| row(number, "statement: SELECT '")[..150].to_owned();
        let in_head = &row(3, "x")[..90];
        for (line, lost, kept) in [
            (format!("{}{}{}", torn(2), torn(3), row(4, "b")), 2, 1),
            (format!("{}{}", torn(2), torn(3)), 2, 0),
            (format!("{in_head}{}", torn(4)), 2, 0),
            (format!("{}{}", torn(2), row(3, "b\nc")), 1, 1),
        ] {
            let log = format!("{}\n{line}\n{}\n", row(1, "a"), row(6, "z"));
            let (counted, others) = counted(&log);
            assert_eq!((counted, others.len()), (lost, kept + 2), "{line}: {others:?}");
        }
    }

    #[test]
    fn objects_of_jsonlog_among_rows_are_each_counted() {
        let object = |text: &str| {
            format!(
                "{{\"timestamp\":\"2026-11-23 08:00:00.000 UTC\",\"error_severity\":\"LOG\",\"message\":\"{text}\"}}"
            )
        };
        let quoted = row(7, "x").replace('"', "\\\"");
        let lines = [object("a"), object("'\\\"'"), object(&quoted), format!("{}{}", &object("a")[..30], object("b"))];
        let log = format!("{}\n{}\n{}\n", row(1, "a"), lines.join("\n"), row(9, "z"));
        let (counted, others) = counted(&log);
        assert_eq!((counted, others), (5, vec!["1 a|".to_owned(), "6 z|".to_owned()]));
    }
}
