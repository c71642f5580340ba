//! The program; everything is in the library, where benchmarks and fuzzers reach it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    pgtrial_engine::main()
}
