//! The errors in a line of events.

use serde_json::Value;
use thiserror::Error;

/// An error in a line. Each message continues a sentence that begins with the line's place.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EventError {
    #[error("is no event of this protocol ({reason}): {start:?}{}", if *.is_cut { "..." } else { "" })]
    NoEvent { reason: String, start: String, is_cut: bool },
    #[error("says no number for \"{0}\"")]
    NoNumber(&'static str),
    #[error(
        "speaks version {version} of the event protocol and this program version {known}; install the same release of pgtrial on \
         all machines"
    )]
    OtherProtocol { version: Value, known: u32 },
    #[error("cannot be added: its {key} {problem}")]
    Histogram { key: &'static str, problem: &'static str },
    #[error("has {transactions} transactions, but {added} in its histogram")]
    OtherSum { transactions: u64, added: u64 },
    #[error("has {0} values without their figures")]
    NoFigures(u64),
}
