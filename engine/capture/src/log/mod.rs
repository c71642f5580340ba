//! Reads PostgreSQL's logs as records, whatever the format of a log is.
//!
//! - `prefix`, `fields`, `guess`: the `log_line_prefix`, its escapes, and a guess if the user does not give it
//! - `record`: a message of the server, and the other items that a reader can find
//! - `line`: reads a line with bounded memory
//! - `source`: reads the lines of a file or of standard input
//! - `compressed`: decompresses gzip, xz and Zstandard
//! - `envelope`: removes the text that container runtimes put around each line
//! - `torn`, `mixed`: find messages within a line after data were lost, and messages in another format
//! - `stderr`, `csv` with `row`, `json`, `cloud`: one log format each
//! - `words`: the keywords of messages, also in other languages than English

mod cloud;
mod compressed;
mod csv;
mod detect;
mod envelope;
mod fields;
mod guess;
mod json;
mod line;
mod mixed;
mod prefix;
mod record;
mod row;
mod source;
mod stderr;
mod torn;
mod words;

pub use compressed::ReadCounts;
pub use detect::{DetectedLog, Format};
pub use guess::COMMON;
pub use prefix::Prefix;
pub use record::{LogItem, Record, Sink, Unreadable};
pub(crate) use row::split as split_row;
pub use words::{Language, Severity, language_of};
