//! PostgreSQL's logs as records, whatever their format.
//!
//! - `prefix`, `fields`, `guess`: `log_line_prefix`, its escapes, and which one a log has
//! - `record`: a message of the server, and what else readers find
//! - `line`: a line in bounded memory
//! - `source`: lines of a file or of standard input
//! - `compressed`: gzip, xz and Zstandard
//! - `envelope`: the text that other programs put around each line
//! - `torn`, `mixed`: messages that begin within a line, and those in another form
//! - `stderr`, `csv` with `row`, `json`, `cloud`: one format each
//! - `words`: the words of severities, in other languages too

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
