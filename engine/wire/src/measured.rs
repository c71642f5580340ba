//! Replies without a socket, for benchmarks and fuzzers.

use super::error::ConnectionError;
use super::frames::{Flow, Rest};
use super::prepared::Prepared;
use super::reply::{Answer, ReplySink};
use super::request::Request;
use crate::Rows;

/// The status in which a usual reply ends, if `bytes` are the whole of one.
#[inline]
pub fn read_whole_reply(bytes: &[u8]) -> Option<u8> {
    let mut answer = Answer::default();
    answer.expect(Rows::Skipped);
    answer.status_of_whole(bytes)
}

/// Reads bytes that come in pieces of one size as a server's replies; how many are complete.
pub fn read_replies(bytes: &[u8], size: usize) -> Result<usize, ConnectionError> {
    let mut rest = Rest::default();
    let (mut answer, mut prepared, request) = (Answer::default(), Prepared::default(), Request::default());
    let (mut complete, mut kept) = (0, Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        kept.extend_from_slice(piece);
        loop {
            answer.expect(Rows::Skipped);
            let mut sink = ReplySink { status: 0, answer: &mut answer, prepared: &mut prepared, request: &request };
            let (used, flow) = rest.consume(&kept, &mut sink)?;
            kept.drain(..used);
            if flow == Flow::Continue {
                break;
            }
            complete += 1;
            answer.take_error();
        }
    }
    Ok(complete)
}
