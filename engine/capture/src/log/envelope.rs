//! Removes the envelopes that container runtimes and cloud services put around each line of a server's log: the JSON of
//! Docker, the line format of Kubernetes (CRI), and times before the lines.

use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::line::{LONGEST_LINE, read_line};
use super::words::part_ends;

/// The format of the envelope: the text in which a container runtime wraps each line of the server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// Docker's driver `json-file`: `{"log":"...\n","stream":"stderr","time":"..."}`.
    Docker,
    /// Kubernetes: `2026-11-23T08:00:00.123456789Z stderr F ...`. With P in place of F, the next line continues this
    /// one.
    Cri,
    /// `docker logs --timestamps`, `kubectl logs --timestamps`, and exports of CloudWatch to S3:
    /// `2026-11-23T08:00:00.123456789Z ...`. A line without a time is as the server wrote it.
    Times,
}

/// The number of lines at the beginning of a log in which times are looked for.
const LINES: usize = 50;

#[derive(Deserialize)]
struct DockerLine {
    log: String,
    #[serde(rename = "stream")]
    _stream: String,
    #[serde(rename = "time")]
    _time: String,
}

impl Envelope {
    /// Returns the format of the envelopes in a log that begins with `head`; `None` if its lines are as the server
    /// wrote them.
    pub fn of(head: &[u8]) -> Option<Self> {
        let first = head.split(|c| *c == b'\n').find(|line| !line.is_empty())?;
        let envelope = [Self::Docker, Self::Cri].into_iter().find(|envelope| envelope.unwrap(first).is_some());
        envelope.or_else(|| {
            // The line of another program may begin with such a time, too.
            let is_of_server = |text: &[u8]| part_ends(&String::from_utf8_lossy(text), true).next().is_some();
            let mut texts = head.split(|c| *c == b'\n').take(LINES).filter_map(behind_time);
            (behind_time(first).is_some() && texts.any(is_of_server)).then_some(Self::Times)
        })
    }

    /// Returns the text that can be recovered from a line that was cut off and does not have the envelope's format any
    /// more. Other lines may begin within it: the result has a line for each of them and for the cut line, with a zero
    /// byte before each line that is not whole. Docker escapes the quotes within texts, so no text is mistaken for the
    /// beginning of a line.
    fn unwrap_torn(self, line: &[u8]) -> Vec<u8> {
        let begins = match self {
            Self::Docker => memchr::memmem::find_iter(line, b"{\"log\":\"").filter(|at| *at > 0).collect(),
            Self::Cri | Self::Times => Vec::new(),
        };
        let mut texts = Vec::new();
        let mut from = 0;
        for at in begins.into_iter().chain([line.len()]) {
            match self.unwrap(&line[from..at]) {
                Some(text) => texts.extend_from_slice(&text),
                None => texts.extend_from_slice(&[b"\0", &line[from..at], b"\n"].concat()),
            }
            from = at;
        }
        texts
    }

    /// Returns the text within the envelope, with a line end unless the next line continues it. Returns `None` if the
    /// line does not have the envelope's format.
    fn unwrap(self, line: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Docker => serde_json::from_slice::<DockerLine>(line).ok().map(|line| line.log.into_bytes()),
            Self::Cri => {
                let mut words = line.splitn(4, |c| *c == b' ');
                let (time, stream, tag, text) = (words.next()?, words.next()?, words.next()?, words.next()?);
                let is_time = time.len() > 20 && time[10] == b'T' && time[..4].iter().all(u8::is_ascii_digit);
                if !is_time || !matches!(stream, b"stdout" | b"stderr") || !matches!(tag, b"F" | b"P") {
                    return None;
                }
                let end: &[u8] = if tag == b"F" { b"\n" } else { b"" };
                Some([text, end].concat())
            }
            Self::Times => Some([behind_time(line).unwrap_or(line), b"\n"].concat()),
        }
    }
}

/// Returns the text behind a time such as `2026-11-23T08:00:00.123Z` or `2026-11-23T08:00:00+00:00` and a space. Returns
/// `None` if the line does not begin with such a time.
fn behind_time(line: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b' ', line)?;
    let (time, text) = (&line[..end], &line[end + 1..]);
    let has = |at: usize, c: u8| time.get(at) == Some(&c);
    let is_date = time[..end.min(4)].iter().all(u8::is_ascii_digit) && has(4, b'-') && has(10, b'T') && has(13, b':');
    let has_zone = time.ends_with(b"Z") || end.checked_sub(6).is_some_and(|at| has(at, b'+') || has(at, b'-'));
    (is_date && end >= 20 && has_zone).then_some(text)
}

/// A reader that removes the envelope of each line of a log. A line that has another format or was cut off gets a zero
/// byte in front. From this byte the reader of the log knows that the line is unreadable, and does not take the line
/// before it for the end of a statement.
pub struct Unwrapped<R> {
    input: R,
    envelope: Envelope,
    line: Vec<u8>,
    text: Vec<u8>,
    taken: usize,
}

impl<R: BufRead> Unwrapped<R> {
    pub fn new(input: R, envelope: Envelope) -> Self {
        Self { input, envelope, line: Vec::new(), text: Vec::new(), taken: 0 }
    }
}

impl<R: BufRead> Read for Unwrapped<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() {
            self.line.clear();
            if read_line(&mut self.input, &mut self.line, LONGEST_LINE)? == 0 {
                return Ok(0);
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            self.taken = 0;
            self.text = self.envelope.unwrap(line).unwrap_or_else(|| self.envelope.unwrap_torn(line));
        }
        let count = into.len().min(self.text.len() - self.taken);
        into[..count].copy_from_slice(&self.text[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

/// Returns a phrase that says in which unsupported format a log is, and advice on how to get a log that pgtrial can
/// read. Returns `None` if the log is in no known unsupported format.
pub fn foreign_form(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let first = String::from_utf8_lossy(head.split(|c| *c == b'\n').find(|line| !line.is_empty())?);
    let has = |text: &str| first.contains(text);
    Some(match () {
        () if head.starts_with(b"BZh") => ("is compressed by bzip2", "unpack it: bzcat FILE | pgtrial capture - ..."),
        () if head.starts_with(&[0x04, 0x22, 0x4d, 0x18]) => {
            ("is compressed by lz4", "unpack it: lz4cat FILE | pgtrial capture - ...")
        }
        () if head.starts_with(b"PK\x03\x04") => {
            ("is a zip archive", "unpack it: unzip -p FILE | pgtrial capture - ...")
        }
        () if first.starts_with('<')
            && first[1..].split_once('>').is_some_and(|(number, rest)| {
                number.len() <= 3 && number.bytes().all(|c| c.is_ascii_digit()) && !rest.is_empty()
            })
            || is_syslog(&first) =>
        {
            (
                "was written by syslog, which cuts long statements and has no year",
                "log with log_destination = 'stderr', 'csvlog' or 'jsonlog' for the time of the capture",
            )
        }
        () if has(" app[postgres.") || has("heroku-postgres") => (
            "was written by Heroku, which leaves statements out",
            "log on a server of your own, or make a mix of pg_stat_statements (--statements)",
        ),
        () => return None,
    })
}

/// True for a line such as `Nov 23 08:00:00 host postgres[77]: [3-1] ...`, or with a time of RFC 3339 in place of the
/// first three words.
fn is_syslog(line: &str) -> bool {
    let Some((head, rest)) = line.split_once("]: ") else { return false };
    let Some((before, pid)) = head.rsplit_once('[') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let parts =
        rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).and_then(|(parts, _)| parts.split_once('-'));
    is_number(pid)
        && before.split_whitespace().count() >= 3
        && parts.is_some_and(|(one, two)| is_number(one) && is_number(two))
        && before.ends_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(log: &str) -> String {
        let mut text = String::new();
        let envelope = Envelope::of(log.as_bytes()).unwrap();
        Unwrapped::new(log.as_bytes(), envelope).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn lines_of_docker_are_unwrapped() {
        let log = "{\"log\":\"a \\\"b\\\"\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-23T08:00:00.1Z\"}\n\
                   {\"log\":\"\\tlong, \",\"stream\":\"stderr\",\"time\":\"2026-11-23T08:00:00.1Z\"}\n\
                   {\"log\":\"cut\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-23T08:00:00.1Z\"}\nhello\n";
        assert_eq!(unwrapped(log), "a \"b\"\n\tlong, cut\n\0hello\n");
    }

    #[test]
    fn lines_of_docker_that_were_torn_off_are_each_marked() {
        let line =
            |text: &str| format!("{{\"log\":\"{text}\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-23T08:00:00.1Z\"}}");
        let log = format!("{}\n{{\"log\":\"b{{\"log\":\"c{}\n", line("a"), line("d"));
        assert_eq!(unwrapped(&log), "a\n\0{\"log\":\"b\n\0{\"log\":\"c\nd\n");
    }

    #[test]
    fn lines_of_kubernetes_are_unwrapped() {
        let log = "2026-11-23T08:00:00.123456789Z stderr F a  b\n2026-11-23T08:00:00.123456789Z stdout P \tlong, \n\
                   2026-11-23T08:00:00.123456789Z stdout F cut\n";
        assert_eq!(unwrapped(log), "a  b\n\tlong, cut\n");
    }

    #[test]
    fn times_before_lines_are_removed() {
        let log = "2026-11-23T08:00:00.123456789Z 2026-11-23 08:00:00.123 UTC [1] LOG:  statement: select\n\
                   2026-11-23T08:00:00.123456789Z \t1\n\t2\n2026-11-23T08:00:00+00:00 b\n";
        assert_eq!(unwrapped(log), "2026-11-23 08:00:00.123 UTC [1] LOG:  statement: select\n\t1\n\t2\nb\n");
    }

    #[test]
    fn logs_of_servers_have_no_envelope() {
        for line in [
            "2026-11-23 08:00:00.123 UTC [1] LOG:  a",
            "{\"timestamp\":\"2026-11-23\"}",
            "",
            "2026-11-23T08:00:00Z stderr x y",
            "2026-11-23T08:00:00Z INFO started\n2026-11-23 08:00:00.123 UTC [1] LOG:  a",
        ] {
            assert_eq!(Envelope::of(line.as_bytes()), None, "{line}");
            assert_eq!(foreign_form(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn other_forms_have_names() {
        for (head, name) in [
            ("Nov 23 08:00:00 db1 postgres[77]: [3-1] 2026-11-23 08:00:00 UTC [77] LOG:  a\n", "was written by syslog"),
            ("<134>1 2026-11-23T08:00:00Z db1 postgres 77 - - [3-1] LOG:  a\n", "was written by syslog"),
            ("2026-11-23T08:00:00+00:00 app[postgres.12]: [DATABASE] LOG:  a\n", "was written by Heroku"),
        ] {
            let (found, cure) = foreign_form(head.as_bytes()).unwrap();
            assert!(found.starts_with(name) && !cure.is_empty(), "{head}: {found}");
        }
        assert_eq!(foreign_form(b"BZh91AY&SY").unwrap().0, "is compressed by bzip2");
        assert_eq!(foreign_form(b"\x04\x22\x4d\x18...").unwrap().0, "is compressed by lz4");
    }
}
