//! The errors in a line of events.

use serde_json::Value;
use thiserror::Error;

/// An error in a line of events. Each message continues a sentence that begins with the file and the number of the
/// line.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EventError {
    #[error("is not an event of this protocol ({reason}): {start:?}{}", if *.is_cut { "..." } else { "" })]
    NoEvent { reason: String, start: String, is_cut: bool },
    #[error("has no number for the key \"{0}\"")]
    NoNumber(&'static str),
    #[error(
        "speaks version {version} of the event protocol, but this program speaks version {known}; install the same release \
         of pgtrial on all machines"
    )]
    OtherProtocol { version: Value, known: u32 },
    #[error("cannot be added: its {key} {problem}")]
    Histogram { key: &'static str, problem: &'static str },
    #[error("has {transactions} transactions, but {added} in its histogram")]
    OtherSum { transactions: u64, added: u64 },
    #[error("counts {0} values, but has no mean and extremes of them")]
    NoFigures(u64),
}
