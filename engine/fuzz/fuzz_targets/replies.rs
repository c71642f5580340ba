//! Any bytes are a server's replies or an error, and the same ones however they are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Rows;
use wire::frame::{Flow, Reader};
use wire::order::Order;
use wire::reply::Exchange;

/// How many replies are complete in bytes that come in pieces of this size; `None` if they are no replies.
fn replies(bytes: &[u8], size: usize) -> Option<usize> {
    let (mut reader, mut exchange, mut complete) = (Reader::default(), Exchange::default(), 0);
    for mut piece in bytes.chunks(size.max(1)) {
        exchange.expect(Rows::Skipped, Order::of_text());
        while reader.take(std::mem::take(&mut piece), &mut exchange).ok()? == Flow::Stop {
            exchange.take_reply();
            exchange.expect(Rows::Skipped, Order::of_text());
            complete += 1;
        }
    }
    Some(complete)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    assert_eq!(replies(bytes, usize::from(size)), replies(bytes, bytes.len()));
});
