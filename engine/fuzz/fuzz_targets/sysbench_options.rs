//! Checks that any arguments, and any file of options that they name, are understood or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgtrial_engine::sysbench_accepts;

fuzz_target!(|input: (Vec<String>, &[u8])| {
    let (mut args, content) = input;
    sysbench_accepts(&args, content);
    args.push("--config-file=options".to_owned());
    sysbench_accepts(&args, content);
});
