//! The capture of a log, damaged or not, has what was written, or counts it; and it has nothing else.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(difference) = log_oracle::judge(bytes) {
        panic!("{difference}");
    }
});
