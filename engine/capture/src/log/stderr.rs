//! The format `stderr`: a prefix, a word and a text on each line; further lines of a text begin with a tab.

use super::prefix::{Prefix, sqlstate};
use super::record::{Found, Record, Sink, Unreadable};
use super::source::{Line, Lines};
use super::words::{Part, Severity};
use crate::message;

/// Reads a log to its end.
pub fn read(lines: &mut Lines, prefix: &Prefix, sink: &mut Sink<'_>) -> Result<(), String> {
    let mut assembler = Assembler::new(prefix);
    while let Some(line) = lines.next()? {
        assembler.push(line, sink)?;
    }
    assembler.finish(sink)
}

/// Makes records of lines.
pub struct Assembler<'a> {
    prefix: &'a Prefix,
    record: Record,
    state: State,
    /// Whether the last message of the severity LOG had a SQLSTATE before its text, as all have or none; unknown before it.
    is_verbose: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No message has begun, or the one that has cannot be read.
    Idle,
    /// A continued line belongs to this text of the record.
    In(Text),
    /// A line of the message cannot be read.
    Spoiled(Unreadable),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Message,
    Detail,
    Context,
    Statement,
    Skipped,
}

impl<'a> Assembler<'a> {
    pub fn new(prefix: &'a Prefix) -> Self {
        Self { prefix, record: Record::default(), state: State::Idle, is_verbose: None }
    }

    /// Takes the next line. A record is found when the line behind it shows that it is complete.
    pub fn push(&mut self, line: Line<'_>, sink: &mut Sink<'_>) -> Result<(), String> {
        let Some(text) = line.text() else {
            return self.spoil(line, Unreadable::Encoding, sink);
        };
        if !line.is_whole {
            return self.spoil(line, Unreadable::CutShort, sink);
        }
        let prefix = self.prefix;
        if let Some(continued) = prefix.continued(text) {
            self.append(continued);
            return Ok(());
        }
        let read = prefix.read(text);
        if let Some(why) = prefix.refuted_by(text, read.as_ref().map(|(matched, ..)| matched)) {
            return Err(format!(
                "line {} of the log {why}: {}. Give the server's with --prefix (SHOW log_line_prefix)",
                line.number,
                shown(text)
            ));
        }
        match read {
            Some((matched, part @ (Part::Message(_) | Part::Foreign(_)), text)) => {
                self.finish(sink)?;
                matched.fill(&mut self.record);
                self.record.line = line.number;
                self.begin(part, text);
                Ok(())
            }
            Some((matched, part, text)) if self.state != State::Idle && matched.pid == self.record.pid => {
                self.go_on(part, text);
                Ok(())
            }
            // A part of a message that has begun before the log did.
            Some(_) => self.finish(sink),
            // It may be the rest of a statement whose tabs are lost: without it the statement would be another one.
            None if self.has_statement() => {
                self.state = State::Spoiled(Unreadable::Format);
                Ok(())
            }
            None if matches!(self.state, State::Spoiled(_)) => Ok(()),
            None => {
                self.finish(sink)?;
                sink(Found::Unreadable { line: line.number, why: Unreadable::Format })
            }
        }
    }

    /// Reports the last record.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), String> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(()),
            State::In(_) => sink(Found::Record(&self.record)),
            State::Spoiled(why) => sink(Found::Unreadable { line: self.record.line, why }),
        }
    }

    fn begin(&mut self, part: Part, text: &str) {
        self.state = State::In(Text::Message);
        let mut message = text;
        match part {
            Part::Message(severity) => self.record.severity = severity,
            Part::Foreign(language) => self.record.language = Some(language),
            _ => {}
        }
        let coded = text.split_once(": ").and_then(|(code, rest)| Some((sqlstate(code)?, rest)));
        if self.record.severity == Severity::Log {
            self.is_verbose = Some(coded.is_some());
        }
        // With log_error_verbosity = verbose the code stands before the text. Where no message of the log has shown yet whether
        // it is so, a word without a digit is no code.
        let is_code = |code: &[u8; 5]| self.is_verbose.unwrap_or(code.iter().any(u8::is_ascii_digit));
        if let Some((code, rest)) = coded.filter(|(code, _)| is_code(code)) {
            self.record.sqlstate = Some(code).filter(|code| code != b"00000");
            message = rest;
        }
        self.record.message.push_str(message);
    }

    /// Whether what was read of a message belongs to a statement.
    fn has_statement(&self) -> bool {
        match self.state {
            State::In(Text::Message) => message::has_statement(&self.record.message),
            State::In(Text::Statement | Text::Detail | Text::Context) => true,
            State::In(Text::Skipped) | State::Idle | State::Spoiled(_) => false,
        }
    }

    fn go_on(&mut self, part: Part, text: &str) {
        if matches!(self.state, State::Spoiled(_)) {
            return;
        }
        let target = match part {
            Part::Detail => Text::Detail,
            Part::Context => Text::Context,
            Part::Statement => Text::Statement,
            _ => Text::Skipped,
        };
        self.state = State::In(target);
        if let Some(record) = self.text(target) {
            record.push_str(text);
        }
    }

    fn append(&mut self, continued: &str) {
        let State::In(target) = self.state else { return };
        if let Some(text) = self.text(target) {
            text.push('\n');
            text.push_str(continued);
        }
    }

    fn text(&mut self, target: Text) -> Option<&mut String> {
        match target {
            Text::Message => Some(&mut self.record.message),
            Text::Detail => Some(&mut self.record.detail),
            Text::Context => Some(&mut self.record.context),
            Text::Statement => Some(&mut self.record.statement),
            Text::Skipped => None,
        }
    }

    /// Gives up the message that a line belongs to, or the line if it belongs to none.
    fn spoil(&mut self, line: Line<'_>, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), String> {
        if !line.bytes.starts_with(b"\t") {
            let text = String::from_utf8_lossy(line.bytes);
            let part = self.prefix.read(&text).map(|(matched, part, _)| (matched.pid, part));
            let is_part = part.is_some_and(|(pid, part)| {
                pid == self.record.pid && !matches!(part, Part::Message(_) | Part::Foreign(_))
            });
            if !is_part || self.state == State::Idle {
                self.finish(sink)?;
                self.record.line = line.number;
            }
        }
        self.state = State::Spoiled(why);
        Ok(())
    }
}

/// The longest part of a line in a message for the user, in characters.
const SHOWN: usize = 100;

/// A line, shortened.
pub fn shown(line: &str) -> String {
    let short: String = line.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < line.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found: message, detail and statement of records, or the line that cannot be read.
    fn found(log: &[u8]) -> Vec<String> {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        let mut all = Vec::new();
        read(&mut Lines::of(log), &prefix, &mut |found| {
            all.push(match found {
                Found::Record(record) => {
                    format!("{} {}|{}|{}", record.line, record.message, record.detail, record.statement)
                }
                Found::Unreadable { line, why } => format!("{line} {why:?}"),
            });
            Ok(())
        })
        .unwrap();
        all
    }

    fn log(lines: &[&str]) -> Vec<u8> {
        let lines = lines.iter().map(|line| match line.strip_prefix('>') {
            Some(line) => format!("2026-11-23 08:00:00.123 UTC [7] {line}\n"),
            None => format!("{line}\n"),
        });
        lines.collect::<String>().into_bytes()
    }

    #[test]
    fn parts_and_continued_lines_make_a_record() {
        let log =
            log(&[">LOG:  execute a: select", "\t", "\t\t$1", ">DETAIL:  parameters: $1 = 'a", "\tb'", ">LOG:  c"]);
        assert_eq!(found(&log), ["1 execute a: select\n\n\t$1|parameters: $1 = 'a\nb'|", "6 c||"]);
    }

    #[test]
    fn further_parts_are_skipped() {
        let log = log(&[">ERROR:  a", ">HINT:  b", "\tc", ">STATEMENT:  d"]);
        assert_eq!(found(&log), ["1 a||d"]);
    }

    #[test]
    fn codes_of_verbose_messages_are_no_part_of_them() {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        let log = log(&[">ERROR:  42P01: a", ">LOG:  00000: statement: b"]);
        let mut all = Vec::new();
        read(&mut Lines::of(&log), &prefix, &mut |found| {
            let Found::Record(record) = found else { panic!("{found:?}") };
            all.push((record.severity, record.sqlstate, record.message.clone()));
            Ok(())
        })
        .unwrap();
        let expected =
            [(Severity::Error, Some(*b"42P01"), "a".to_owned()), (Severity::Log, None, "statement: b".to_owned())];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_cannot_be_read_spoils_its_message_alone() {
        let lines = log(&[
            "\tbefore",
            ">DETAIL:  before",
            ">LOG:  a",
            "gzip: failed",
            "\tits",
            ">LOG:  b",
            "\t\u{1}",
            ">LOG:  c",
        ]);
        assert_eq!(found(&lines), ["3 a||", "4 Format", "6 b\n\u{1}||", "8 c||"]);
        let latin: Vec<u8> = lines.iter().map(|c| if *c == 1 { 0xe4 } else { *c }).collect();
        assert_eq!(found(&latin), ["3 a||", "4 Format", "6 Encoding", "8 c||"]);
    }

    #[test]
    fn a_statement_before_a_line_that_is_not_known_is_left_out() {
        let rest_without_tab =
            log(&[">LOG:  statement: DELETE FROM t", "    WHERE a = 1", "and b", ">LOG:  statement: b"]);
        assert_eq!(found(&rest_without_tab), ["1 Format", "4 statement: b||"]);
        let detail =
            log(&[">LOG:  execute <unnamed>: a", ">DETAIL:  parameters: $1 = 'a", "b'", ">LOG:  duration: 1 ms"]);
        assert_eq!(found(&detail), ["1 Format", "4 duration: 1 ms||"]);
    }

    #[test]
    fn a_name_before_each_line_stands_before_the_tab_too() {
        let prefix = Prefix::parse("db-1  | %m [%p] ").unwrap();
        let lines = log(&[">LOG:  statement: DELETE FROM t", "\tWHERE a = 1"]);
        let named: String = String::from_utf8(lines).unwrap().lines().map(|line| format!("db-1  | {line}\n")).collect();
        let mut all = Vec::new();
        read(&mut Lines::of(named.as_bytes()), &prefix, &mut |found| {
            all.push(found.told());
            Ok(())
        })
        .unwrap();
        assert_eq!(all, ["1 statement: DELETE FROM t\nWHERE a = 1|"]);
    }

    #[test]
    fn a_word_of_capital_letters_is_no_code() {
        let log = log(&[">LOG:  statement: a", ">ERROR:  ERROR: order is empty", ">ERROR:  AB123: x", ">LOG:  b"]);
        assert_eq!(found(&log)[1..3], ["2 ERROR: order is empty||".to_owned(), "3 AB123: x||".to_owned()]);
    }

    #[test]
    fn a_guess_that_a_line_refutes_ends_the_reading() {
        let prefix = Prefix::guess("2026-11-23 08:00:00.123 UTC [7] LOG:  a\n").unwrap();
        let lines = log(&[">LOG:  a", ">[user=app] LOG:  statement: b"]);
        let error = read(&mut Lines::of(&lines), &prefix, &mut |_| Ok(())).unwrap_err();
        assert_eq!(
            error,
            "line 2 of the log does not begin with '%m [%p] ', as lines before it do: 2026-11-23 08:00:00.123 UTC [7] \
             [user=app] LOG:  statement: b. Give the server's with --prefix (SHOW log_line_prefix)"
        );
    }

    #[test]
    fn a_last_line_without_its_end_is_cut_short() {
        let whole = log(&[">LOG:  a", ">LOG:  execute b: c", ">DETAIL:  parameters: $1 = 'x'"]);
        for (cut, expected) in [(1, vec!["1 a||", "2 CutShort"]), (whole.len() - 38, vec!["1 CutShort"])] {
            assert_eq!(found(&whole[..whole.len() - cut]), expected, "{cut}");
        }
        assert_eq!(found(&whole[..45]), ["1 a||", "2 CutShort"]);
    }
}
