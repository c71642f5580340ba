//! The program. All its code is in the library, so that benchmarks and fuzz tests can call it, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    pgtrial_engine::main()
}
