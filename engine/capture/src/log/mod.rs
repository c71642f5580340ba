//! PostgreSQL's logs as records, whatever their format.
//!
//! - `prefix`: `log_line_prefix`
//! - `record`: a message of the server, and what else readers find
//! - `source`: lines of a file or of standard input
//! - `envelope`: what other programs put around each line
//! - `stderr`, `csv`, `json`, `cloud`: one format each
//! - `words`: the words of severities, in other languages too

mod cloud;
mod csv;
mod detect;
mod envelope;
mod json;
mod prefix;
mod record;
mod source;
mod stderr;
mod words;

pub(crate) use csv::split as split_row;
pub use detect::{Format, Log};
pub use prefix::{COMMON, Prefix};
pub use record::{Found, Record, Sink, Unreadable};
pub use words::{Language, Severity, language_of};
