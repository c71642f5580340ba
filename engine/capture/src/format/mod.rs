//! The files of a capture. A capture is a directory that is written in one pass and can be read by many threads.
//!
//! ```text
//! capture.json     what the capture is and where it comes from (`About`), written last
//! templates.jsonl  one statement template a line (`Template`)
//! sessions.bin     chunks of statements; each chunk names the next one of its session
//! sessions.idx     one entry a session, ordered by start (`RecordedSession`), with its first chunk
//! ```
//!
//! Numbers in statements and entries are LEB128 varints. Numbers of fixed size are little endian. Times are in
//! microseconds.
//!
//! - `about`: the file `capture.json`
//! - `checked`: a file whose checksum is in `capture.json`
//! - `chunk`: writes and reads a chunk of `sessions.bin`
//! - `error`: the errors of reading and writing a capture
//! - `index`: the entries of the sessions
//! - `reader`, `writer`: read and write a whole capture
//! - `statement`: the encoding of a statement within a chunk
//! - `template`: statements without their values
//! - `varint`: the encoding of numbers

mod about;
mod checked;
mod chunk;
mod error;
mod index;
mod reader;
mod statement;
mod template;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use crate::time::Micros;
pub use about::{About, Checked, Files, LeftOut, LogPlace, Source, Usage};
pub use error::Error;
pub use index::{RecordedSession, Sessions};
pub use reader::{Capture, SessionReader};
pub use statement::{Parameters, RecordedStatement, SqlState, StatementFailure};
pub use template::{Parameterization, Protocol, Template, TemplateShape, fill_places};
pub use writer::{Origin, SessionId, Writer};
