//! Checks that any bytes are a server's replies or an error, and the same ones however they are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Rows;
use wire::frame::{Flow, KEPT, Reader};
use wire::order::Form;
use wire::reply::{Exchange, Receiving};
use wire::usual::UsualReplies;

/// Returns how many replies are complete in bytes that come in pieces of this size; `None` if they are no replies.
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
    // A row that is longer than what is kept and comes in pieces is left out unread, whatever is in it.
    if whole.is_some() || bytes.len() <= KEPT {
        assert_eq!(cut, whole);
    }
});
