//! `capture.json`: what a capture is, where it comes from, and what it lacks.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;
use crate::time::Micros;

/// The newest format, which this release writes and reads.
const FORMAT: u32 = 1;

const NAME: &str = "capture.json";

/// The description of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub format: u32,
    /// The time at which the capture was made, as `2026-11-23T08:00:00Z`, and the program that made it.
    pub made_at: String,
    pub made_by: String,
    /// The logs, in the order in which they were read.
    pub sources: Vec<Source>,
    /// The version as the server's first line says it, if the logs have that line.
    pub server_version: Option<String>,
    /// True if values are replaced by tokens.
    pub anonymized: bool,
    /// The earliest start of a session or a statement, since 1970-01-01 00:00 UTC.
    pub begin_us: Micros,
    /// The time from `begin` to the last end of a session or statement that the logs show.
    pub span_us: Micros,
    pub sessions: u64,
    pub statements: u64,
    /// The number of the statements that failed.
    pub failed: u64,
    pub templates: u32,
    /// The templates with the most statements, the first one with most; at most 1,000.
    pub commonest: Vec<Usage>,
    /// The counts of what the logs have and the capture lacks, by reason.
    pub left_out: Vec<LeftOut>,
    pub(super) files: Files,
}

/// A log that a capture was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The path, or `-` for standard input.
    pub name: String,
    /// The format of the log: `stderr`, `csvlog`, `jsonlog` or `cloud-sql`.
    pub format: String,
    /// The form in which the file is compressed: `gzip`, `zstd in 3 parts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<String>,
    /// The log_line_prefix by which the lines were read, for the formats that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The time zones that the log's abbreviations fit, if these zones have different offsets; `begin` is then computed
    /// with the offset of one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<String>,
    pub bytes: u64,
}

/// The number of statements of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub template: u32,
    pub statements: u64,
}

/// Statements or lines that could not be used for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// A name that stays the same from release to release, such as `copy-data`.
    pub reason: String,
    /// The reason as a sentence.
    pub why: String,
    pub count: u64,
    pub first: LogPlace,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    pub source: String,
    /// The number of the line, counted from 1.
    pub line: u64,
}

/// The sizes and checksums by which a reader sees that the files are whole. Chunks have checksums of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub(super) templates: Checked,
    pub(super) index: Checked,
    /// The size of `sessions.bin`.
    pub(super) sessions_bytes: u64,
}

/// The size and the checksum of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub bytes: u64,
    pub crc32: u32,
}

impl About {
    /// The format that this release writes.
    pub(super) const WRITTEN: u32 = FORMAT;

    /// Reads `capture.json` of a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let text = match ground::trust::read_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let was_begun = directory.join("sessions.bin").exists();
                return Err((if was_begun { Error::Unfinished } else { Error::NotACapture })(directory.to_owned()));
            }
            text => text.map_err(Error::io("read", &path))?,
        };
        let damaged = |error: serde_json::Error| Error::damaged(&path, error.to_string());
        let value: Value = serde_json::from_slice(&text).map_err(damaged)?;
        match value["format"].as_u64() {
            Some(found) if found > FORMAT.into() => {
                Err(Error::Newer { path: directory.to_owned(), found, readable: FORMAT })
            }
            Some(_) => serde_json::from_value(value).map_err(damaged),
            None => Err(Error::damaged(&path, "no format")),
        }
    }

    /// Writes the description when the other files are complete: from here on the capture is finished.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let (path, unnamed) = (directory.join(NAME), directory.join("capture.json.new"));
        let mut text = serde_json::to_vec_pretty(self).expect("texts and numbers are JSON");
        text.push(b'\n');
        fs::write(&unnamed, text).map_err(Error::io("write", &unnamed))?;
        fs::rename(&unnamed, &path).map_err(Error::io("write", &path))
    }
}
