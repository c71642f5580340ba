//! Any text is a script or is refused; a script runs or stops with an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgtrial_engine::measured::Client;

fuzz_target!(|text: &[u8]| {
    // A script may run any command of the system's.
    if text.windows(5).any(|word| word.eq_ignore_ascii_case(b"shell")) {
        return;
    }
    if let Some(mut client) = Client::compile(text) {
        for _ in 0..3 {
            client.transaction();
        }
    }
});
