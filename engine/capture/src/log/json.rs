//! Reads logs in the format `jsonlog` of PostgreSQL 15 and later, with an object on each line. CloudNativePG writes a
//! similar log, in which each object contains another object with the columns of csvlog.

use serde::Deserialize;

use super::fields::{sqlstate, transaction};
use super::mixed::{messages_of_another_form, objects};
use super::record::{LogItem, Record, Sink, Unreadable, report};
use super::source::LogLines;
use super::words::{Part, part};
use crate::error::CaptureError;
use crate::time::Timestamp;

/// The values of a line's object that captures need.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    #[serde(alias = "log_time")]
    timestamp: String,
    #[serde(alias = "user_name")]
    user: String,
    #[serde(alias = "database_name")]
    dbname: String,
    #[serde(alias = "process_id")]
    pid: Option<AnyNumber>,
    session_id: String,
    #[serde(alias = "session_start_time")]
    session_start: String,
    #[serde(alias = "virtual_transaction_id")]
    vxid: String,
    error_severity: String,
    #[serde(alias = "sql_state_code")]
    state_code: String,
    message: String,
    detail: String,
    context: String,
    #[serde(alias = "query")]
    statement: String,
    #[serde(alias = "query_pos")]
    cursor_position: Option<AnyNumber>,
    application_name: String,
    backend_type: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyNumber {
    Number(u32),
    Text(String),
}

impl AnyNumber {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

/// A line of CloudNativePG's log. A line without `record` was not written by the server.
#[derive(Deserialize)]
struct CloudNative {
    #[serde(rename = "logger")]
    _logger: String,
    record: Option<Message>,
}

/// The result of parsing a line.
enum Read {
    Message(Box<Message>),
    /// A message of another program than the server.
    NotOfTheServer,
    Unreadable,
}

fn read_line(text: &str) -> Read {
    match serde_json::from_str::<CloudNative>(text) {
        Ok(CloudNative { record: Some(message), .. }) => Read::Message(Box::new(message)),
        Ok(CloudNative { record: None, .. }) => Read::NotOfTheServer,
        Err(_) => serde_json::from_str(text).map_or(Read::Unreadable, |message| Read::Message(Box::new(message))),
    }
}

/// Reads a log to its end, and passes each message of the server to `sink` as a record.
pub fn read(lines: &mut LogLines, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    let mut record = Record::default();
    while let Some(line) = lines.next()? {
        if line.bytes.is_empty() {
            continue;
        }
        let Some(text) = line.text() else {
            sink(LogItem::Unreadable { line: line.number, why: Unreadable::Encoding })?;
            continue;
        };
        let why = if line.is_whole { Unreadable::Format } else { Unreadable::CutShort };
        let mut begin = 0;
        // If a line was cut off, the next line begins within it. JSON escapes quotes within texts, so no text looks
        // like the beginning of a line.
        let mut begins = objects(text).filter(|at| *at > 0);
        while !take(&mut record, &text[begin..], line.number, sink)? {
            let next = begins.next();
            let torn = &text[begin..next.unwrap_or(text.len())];
            report(line.number, why, messages_of_another_form(torn).max(1), sink)?;
            let Some(next) = next else { break };
            begin = next;
        }
    }
    Ok(())
}

/// Passes the record of a line to `sink`. Returns false if the line cannot be parsed.
fn take(record: &mut Record, text: &str, line: u64, sink: &mut Sink<'_>) -> Result<bool, CaptureError> {
    let message = match read_line(text) {
        Read::NotOfTheServer => return Ok(true),
        Read::Message(message) => *message,
        Read::Unreadable => return Ok(false),
    };
    if fill(record, message).is_none() {
        return Ok(false);
    }
    record.line = line;
    sink(LogItem::Record(record)).map(|()| true)
}

fn fill(record: &mut Record, message: Message) -> Option<()> {
    record.clear();
    record.time = Timestamp::take(&message.timestamp)?.0;
    record.pid = message.pid?.number()?;
    record.session_start = Timestamp::take(&message.session_start).map(|(time, ..)| time);
    match part(&message.error_severity)? {
        Part::Message(severity) => record.severity = severity,
        Part::Foreign(language) => record.language = Some(language),
        _ => return None,
    }
    record.sqlstate = sqlstate(&message.state_code).filter(|code| code != b"00000");
    record.transaction = transaction(&message.vxid);
    record.user = message.user;
    record.database = message.dbname;
    record.session_id = message.session_id;
    record.message = message.message;
    record.detail = message.detail;
    record.context = message.context;
    record.statement = message.statement;
    record.application = message.application_name;
    record.backend_type = message.backend_type;
    record.has_no_user = record.user.is_empty();
    record.has_position = message.cursor_position.is_some_and(|position| position.number().is_some());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::words::Severity;
    use super::*;

    const LINE: &str = r#"{"timestamp":"2026-11-23 08:00:00.123 UTC","user":"me","dbname":"db","pid":77,"remote_host":"[local]",
"session_id":"6560a1b2.4d","line_num":3,"ps":"SELECT","session_start":"2026-11-23 07:59:00 UTC","vxid":"3/9","txid":0,
"error_severity":"ERROR","state_code":"22012","message":"division \"by\"\nzero","statement":"select 1/0",
"application_name":"app","backend_type":"client backend","query_id":-5}"#;

    fn found(log: &str) -> Vec<Result<Record, (u64, Unreadable)>> {
        let mut all = Vec::new();
        read(&mut LogLines::of(log.as_bytes()), &mut |found| {
            all.push(match found {
                LogItem::Record(record) => Ok(record.clone()),
                LogItem::Unreadable { line, why } => Err((line, why)),
            });
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn a_line_is_a_record() {
        let line = LINE.replace('\n', "");
        let all = found(&format!("{line}\n"));
        let record = all[0].as_ref().unwrap();
        assert_eq!((record.line, record.pid, record.severity), (1, 77, Severity::Error));
        assert_eq!((record.sqlstate, record.message.as_str()), (Some(*b"22012"), "division \"by\"\nzero"));
        let texts = [&record.user, &record.database, &record.session_id, &record.application, &record.statement];
        assert_eq!(texts, ["me", "db", "6560a1b2.4d", "app", "select 1/0"]);
        assert_eq!(record.time.utc - record.session_start.unwrap().utc, 60_123_000);
    }

    #[test]
    fn records_of_cloud_native_pg_are_read_and_its_other_lines_skipped() {
        let log = concat!(
            r#"{"level":"info","ts":"2026-11-23T08:00:00Z","logger":"instance-manager","msg":"starting"}"#,
            "\n",
            r#"{"level":"info","ts":"2026-11-23T08:00:00Z","logger":"postgres","msg":"record","record":{"log_time":"#,
            r#""2026-11-23 08:00:00.123 UTC","user_name":"app","database_name":"shop","process_id":"77","session_id":"#,
            r#""6560a1b2.4d","session_start_time":"2026-11-23 07:59:00 UTC","error_severity":"ERROR","sql_state_code":"#,
            r#""22012","message":"division by zero","query":"select 1/0","application_name":"web","backend_type":"#,
            r#""client backend","query_id":"0"}}"#,
            "\n"
        );
        let all = found(log);
        let [Ok(record)] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((record.line, record.pid, record.sqlstate), (2, 77, Some(*b"22012")));
        let texts = [&record.user, &record.database, &record.application, &record.statement, &record.backend_type];
        assert_eq!(texts, ["app", "shop", "web", "select 1/0", "client backend"]);
    }

    #[test]
    fn other_lines_cannot_be_read() {
        let line = LINE.replace('\n', "");
        let log = format!("{{}}\nhello\n{}", &line[..line.len() - 9]);
        let all: Vec<_> = found(&log).into_iter().map(Result::unwrap_err).collect();
        assert_eq!(all, [(1, Unreadable::Format), (2, Unreadable::Format), (3, Unreadable::CutShort)]);
    }

    #[test]
    fn torn_objects_and_rows_are_each_counted() {
        let line = LINE.replace('\n', "");
        let row = "2026-11-23 08:00:00.123 UTC,\"me\",\"db\",77,\"[local]\",6560a1b2.4d,3,\"SELECT\",2026-11-23 07:59:00 UTC,3/9,0,LOG,\
                   00000,\"a";
        for (torn, lost) in [
            (line[..90].to_owned(), 1),
            (format!("{}{}", &line[..30], &line[..90]), 2),
            (format!("{row}{row}"), 2),
            (format!("{row}{row}{row}\n"), 3),
        ] {
            let found = found(&format!("{torn}{line}\n"));
            let (kept, unread): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
            assert_eq!((kept.len(), unread.len()), (1, lost), "{torn}");
        }
    }

    #[test]
    fn each_of_many_torn_objects_in_a_line_is_read_once() {
        let torn = "{\"timestamp\":\"2026".repeat(100_000);
        let line = LINE.replace('\n', "");
        let found = found(&format!("{torn}{line}\n"));
        assert_eq!((found.len(), found.iter().filter(|item| item.is_ok()).count()), (100_001, 1));
    }
}
