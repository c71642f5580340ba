//! The file `capture.json`, which describes a capture: when and from which logs it was made, and what is missing in it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;
use crate::time::Micros;

/// The number of the newest format, which this release writes and reads.
const FORMAT: u32 = 1;

const NAME: &str = "capture.json";

/// The description of a capture, as `capture.json` stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub format: u32,
    /// The time at which the capture was made, such as `2026-11-23T08:00:00Z`.
    pub made_at: String,
    /// The program that made the capture.
    pub made_by: String,
    /// The logs, in the order in which they were read.
    pub sources: Vec<Source>,
    /// The server's version, if the logs have the line that a server writes when it starts.
    pub server_version: Option<String>,
    /// True if the values are replaced by tokens; false if the capture has the values of the logs.
    pub anonymized: bool,
    /// The earliest start of a session or a statement, in microseconds since 1970-01-01 00:00 UTC.
    pub begin_us: Micros,
    /// The time in microseconds from `begin_us` to the last end of a session or statement in the logs.
    pub span_us: Micros,
    pub sessions: u64,
    pub statements: u64,
    /// The number of statements that failed on the server.
    pub failed: u64,
    pub templates: u32,
    /// The templates (texts of statements without their values) that the most statements use, in descending order of
    /// these numbers; at most 1,000.
    pub commonest: Vec<Usage>,
    /// The numbers of statements and lines of the logs that the capture does not contain, or whose replay is doubtful,
    /// for each reason.
    pub left_out: Vec<LeftOut>,
    pub(super) files: Files,
}

/// A log from which the capture was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The path of the log, or `-` for standard input.
    pub name: String,
    /// The format of the file: `stderr`, `csvlog` or `jsonlog` for PostgreSQL's own log formats, `cloud-sql`, `azure`
    /// or `cloudwatch` for the export of a cloud service, and the name of a statistics view for its CSV file.
    pub format: String,
    /// The compression of the file, such as `gzip` or `zstd in 3 parts`; `None` if it is not compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<String>,
    /// The log_line_prefix with which the lines were read, if the format has prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The possible time zones of the log, if its abbreviations fit several zones with different offsets. `begin_us` is
    /// then computed with the offset of one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<String>,
    pub bytes: u64,
}

/// A template (the text of a statement without its values), and the number of statements that use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub template: u32,
    pub statements: u64,
}

/// The number of statements or lines that are missing in the capture, or whose replay is doubtful, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name of the reason, such as `copy-data`. It stays the same from release to release.
    pub reason: String,
    /// The reason in words, for messages.
    pub why: String,
    pub count: u64,
    pub first: LogPlace,
}

/// A line in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    pub source: String,
    /// The number of the line, counted from 1.
    pub line: u64,
}

/// The sizes and checksums of the capture's files other than `capture.json`, with which a reader checks that the files
/// are complete. The file `sessions.bin` has no checksum here, because each of its chunks has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub(super) templates: Checked,
    pub(super) index: Checked,
    /// The size of `sessions.bin` in bytes.
    pub(super) sessions_bytes: u64,
}

/// The size and the checksum of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub bytes: u64,
    pub crc32: u32,
}

impl About {
    /// The number of the format in which this release writes captures.
    pub(super) const WRITTEN: u32 = FORMAT;

    /// Reads `capture.json` in a directory.
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

    /// Writes `capture.json` after all other files are complete. The file marks the capture as finished.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let (path, unnamed) = (directory.join(NAME), directory.join("capture.json.new"));
        let mut text = serde_json::to_vec_pretty(self).expect("texts and numbers are JSON");
        text.push(b'\n');
        fs::write(&unnamed, text).map_err(Error::io("write", &unnamed))?;
        fs::rename(&unnamed, &path).map_err(Error::io("write", &path))
    }
}
