//! Checks that any bytes are either read as a server's replies or rejected, and that the result does not depend on the
//! pieces in which the bytes arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Rows;
use wire::frame::{Flow, KEPT, Reader};
use wire::order::Form;
use wire::reply::{Exchange, Receiving};
use wire::usual::UsualReplies;

/// Returns the number of complete replies in bytes that arrive in pieces of this size. Returns `None` if the bytes are
/// not replies.
fn replies(bytes: &[u8], size: usize) -> Option<usize> {
    let (mut reader, mut exchange, mut usual) = (Reader::default(), Exchange::default(), UsualReplies::default());
    let mut receiving = Receiving { exchange: &mut exchange, usual: &mut usual };
    let mut complete = 0;
    receiving.exchange.expect_of(0, Rows::Skipped, Form::Text);
    for mut piece in bytes.chunks(size.max(1)) {
        while reader.take(std::mem::take(&mut piece), &mut receiving).ok()? == Flow::Stop {
            receiving.exchange.take_reply();
            receiving.exchange.expect_of(0, Rows::Skipped, Form::Text);
            complete += 1;
        }
    }
    Some(complete)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let (cut, whole) = (replies(bytes, usize::from(size)), replies(bytes, bytes.len()));
    // The body of a long row that arrives in several pieces is dropped without a check, so that the pieces may matter.
    if whole.is_some() || bytes.len() <= KEPT {
        assert_eq!(cut, whole);
    }
});
