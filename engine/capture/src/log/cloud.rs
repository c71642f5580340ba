//! Log entries of Google Cloud: an object each, in lines or in one array, whose `textPayload` is a line of `stderr`.

use serde::Deserialize;

use super::prefix::Prefix;
use super::record::{LogItem, Sink, Unreadable};
use super::source::{LogLine, LogLines};
use super::stderr::Assembler;
use crate::error::CaptureError;

/// The size, bytes, from which on a JSON object without an end is given up: it must have lost a brace or a quote.
const LONGEST_ENTRY: usize = 64 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    text_payload: String,
}

/// Reads a log to its end.
pub fn read(lines: &mut LogLines, prefix: &Prefix, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    let mut entries = Entries { prefix, assembler: Assembler::new(prefix) };
    let mut objects = Objects::default();
    while let Some(line) = lines.next()? {
        objects.push(line, &mut |object| entries.take(object, sink))?;
    }
    if objects.depth > 0 {
        sink(LogItem::Unreadable { line: objects.line, why: Unreadable::CutShort })?;
    }
    entries.assembler.finish(sink)
}

/// Returns the lines of `stderr` in a log, for guessing their prefix.
pub fn payloads(head: &[u8]) -> String {
    let mut objects = Objects::default();
    let mut text = String::new();
    for (bytes, number) in head.split(|c| *c == b'\n').zip(1..) {
        let taken = objects.push(LogLine { number, bytes, is_whole: true }, &mut |object| {
            if let Ok(Entry { text_payload }) = serde_json::from_slice(object.bytes) {
                text += &text_payload;
                text.push('\n');
            }
            Ok(())
        });
        taken.expect("no error is returned above");
    }
    text
}

struct Entries<'a> {
    prefix: &'a Prefix,
    assembler: Assembler<'a>,
}

impl Entries<'_> {
    fn take(&mut self, object: LogLine<'_>, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        let Ok(Entry { text_payload }) = serde_json::from_slice(object.bytes) else {
            return sink(LogItem::Unreadable { line: object.number, why: Unreadable::Format });
        };
        for (index, text) in text_payload.split('\n').enumerate() {
            // The tab of a continued line may have been lost.
            let is_continued = index > 0 && !text.starts_with('\t') && self.prefix.read(text).is_none();
            let text = if is_continued { format!("\t{text}") } else { text.to_owned() };
            self.assembler.push(LogLine { number: object.number, bytes: text.as_bytes(), is_whole: true }, sink)?;
        }
        Ok(())
    }
}

/// Finds the JSON objects in a sequence of lines, of which an object may take several.
#[derive(Default)]
struct Objects {
    object: Vec<u8>,
    /// The line on which the object begins.
    line: u64,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl Objects {
    /// Takes a line. Calls `take` with each object that ends in it, as a line.
    fn push(
        &mut self,
        line: LogLine<'_>,
        take: &mut dyn FnMut(LogLine<'_>) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        for c in line.bytes {
            if self.depth == 0 {
                // Between objects there are brackets, commas and spaces.
                if *c != b'{' {
                    continue;
                }
                self.object.clear();
                self.line = line.number;
            }
            self.object.push(*c);
            self.step(*c);
            if self.depth == 0 || self.object.len() > LONGEST_ENTRY {
                (self.depth, self.is_in_text, self.is_escaped) = (0, false, false);
                take(LogLine { number: self.line, bytes: &self.object, is_whole: true })?;
            }
        }
        Ok(())
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
        read(&mut LogLines::of(log.as_bytes()), &prefix, &mut |found| {
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
        let head = payloads(format!("[{}", entries.join(",")).as_bytes());
        assert_eq!(Prefix::guess(&head).unwrap().text(), "%m [%p]: [%l-1] db=%d,user=%u ");
    }

    #[test]
    fn other_entries_and_a_cut_one_cannot_be_read() {
        let entry = entry("LOG:  a");
        let log = format!("{{\"protoPayload\":{{}}}}\n{entry}\n{}", &entry[..60]);
        assert_eq!(found(&log), ["1 Format", "3 CutShort", "2 a|"]);
    }
}
