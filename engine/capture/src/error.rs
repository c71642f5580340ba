//! The errors for which pgtrial cannot make a capture.

use std::sync::atomic::{AtomicBool, Ordering};

use ground::output::CouldNot;
use thiserror::Error;

use crate::format;

/// An error in a log, in a file of statistics, or in the directory of the capture. Each message is a sentence.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error(transparent)]
    File(#[from] CouldNot),
    #[error(transparent)]
    Format(#[from] format::Error),
    #[error("the log \"{log}\" {form}; {cure}")]
    Foreign { log: String, form: &'static str, cure: &'static str },
    #[error(
        "\"{0}\" has JSON that is neither PostgreSQL's jsonlog nor an export of Cloud SQL, Azure or CloudWatch. Give a log of a server"
    )]
    OtherJson(String),
    #[error(
        "no line of \"{log}\" begins with a known log_line_prefix; the first line is: {first}. Give the server's \
         log_line_prefix with --prefix (SHOW log_line_prefix)"
    )]
    UnknownPrefix { log: String, first: String },
    #[error(
        "no line of \"{log}\" begins with the prefix '{prefix}'; the first line is: {first}. Give the server's log_line_prefix with \
         --prefix{}", guess.as_ref().map_or(String::new(), |guess| format!("; it looks like '{guess}'"))
    )]
    AnotherPrefix { log: String, prefix: String, first: String, guess: Option<String> },
    #[error(
        "line {line} of the log {why}: {text}. Give the server's log_line_prefix with --prefix (SHOW log_line_prefix)"
    )]
    RefutedPrefix { line: u64, why: String, text: String },
    #[error(
        "in line {line} of \"{log}\" the log_line_prefix shows {by_prefix}, but the message names {by_message}. Give the server's \
         log_line_prefix with --prefix (SHOW log_line_prefix)"
    )]
    OtherNames { line: u64, log: String, by_prefix: String, by_message: String },
    #[error(
        "line {line} of the log \"{log}\" has a time in {why}. Give the zone of the server's log with --timezone (SHOW log_timezone)"
    )]
    Zone { line: u64, log: String, why: Unplaced },
    #[error("the log \"{0}\" has its newest messages first. Sort it by time (gcloud logging read --order=asc)")]
    NewestFirst(String),
    #[error(
        "the log \"{log}\" begins before \"{before}\", which was read first. Name the logs in the order of their times"
    )]
    OutOfOrder { log: String, before: String },
    #[error(
        "the logs \"{other}\" and \"{log}\" overlap, so that statements would be captured twice: they are one log in two \
         formats, a log and its copy, or the logs of two servers. Name each log once, and capture servers one by one"
    )]
    Overlapping { log: String, other: String },
    #[error(
        "the log \"{0}\" is read twice, so that statements would be captured twice: it is named twice, or it contains its own \
         copy. Name each log once"
    )]
    Twice(String),
    #[error(
        "the logs are in another language than English (line {line} of \"{log}\"). Set lc_messages = 'C' on the server and log again"
    )]
    OtherLanguage { line: u64, log: String },
    #[error("interrupted, so no capture was written; run the command again")]
    Interrupted,
    #[error("no statement of the logs is captured: {0}")]
    Outside(String),
    #[error("no statement of the logs can be used; left out: {count} {why} (first in line {line} of \"{log}\")")]
    NothingUsable { count: u64, why: String, line: u64, log: String },
    #[error(
        "the logs have no statements. Set log_statement = 'all' or log_min_duration_statement = 0 on the server and log again"
    )]
    NoStatements,
    #[error(
        "line {line} of \"{file}\" is cut short: a quote has no end; write the file again \
         with the queries of \"pgtrial capture --queries\""
    )]
    OpenQuote { file: String, line: u64 },
    #[error("line {line} of \"{file}\" is not UTF-8; write the file again with client_encoding = 'UTF8'")]
    NotUtf8 { file: String, line: u64 },
    #[error(
        "line {line} of \"{file}\" has another number of fields than the header; write the file again \
         with the queries of \"pgtrial capture --queries\""
    )]
    NotARow { file: String, line: u64 },
    #[error(
        "\"{file}\" has no column {column}; write the file again with the queries of \"pgtrial capture --queries\""
    )]
    NoColumn { file: String, column: String },
    #[error("{column} in line {line} of \"{file}\" is not a number: \"{text}\"")]
    NotANumber { file: String, line: u64, column: String, text: String },
    #[error("the mix would have {0:.0} statements, and at most 1000000000 are possible; make it shorter with --length")]
    LongMix(f64),
    #[error("no statement can be generated from the statistics; left out: {count} {why}")]
    NothingMade { count: u64, why: String },
    #[error("no statement can be generated: \"{0}\" has no calls; write it again after the server has run statements")]
    NoCalls(String),
}

impl CaptureError {
    /// Returns [`Self::Interrupted`] if a signal has set `interrupt`.
    pub fn once_set(interrupt: &AtomicBool) -> Result<(), Self> {
        if interrupt.load(Ordering::Relaxed) { Err(Self::Interrupted) } else { Ok(()) }
    }
}

/// The reason for which a given text is rejected as a `log_line_prefix`: it is malformed, or it lacks the escapes that
/// show to which session a line belongs or when the line was written. Each message is a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrefixError {
    #[error("the prefix \"{0}\" ends within an escape. Give log_line_prefix as it is set")]
    OpenEscape(String),
    #[error("the prefix \"{prefix}\" has %{letter}, which PostgreSQL does not know. Give log_line_prefix as it is set")]
    UnknownEscape { prefix: String, letter: char },
    #[error(
        "the prefix \"{0}\" does not say which session a line is of, or when it was written. Log with %p or %c, and with %m, %n or %t"
    )]
    NoSession(String),
}

/// The error about a text that names no time zone. The message is a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a time zone. Give a name such as Europe/Berlin, or an offset such as +05:30")]
pub struct UnknownZone(pub String);

/// The reason for which a time in a log cannot be converted to UTC. Each message continues "the log has a time in".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unplaced {
    #[error("another notation than earlier times, whose zone may be {0}")]
    OtherNotation(String),
    #[error("{name}, which {zone} does not have on that day")]
    NotInZone { name: String, zone: String },
    #[error("{0}, which no time zone has on that day")]
    InNoZone(String),
    #[error("{name}, which is {zones}")]
    Ambiguous { name: String, zones: String },
    #[error("{0}, which does not exist")]
    NoTime(String),
}
