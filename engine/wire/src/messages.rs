//! The messages of the extended protocol that a client sends, encoded as bytes.

use crate::frame;

/// The encoded message Sync.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// The encoded message CopyDone.
pub const COPY_DONE: [u8; 5] = [b'c', 0, 0, 0, 4];

/// The encoded message Execute for the unnamed portal without a row limit.
pub const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// The encoded message Describe for the unnamed portal.
pub const DESCRIBE_PORTAL: [u8; 7] = [b'D', 0, 0, 0, 6, b'P', 0];

/// The end of a Bind message that asks for all results in text format.
pub const TEXT_RESULTS: [u8; 2] = [0, 0];

/// The end of a Bind message that asks for all results in binary format.
pub const BINARY_RESULTS: [u8; 4] = [0, 1, 0, 1];

/// The maximum number of bytes that come after the parameters of one execution: `TEXT_RESULTS` or `BINARY_RESULTS`,
/// `DESCRIBE_PORTAL` if it is sent, `EXECUTE` and `SYNC`. On the hot path always this many bytes are copied, since a
/// copy of constant size is faster.
pub const TAIL: usize = BINARY_RESULTS.len() + DESCRIBE_PORTAL.len() + EXECUTE.len() + SYNC.len();

/// Returns the message Parse with a statement's name, its text, and the OIDs of its parameters' types.
pub fn parse(name: &str, text: &[u8], types: &[u32]) -> Vec<u8> {
    let mut message = Vec::new();
    frame::write(&mut message, b'P', |out| {
        frame::write_text(out, name.as_bytes());
        frame::write_text(out, text);
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
    message
}

/// Returns the message Describe of a prepared statement.
pub fn describe(name: &str) -> Vec<u8> {
    let mut message = Vec::new();
    frame::write(&mut message, b'D', |out| {
        out.push(b'S');
        frame::write_text(out, name.as_bytes());
    });
    message
}

/// Appends the messages that parse a text without parameters and execute it once, with Sync at the end. If `describes`
/// is true, Describe for the portal is sent, too.
pub fn parse_and_execute(text: &[u8], describes: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&parse("", text, &[]));
    // The names of the portal and of the statement are empty, there are no parameters, and all results are in text
    // format.
    frame::write(out, b'B', |out| out.extend_from_slice(&[0; 8]));
    if describes {
        out.extend_from_slice(&DESCRIBE_PORTAL);
    }
    out.extend_from_slice(&EXECUTE);
    out.extend_from_slice(&SYNC);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_mark::SessionMark;
    use crate::statement::{QueryMode, RequestEnd, ResultFormat, Statement};

    #[test]
    fn a_text_without_parameters_is_parsed_and_executed_once() {
        let statement = Statement::with_parameters(0, b"SELECT 'x'", 0);
        for describes in [true, false] {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            parse_and_execute(b"SELECT 'x'", describes, &mut found);
            let end = RequestEnd { format: ResultFormat::Text, describes, syncs: true };
            statement.encode(SessionMark::NONE, (QueryMode::Extended, false), &[], end, &mut expected);
            assert_eq!(found, expected);
        }
    }
}
