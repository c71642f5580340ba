//! sysbench's log and errors. The log writes lines to standard output. Each line has a level, and lines whose level is
//! above the option `--verbosity` are dropped. Errors are written to the log or to standard error.

use std::fmt::Display;
use std::io::{self, Stdout, Write};
use std::sync::Arc;

use crate::frontend::common::messages::USER;
use ground::output::{heed_closed_pipe, write_stderr};
use parking_lot::{Mutex, MutexGuard};
use workload::Fatal;
use workload::lua::Voice;

/// The level (importance) of a line in the log. Its number is the lowest verbosity at which the line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Fatal = 0,
    Alert = 1,
    Warning = 2,
    Notice = 3,
    Info = 4,
    Debug = 5,
}

impl Level {
    fn prefix(self) -> &'static str {
        match self {
            Self::Fatal => "FATAL: ",
            Self::Alert => "ALERT: ",
            Self::Warning => "WARNING: ",
            Self::Notice | Self::Info => "",
            Self::Debug => "DEBUG: ",
        }
    }
}

/// The log. Until [`Log::limit`] sets a verbosity, all lines are written.
#[derive(Debug)]
pub struct Log<W: Write = Stdout> {
    lines: Arc<Mutex<LogState<W>>>,
}

impl Log {
    pub fn stdout() -> Self {
        Self::to(io::stdout())
    }

    /// Returns a handle through which scripts write to this log from any thread.
    pub fn voice(&self) -> Arc<dyn Voice> {
        Arc::new(self.clone())
    }
}

/// Makes another handle to the same log.
impl<W: Write> Clone for Log<W> {
    fn clone(&self) -> Self {
        Self { lines: Arc::clone(&self.lines) }
    }
}

impl<W: Write> Log<W> {
    pub fn to(out: W) -> Self {
        let lines = LogState { out, verbosity: None, last: None, repeated: 0, is_aside: false };
        Self { lines: Arc::new(Mutex::new(lines)) }
    }

    /// Sets the verbosity. From now on, lines whose level is above it are dropped. If a line is repeated, the
    /// repetitions are counted instead of written.
    pub fn limit(&mut self, verbosity: i64) {
        self.lines().verbosity = Some(verbosity);
    }

    /// Reserves standard output for events. From now on, warnings and errors are written to standard error, and other
    /// lines are dropped.
    pub fn stand_aside(&mut self) {
        self.lines().is_aside = true;
    }

    /// Writes a text and a line feed. If the same text is written several times in a row, it is written once, and the
    /// number of repetitions is written before the next different text.
    pub fn text(&self, level: Level, text: impl Display) {
        let mut lines = self.lines();
        if !lines.shows(level) {
            return;
        }
        let text = text.to_string();
        if lines.verbosity.is_some() {
            if lines.last.as_ref() == Some(&text) {
                lines.repeated += 1;
                return;
            }
            let repeated = std::mem::take(&mut lines.repeated);
            if repeated > 0 {
                lines.print(level, format_args!("(last message repeated {repeated} times)\n"));
            }
        }
        lines.print(level, format_args!("{}{text}\n", level.prefix()));
        lines.last = Some(text);
    }

    /// Writes a text and a line feed, even if the text is the same as the last one.
    pub fn always(&self, level: Level, text: impl Display) {
        let mut lines = self.lines();
        if lines.shows(level) {
            lines.print(level, format_args!("{}{text}\n", level.prefix()));
        }
    }

    /// Writes the lines of an error that ended a test or a client.
    pub fn fatal(&self, lines: &[String]) {
        lines.iter().for_each(|line| self.text(Level::Fatal, line));
    }

    /// Writes a notice that begins with the time since the start of the run, in seconds. It is written even if it is
    /// the same as the last line.
    pub fn timed(&self, seconds: f64, text: impl Display) {
        self.always(Level::Notice, format_args!("[ {seconds:.0}s ] {text}"));
    }

    /// Writes a text without any change, at any verbosity.
    pub fn raw(&self, text: &str) {
        self.lines().print(Level::Notice, format_args!("{text}"));
    }

    fn lines(&self) -> MutexGuard<'_, LogState<W>> {
        self.lines.lock()
    }
}

#[cfg(test)]
impl Log<Vec<u8>> {
    /// Returns everything that has been written to the log.
    pub fn written(self) -> Vec<u8> {
        self.lines().out.clone()
    }
}

/// The state that all writers of a log share.
#[derive(Debug)]
struct LogState<W: Write> {
    out: W,
    verbosity: Option<i64>,
    /// The text of the last line; `None` before the first line.
    last: Option<String>,
    /// The number of times that the last line was repeated.
    repeated: u32,
    /// True if standard output is reserved for events.
    is_aside: bool,
}

impl Voice for Log {
    fn say(&self, is_fatal: bool, text: &str) {
        self.text(if is_fatal { Level::Fatal } else { Level::Alert }, text);
    }

    fn print(&self, text: &[u8]) {
        let mut lines = self.lines();
        if lines.is_aside {
            return write_stderr(text);
        }
        let _ = heed_closed_pipe(lines.out.write_all(text).and_then(|()| lines.out.flush()));
    }
}

impl<W: Write> LogState<W> {
    fn shows(&self, level: Level) -> bool {
        self.verbosity.is_none_or(|verbosity| level as i64 <= verbosity)
    }

    /// Writes a text. If standard output is a closed pipe, the program ends. Other errors in writing are ignored.
    fn print(&mut self, level: Level, text: std::fmt::Arguments<'_>) {
        if !self.is_aside {
            let _ = heed_closed_pipe(self.out.write_fmt(text).and_then(|()| self.out.flush()));
        } else if level <= Level::Warning {
            (USER.show)(&text.to_string());
        }
    }
}

/// The error for which options are rejected or a command fails. The exit status is then 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SysbenchError {
    /// The text is written to standard error without any change.
    Error(String),
    /// The text is written to standard output without any change.
    Plain(String),
    /// Each line is written to the log with the level `Fatal`.
    Fatal(Vec<String>),
}

impl SysbenchError {
    /// Makes an error with one line, which is written to standard error.
    pub fn error(line: impl Display) -> Self {
        Self::Error(line.to_string())
    }

    /// Makes an error with one line, which is written to the log with the level `Fatal`.
    pub fn fatal(line: impl Display) -> Self {
        Self::Fatal(vec![line.to_string()])
    }

    /// Writes the error to the log or to standard error.
    pub fn write<W: Write>(&self, log: &mut Log<W>) {
        match self {
            Self::Error(line) => (USER.tell)(line),
            Self::Plain(line) => log.always(Level::Notice, line),
            Self::Fatal(lines) => lines.iter().for_each(|line| log.always(Level::Fatal, line)),
        }
    }
}

impl From<Fatal> for SysbenchError {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(act: impl Fn(&mut Log<Vec<u8>>)) -> String {
        let mut log = Log::to(Vec::new());
        act(&mut log);
        String::from_utf8(log.written()).unwrap()
    }

    #[test]
    fn levels_have_prefixes_and_are_left_out_above_the_verbosity() {
        let text = written(|log| {
            log.text(Level::Debug, "before");
            log.limit(2);
            log.text(Level::Fatal, "a");
            log.text(Level::Warning, "b");
            log.text(Level::Notice, "c");
            log.always(Level::Info, "d");
        });
        assert_eq!(text, "DEBUG: before\nFATAL: a\nWARNING: b\n");
    }

    #[test]
    fn repetitions_are_counted() {
        let text = written(|log| {
            log.limit(3);
            for word in ["", "a", "a", "a", "b"] {
                log.text(Level::Notice, word);
            }
            log.always(Level::Notice, "b");
        });
        assert_eq!(text, "\na\n(last message repeated 2 times)\nb\nb\n");
    }
}
