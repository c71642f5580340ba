//! Checks that any bytes are either captured as a log or rejected, and that the resulting capture can be read.

#![no_main]

use std::fs;

use capture::format::Capture;
use capture::make::{CaptureOrder, make};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, &[u8])| {
    let (anonymize, log) = input;
    let directory = tempfile::tempdir().expect("there is a place for files");
    let (path, output) = (directory.path().join("log"), directory.path().join("capture"));
    fs::write(&path, log).expect("there is room for a log");
    let logs = vec![path.to_str().expect("the path is a text").to_owned()];
    let Ok(about) = make(&CaptureOrder { logs, anonymize, ..CaptureOrder::default() }, &output, &mut |_| {}) else { return };
    let capture = Capture::open(&output).expect("a capture can be opened");
    let mut statements = 0;
    for session in capture.sessions().expect("its index can be read") {
        let mut reader = capture.read(&session.expect("a session can be read"));
        while reader.advance().expect("a statement can be read") {
            statements += 1;
        }
    }
    assert_eq!(statements, about.statements);
});
