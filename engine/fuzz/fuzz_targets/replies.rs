//! Any bytes are a server's replies or an error, and the same ones however they are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgtrial_engine::measured::read_replies;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = read_replies(bytes, bytes.len()).ok();
    assert_eq!(read_replies(bytes, usize::from(size)).ok(), whole);
});
