//! Reads logs in the format `stderr`. Each line has a prefix, a keyword such as `LOG:` and a text. Further lines of the
//! text begin with a tab.

use super::fields::sqlstate;
use super::mixed::messages_of_another_form;
use super::prefix::Prefix;
use super::record::{LogItem, Record, Sink, Unreadable, report};
use super::row::begins_row;
use super::source::{LogLine, LogLines};
use super::torn::{begins_in_hole, messages_within, messages_within_text, messages_within_texts};
use super::words::{Part, Severity, has_part};
use crate::error::CaptureError;
use crate::message;

/// The length in bytes from which a text and its message are left out, because no statement of a client is so long.
const LONGEST_TEXT: usize = 256 << 20;

/// Reads a log to its end, and passes each message of the server to `sink` as a record.
pub fn read(lines: &mut LogLines, prefix: &Prefix, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
    let mut assembler = Assembler::new(prefix);
    while let Some(line) = lines.next()? {
        assembler.push(line, sink)?;
    }
    assembler.finish(sink)
}

/// Assembles records (messages of the server) from the lines of a log.
pub struct Assembler<'a> {
    prefix: &'a Prefix,
    record: Record,
    state: State,
    /// True if the last message of severity LOG had a SQLSTATE before its text, as log_error_verbosity = verbose writes
    /// it. In one log either all such messages have it or none. `None` before the first message of severity LOG.
    is_verbose: Option<bool>,
    /// The texts of hints and of other message parts for which a record has no field.
    further: String,
    /// The number of other messages that begin within the lines of the current message, which cannot be read.
    swallowed: u64,
    /// True if the current line continues a row in the format `csvlog`, which the server has written between the lines
    /// of this log.
    is_in_row: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No message has begun since the last complete one.
    Idle,
    /// A message has begun. The next continued line belongs to this text of its record.
    In(Text),
    /// A message has begun, but one of its lines cannot be read, so the whole message is unreadable.
    Spoiled(Unreadable),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Message,
    Detail,
    Context,
    Statement,
    Further,
}

impl<'a> Assembler<'a> {
    pub fn new(prefix: &'a Prefix) -> Self {
        Self {
            prefix,
            record: Record::default(),
            state: State::Idle,
            is_verbose: None,
            further: String::new(),
            swallowed: 0,
            is_in_row: false,
        }
    }

    /// Processes the next line. A record is passed to `sink` when the line behind it shows that the record is complete.
    pub fn push(&mut self, line: LogLine<'_>, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        let Some(text) = line.text() else {
            return self.spoil(line, Unreadable::Encoding, sink);
        };
        if !line.is_whole {
            return self.spoil(line, Unreadable::CutShort, sink);
        }
        if line.has_hole() {
            return self.spoil(line, Unreadable::Format, sink);
        }
        let prefix = self.prefix;
        let has_odd_quotes = memchr::memchr_iter(b'"', line.bytes).count() % 2 == 1;
        if self.is_in_row {
            // The line belongs to a row in another format (`csvlog`). What looks like a message in it may be part of
            // that row, so neither the row nor the message is captured.
            self.is_in_row = !has_odd_quotes;
            self.finish(sink)?;
            return report(line.number, Unreadable::Format, u64::from(has_part(text)), sink);
        }
        self.is_in_row = has_odd_quotes && begins_row(line.bytes);
        if let Some(continued) = prefix.continued(text) {
            self.append(continued);
            return Ok(());
        }
        let read = prefix.read(text);
        let within = if read.is_none() { messages_within(prefix, text) } else { 0 };
        let refuted = prefix.refuted_by(text, read.as_ref().map(|(matched, ..)| matched));
        if let Some(why) = refuted.filter(|_| within == 0) {
            return Err(CaptureError::RefutedPrefix { line: line.number, why, text: shown(text) });
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
            // The line is part of a message that began before the log did.
            Some((.., text)) => {
                self.finish(sink)?;
                report(line.number, Unreadable::Format, messages_within_text(prefix, text), sink)
            }
            // The line may be the rest of a statement that has lost its tabs. Without the line the statement would be
            // another one.
            None if self.has_statement() => {
                self.give_up(Unreadable::Format);
                // The line may also contain the remains of a message that was cut off.
                let may_begin = u64::from(within > 0 || prefix.may_begin(text));
                self.swallowed += within + may_begin.max(messages_of_another_form(text));
                Ok(())
            }
            None if matches!(self.state, State::Spoiled(_)) => {
                self.swallowed += within + messages_of_another_form(text);
                Ok(())
            }
            None => {
                self.finish(sink)?;
                report(line.number, Unreadable::Format, within + messages_of_another_form(text).max(1), sink)
            }
        }
    }

    /// Sets the SQLSTATE of the message that is being read, unless its text has one. The code of success is left out.
    pub fn set_sqlstate(&mut self, code: [u8; 5]) {
        if matches!(self.state, State::In(_)) && self.record.sqlstate.is_none() {
            self.record.sqlstate = Some(code).filter(|code| code != b"00000");
        }
    }

    /// Passes the last record to `sink`.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        let swallowed = std::mem::take(&mut self.swallowed);
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(()),
            State::In(_) => match messages_within_texts(self.prefix, &self.record, &self.further) {
                0 => sink(LogItem::Record(&mut self.record)),
                within => report(self.record.line, Unreadable::Format, within + 1, sink),
            },
            State::Spoiled(why) => report(self.record.line, why, swallowed + 1, sink),
        }
    }

    fn begin(&mut self, part: Part, text: &str) {
        self.further.clear();
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
        // With log_error_verbosity = verbose, the SQLSTATE stands before the text. As long as no message of the log has
        // shown whether this is the case, a word without a digit is not taken for a SQLSTATE.
        let is_code = |code: &[u8; 5]| self.is_verbose.unwrap_or(code.iter().any(u8::is_ascii_digit));
        if let Some((code, rest)) = coded.filter(|(code, _)| is_code(code)) {
            self.record.sqlstate = Some(code).filter(|code| code != b"00000");
            message = rest;
        }
        self.record.message.push_str(message);
    }

    /// True if the text that is being read is a statement, or if losing a line of it would change a statement: its
    /// parameters (detail) or its context.
    fn has_statement(&self) -> bool {
        match self.state {
            State::In(Text::Message) => message::has_statement(&self.record.message),
            State::In(Text::Statement | Text::Detail | Text::Context) => true,
            State::In(Text::Further) | State::Idle | State::Spoiled(_) => false,
        }
    }

    fn go_on(&mut self, part: Part, text: &str) {
        if matches!(self.state, State::Spoiled(_)) {
            self.swallowed += messages_within_text(self.prefix, text);
            return;
        }
        let target = match part {
            Part::Detail => Text::Detail,
            Part::Context => Text::Context,
            Part::Statement => Text::Statement,
            _ => Text::Further,
        };
        self.state = State::In(target);
        self.text(target).push_str(text);
    }

    fn append(&mut self, continued: &str) {
        let State::In(target) = self.state else {
            self.swallowed += messages_within_text(self.prefix, continued);
            return;
        };
        let text = self.text(target);
        if text.len() + continued.len() > LONGEST_TEXT {
            return self.give_up(Unreadable::Format);
        }
        text.push('\n');
        text.push_str(continued);
    }

    fn text(&mut self, target: Text) -> &mut String {
        match target {
            Text::Message => &mut self.record.message,
            Text::Detail => &mut self.record.detail,
            Text::Context => &mut self.record.context,
            Text::Statement => &mut self.record.statement,
            Text::Further => &mut self.further,
        }
    }

    /// Marks the message that is being read as unreadable.
    fn give_up(&mut self, why: Unreadable) {
        if matches!(self.state, State::In(_)) {
            self.swallowed += messages_within_texts(self.prefix, &self.record, &self.further);
        }
        self.state = State::Spoiled(why);
    }

    /// Marks as unreadable the message to which a line belongs, or only the line if it belongs to no message.
    fn spoil(&mut self, line: LogLine<'_>, why: Unreadable, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        let text = String::from_utf8_lossy(line.bytes);
        let read = self.prefix.read(&text).map(|(matched, part, _)| (matched.pid, part));
        let is_its = match read {
            _ if self.state == State::Idle => false,
            _ if line.bytes.starts_with(b"\t") => true,
            Some((pid, part)) => pid == self.record.pid && !matches!(part, Part::Message(_) | Part::Foreign(_)),
            None => false,
        };
        // The line may contain the rest of a statement, like a line in an unknown format. But if the last line of the
        // log begins like a message, it is a new message that the server had not finished writing.
        let is_next = !line.is_whole && self.prefix.may_begin(&text);
        let may_be_its = read.is_none() && !is_next && self.has_statement();
        if !is_its && !may_be_its {
            self.finish(sink)?;
            self.record.line = line.number;
        }
        self.give_up(why);
        let is_message = matches!(read, Some((_, Part::Message(_) | Part::Foreign(_))));
        let within = messages_within(self.prefix, &text) - u64::from(is_message);
        self.swallowed += within + u64::from(may_be_its) + u64::from(begins_in_hole(self.prefix, &text));
        Ok(())
    }
}

/// The greatest number of characters of a line that a message to the user shows.
const SHOWN_CHARACTERS: usize = 100;

/// Returns a line for a message to the user, shortened if it is long.
pub fn shown(line: &str) -> String {
    let short: String = line.chars().take(SHOWN_CHARACTERS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < line.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a log. Returns the message, detail and statement of each record, and the lines that cannot be read.
    fn found(log: &[u8]) -> Vec<String> {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        let mut all = Vec::new();
        read(&mut LogLines::of(log), &prefix, &mut |found| {
            all.push(match found {
                LogItem::Record(record) => {
                    format!("{} {}|{}|{}", record.line, record.message, record.detail, record.statement)
                }
                LogItem::Unreadable { line, why } => format!("{line} {why:?}"),
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
        read(&mut LogLines::of(&log), &prefix, &mut |found| {
            let LogItem::Record(record) = found else { panic!("{found:?}") };
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
        read(&mut LogLines::of(named.as_bytes()), &prefix, &mut |found| {
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
        let error = read(&mut LogLines::of(&lines), &prefix, &mut |_| Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2 of the log does not begin with '%m [%p] ', as lines before it do: 2026-11-23 08:00:00.123 UTC [7] \
             [user=app] LOG:  statement: b. Give the server's log_line_prefix with --prefix (SHOW log_line_prefix)"
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

    const LONG: &str = "2026-11-23 08:00:00.123 UTC [7] LOG:  statement: ";

    #[test]
    fn a_message_whose_begin_is_lost_behind_a_torn_one_is_counted() {
        let torn = format!("{LONG}DELE\0\0\0\0\0-23 08:00:00.123 UTC [7] LOG:  statement: b");
        assert_eq!(found(&log(&[&torn, ">LOG:  c"])), ["1 Format", "1 Format", "2 c||"]);
        let own = "2026-\0\0\0\0\0 08:00:00.123 UTC [7] LOG:  statement: b";
        assert_eq!(found(&log(&[own, ">LOG:  c"])), ["1 Format", "2 c||"]);
    }

    #[test]
    fn a_statement_before_a_line_whose_begin_is_lost_is_left_out() {
        let lines =
            log(&[">LOG:  statement: DELETE FROM t", "2026-11-23T08:\0\0\0\0\0 started", "\tWHERE a = 1", ">LOG:  c"]);
        assert_eq!(found(&lines), ["1 Format", "1 Format", "4 c||"]);
    }

    #[test]
    fn a_message_within_a_part_that_cannot_be_used_is_counted() {
        let torn = format!(">DETAIL:  para{LONG}b");
        assert_eq!(found(&log(&[&torn, ">LOG:  c"])), ["1 Format", "2 c||"]);
        assert_eq!(found(&log(&[">LOG:  a\0", &torn, ">LOG:  c"])), ["1 Format", "2 Format", "3 c||"]);
        let quoted = format!(">STATEMENT:  INSERT INTO t VALUES ('{LONG}b')");
        assert_eq!(found(&log(&[&quoted, ">LOG:  c"])), ["2 c||"]);
    }

    #[test]
    fn messages_in_another_form_are_each_counted() {
        let object = "{\"timestamp\":\"2026-11-23 08:00:00.123 UTC\",\"error_severity\":\"LOG\",\"message\":\"a\"}";
        let torn = format!("{}{object}", &object[..50]);
        assert_eq!(found(&log(&[">LOG:  a", &torn, ">LOG:  c"])), ["1 a||", "2 Format", "2 Format", "3 c||"]);
    }

    #[test]
    fn a_row_of_another_form_is_open_up_to_its_last_quote() {
        let row = "2026-11-23 08:00:00.123 UTC,\"me\",\"db\",77,\"[local]\",6560a1b2.4d,3,\"SELECT\",2026-11-23 07:59:00 UTC,3/9,0,LOG,\
                   00000,\"statement: INSERT INTO t VALUES ('";
        let lines = log(&[">LOG:  a", row, &format!("{LONG}DROP TABLE t')\",,,,,,,,,\"psql\""), ">LOG:  c"]);
        assert_eq!(found(&lines), ["1 a||", "2 Format", "3 Format", "4 c||"]);
    }
}
