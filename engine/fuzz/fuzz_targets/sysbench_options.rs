//! Checks that any arguments, and any option file that they name, are either understood or rejected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgtrial_engine::sysbench_accepts;

fuzz_target!(|input: (Vec<String>, &[u8])| {
    let (mut args, content) = input;
    sysbench_accepts(&args, content);
    args.push("--config-file=options".to_owned());
    sysbench_accepts(&args, content);
});
