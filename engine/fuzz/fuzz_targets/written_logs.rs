//! Checks the capture of a log that the oracle has written and perhaps damaged: the capture contains each statement of
//! the log or counts it as left out, and contains nothing else.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(difference) = log_oracle::judge(bytes) {
        panic!("{difference}");
    }
});
