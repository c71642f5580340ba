//! A capture on disk: a directory that is written in one pass and read by many threads.
//!
//! ```text
//! capture.json     what the capture is and where it comes from (`About`), written last
//! templates.jsonl  one statement template a line (`Template`)
//! sessions.bin     chunks of statements; each chunk names the next one of its session
//! sessions.idx     one entry a session, ordered by start (`Session`), with its first chunk
//! ```
//!
//! Numbers in chunks and entries are LEB128 varints, fixed ones are little endian. Times are microseconds.
//!
//! - `about`: `capture.json`
//! - `checked`: a file whose checksum `capture.json` has
//! - `chunk`: the header of a chunk, and a chunk read from its place
//! - `error`: the reasons for which a capture cannot be read or written
//! - `index`: the entries of sessions
//! - `reader`, `writer`: a whole capture
//! - `statement`: a statement within a chunk
//! - `template`: statements without their values
//! - `varint`: numbers of varying length

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
