//! Reads logs that a cloud service exports as JSON. Each message is an object that contains a line of the server's
//! `stderr` log. The objects stand in lines, in an array, or in an array within an object.

use serde::Deserialize;
use serde_json::Value;

use super::fields::sqlstate;
use super::prefix::Prefix;
use super::record::{LogItem, Sink, Unreadable};
use super::source::{LogLine, LogLines};
use super::stderr::Assembler;
use crate::error::CaptureError;

/// The service that has exported the log, which determines the keys of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Google Cloud SQL. The key `textPayload` has the server's line.
    CloudSql,
    /// Azure. The key `properties` has the server's line and, as separate values, the SQLSTATE, the detail, the context
    /// and the failed statement.
    Azure,
    /// Amazon CloudWatch. The key `message` has the server's line.
    CloudWatch,
}

impl Service {
    /// Returns the service whose export begins with `head`, or `None` if no known service writes such JSON.
    pub fn of(head: &str) -> Option<Self> {
        Some(match () {
            () if head.contains("\"textPayload\"") => Self::CloudSql,
            () if head.contains("\"PostgreSQLLogs\"")
                || (head.contains("\"properties\"") && head.contains("\"errorLevel\"")) =>
            {
                Self::Azure
            }
            () if head.contains("\"logStreamName\"")
                || head.contains("\"logEvents\"")
                || head.contains("\"ingestionTime\"") =>
            {
                Self::CloudWatch
            }
            () => return None,
        })
    }

    /// Returns the service's name as `capture.json` stores it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CloudSql => "cloud-sql",
            Self::Azure => "azure",
            Self::CloudWatch => "cloudwatch",
        }
    }

    /// Returns the server's message in an object, or `None` if the object has another form.
    fn message(self, object: &[u8]) -> Option<Message> {
        match self {
            Self::CloudSql => {
                let Entry { text_payload } = serde_json::from_slice(object).ok()?;
                Some(Message { message: text_payload, ..Message::default() })
            }
            Self::Azure => serde_json::from_slice::<AzureEntry>(object).ok().map(|entry| entry.properties),
            Self::CloudWatch => serde_json::from_slice(object).ok(),
        }
    }
}

/// The size in bytes from which the reader abandons a JSON object that has no end. Such an object has lost a brace or a
/// quote.
const LONGEST_ENTRY: usize = 64 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    text_payload: String,
}

#[derive(Deserialize)]
struct AzureEntry {
    properties: Message,
}

/// A message of the server, with the parts that the export has as separate values. These are empty if the export lacks
/// them.
#[derive(Deserialize, Default)]
struct Message {
    message: String,
    /// The severity of the message, which the text in `message` contains too.
    #[serde(default, rename = "errorLevel")]
    severity: String,
    /// The SQLSTATE, if it is a text: other programs may write other values when they export a log once more.
    #[serde(default, rename = "sqlerrcode")]
    sqlstate: Value,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    statement: String,
}

impl Message {
    /// Returns the lines, without line ends, that the server would have written to `stderr` for this message.
    fn lines(&self, prefix: &Prefix) -> Vec<String> {
        let mut lines = Vec::new();
        let mut push = |text: &str| {
            for (index, line) in text.split('\n').enumerate() {
                // The export may have lost the tab with which the server begins a continued line.
                let is_continued = index > 0 && !line.starts_with('\t') && prefix.read(line).is_none();
                lines.push(if is_continued { format!("\t{line}") } else { line.to_owned() });
            }
        };
        push(&self.message);
        let first = self.message.lines().next().unwrap_or_default();
        let before = prefix.read(first).map(|(_, _, text)| first[..first.len() - text.len()].trim_end());
        let own = before.and_then(|before| before.strip_suffix(':')?.trim_end().strip_suffix(&self.severity));
        let parts = [("DETAIL", &self.detail), ("CONTEXT", &self.context), ("STATEMENT", &self.statement)];
        for (word, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
            push(&format!("{}{word}:  {text}", own.unwrap_or_default()));
        }
        lines
    }
}

/// Reads a log to its end, and passes each message of the server to `sink` as a record.
pub fn read(lines: &mut LogLines, service: Service, prefix: &Prefix, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    let mut entries = Entries { service, prefix, assembler: Assembler::new(prefix) };
    let mut objects = Objects::default();
    while let Some(line) = lines.next()? {
        objects.push(line, &mut |object| entries.take(object, sink))?;
    }
    if objects.depth > 0 {
        sink(LogItem::Unreadable { line: objects.line, why: Unreadable::CutShort })?;
    }
    entries.assembler.finish(sink)
}

/// Returns the server's messages that the beginning `head` of a log contains. The log_line_prefix is guessed from them.
pub fn payloads(head: &[u8], service: Service) -> String {
    let mut objects = Objects::default();
    let mut text = String::new();
    for (bytes, number) in head.split(|c| *c == b'\n').zip(1..) {
        let taken = objects.push(LogLine { number, bytes, is_whole: true }, &mut |object| {
            if let Some(Message { message, .. }) = service.message(object.bytes) {
                text += &message;
                text.push('\n');
            }
            Ok(())
        });
        taken.expect("no error is returned above");
    }
    text
}

struct Entries<'a> {
    service: Service,
    prefix: &'a Prefix,
    assembler: Assembler<'a>,
}

impl Entries<'_> {
    fn take(&mut self, object: LogLine<'_>, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        let Some(message) = self.service.message(object.bytes) else {
            return sink(LogItem::Unreadable { line: object.number, why: Unreadable::Format });
        };
        for text in message.lines(self.prefix) {
            self.assembler.push(LogLine { number: object.number, bytes: text.as_bytes(), is_whole: true }, sink)?;
        }
        if let Some(code) = message.sqlstate.as_str().and_then(sqlstate) {
            self.assembler.set_sqlstate(code);
        }
        Ok(())
    }
}

/// The keys under which an object has an array of entries.
const LISTS: [&[u8]; 3] = [b"\"records\"", b"\"events\"", b"\"logEvents\""];

/// Finds the JSON objects in a sequence of lines. An object may take several lines. If an object contains an array of
/// entries, the entries are found instead of the object.
#[derive(Default)]
struct Objects {
    object: Vec<u8>,
    /// The number of the line on which the object begins.
    line: u64,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    /// True within an object that has an array of entries.
    is_in_list: bool,
}

impl Objects {
    /// Processes a line, and calls `take` with each object that ends in it.
    fn push(
        &mut self,
        line: LogLine<'_>,
        take: &mut dyn FnMut(LogLine<'_>) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        for c in line.bytes {
            if self.depth == 0 {
                match c {
                    b'{' => {
                        self.object.clear();
                        self.line = line.number;
                    }
                    // This brace ends the object that contains the array of entries.
                    b'}' => self.is_in_list = false,
                    // Between objects there are only brackets, commas and spaces.
                    _ => {}
                }
                if *c != b'{' {
                    continue;
                }
            }
            self.object.push(*c);
            self.step(*c);
            if *c == b'[' && self.depth == 1 && !self.is_in_text && !self.is_in_list && self.begins_list() {
                (self.depth, self.is_in_list) = (0, true);
            } else if self.depth == 0 || self.object.len() > LONGEST_ENTRY {
                (self.depth, self.is_in_text, self.is_escaped) = (0, false, false);
                take(LogLine { number: self.line, bytes: &self.object, is_whole: true })?;
            }
        }
        Ok(())
    }

    /// True if the text of the object so far ends with the key of an array of entries, a colon and an opening bracket.
    fn begins_list(&self) -> bool {
        let text = self.object.trim_ascii_end().strip_suffix(b"[").map(<[u8]>::trim_ascii_end);
        let key = text.and_then(|text| text.strip_suffix(b":")).map(<[u8]>::trim_ascii_end);
        key.is_some_and(|key| LISTS.iter().any(|list| key.ends_with(list)))
    }

    fn step(&mut self, c: u8) {
        if self.is_in_text {
            match c {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_text = false,
                _ => {}
            }
            return;
        }
        match c {
            b'"' => self.is_in_text = true,
            b'{' => self.depth += 1,
            b'}' => self.depth -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log: &str) -> Vec<String> {
        let prefix = Prefix::parse("%m [%p]: [%l-1] db=%d,user=%u ").unwrap();
        let mut all = Vec::new();
        read(&mut LogLines::of(log.as_bytes()), Service::of(log).unwrap(), &prefix, &mut |found| {
            all.push(found.told());
            Ok(())
        })
        .unwrap();
        all
    }

    fn entry(text: &str) -> String {
        let text = format!("2026-11-23 08:00:00.123 UTC [7]: [3-1] db=d,user=u {text}");
        let payload = serde_json::to_string(&text).unwrap();
        format!("{{\"insertId\":\"}}{{\\\"\",\"textPayload\":{payload},\"resource\":{{\"type\":\"x\"}}}}")
    }

    #[test]
    fn entries_stand_in_lines_or_in_an_array() {
        let entries = [entry("LOG:  execute a: b"), entry("DETAIL:  parameters: $1 = 'x'"), entry("LOG:  c\nd\n\te")];
        let expected = ["1 execute a: b|parameters: $1 = 'x'", "3 c\nd\ne|"];
        assert_eq!(found(&entries.join("\n")), expected);
        assert_eq!(found(&format!("[{}]\n", entries.join(",\n"))), expected);
        let pretty = entries.each_ref().map(|entry| entry.replace(",\"", ",\n  \""));
        assert_eq!(found(&pretty.join(",\n")).len(), 2);
        let head = payloads(format!("[{}", entries.join(",")).as_bytes(), Service::CloudSql);
        assert_eq!(Prefix::guess(&head).unwrap().text(), "%m [%p]: [%l-1] db=%d,user=%u ");
    }

    #[test]
    fn other_entries_and_a_cut_one_cannot_be_read() {
        let entry = entry("LOG:  a");
        let log = format!("{{\"protoPayload\":{{}}}}\n{entry}\n{}", &entry[..60]);
        assert_eq!(found(&log), ["1 Format", "3 CutShort", "2 a|"]);
    }

    #[test]
    fn entries_of_azure_have_their_parts_apart() {
        let line = "2026-11-23 08:00:00.123 UTC [7]: [3-1] db=d,user=u ";
        let of = |severity: &str, parts: &str| {
            format!(
                "{{\"properties\":{{\"errorLevel\":\"{severity}\",\"message\":\"{line}{severity}:  {parts}}},\"category\":\"PostgreSQLLogs\"}}"
            )
        };
        let entries = [
            of("LOG", "execute a: b\",\"detail\":\"parameters: $1 = 'x'\""),
            of("LOG", "c\\nd\""),
            of("ERROR", "division by zero\",\"statement\":\"SELECT 1/0\""),
        ];
        let lines = entries.join("\n");
        assert_eq!(found(&lines), ["1 execute a: b|parameters: $1 = 'x'", "2 c\nd|", "3 division by zero|"]);
        let whole = format!("{{\"records\": [{}]}}\n{{\"records\":[{}]}}", entries.join(", "), entries[1]);
        assert_eq!(found(&whole).len(), 4);
    }

    #[test]
    fn the_sqlstate_of_azure_is_that_of_its_message_unless_the_text_has_one() {
        let entry = |severity: &str, code: &str, text: &str| {
            let line = format!("2026-11-23 08:00:00.123 UTC [7]: [3-1] db=d,user=u {severity}:  {text}");
            format!(
                "{{\"properties\":{{\"errorLevel\":\"{severity}\",{code}\"message\":\"{line}\"}},\"category\":\"PostgreSQLLogs\"}}"
            )
        };
        let log = [
            entry("LOG", "\"sqlerrcode\":\"00000\",", "00000: statement: SELECT 1/0"),
            entry("ERROR", "\"sqlerrcode\":\"22012\",", "division by zero"),
            entry("ERROR", "", "deadlock detected"),
            entry("ERROR", "\"sqlerrcode\":\"22012\",", "40P01: deadlock detected"),
            entry("ERROR", "\"sqlerrcode\":\"none\",", "division by zero"),
        ]
        .join("\n");
        let prefix = Prefix::parse("%m [%p]: [%l-1] db=%d,user=%u ").unwrap();
        let mut states = Vec::new();
        read(&mut LogLines::of(log.as_bytes()), Service::Azure, &prefix, &mut |found| {
            if let LogItem::Record(record) = found {
                states.push(record.sqlstate);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(states, [None, Some(*b"22012"), None, Some(*b"40P01"), None]);
    }

    #[test]
    fn events_of_cloudwatch_stand_in_an_object_of_one_line_or_of_many() {
        let event = "{\"logStreamName\": \"db\", \"timestamp\": 1, \"message\": \"2026-11-23 08:00:00.123 UTC [7]: [3-1] db=d,user=u LOG:  c\\nd\"}";
        let log = format!("{{\"events\": [{event}, {event}], \"searchedLogStreams\": []}}");
        assert_eq!(found(&log), ["1 c\nd|", "1 c\nd|"]);
        let indented = log.replace(", \"", ",\n      \"").replace("[{", "[\n    {\n      ");
        assert_eq!(found(&indented).len(), 2);
    }
}
