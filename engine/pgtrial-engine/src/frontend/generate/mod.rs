//! The front end `generate`: makes the tables of the two query suites that come with pgtrial, `reports` and `joins`.

mod options;

use std::process::ExitCode;

use crate::frontend::common::connection::{LOADING, connect};
use crate::frontend::common::failure::Failure;
use options::{GENERATE, GenerateOptions};
use tables::refuse_read_only;
use tables::suites::{SuiteTables, generate};

pub use options::manual;

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0, 3 if the options
/// are rejected or the tables cannot be made, and 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|(options, suite)| Ok(run(&options, suite)?));
    GENERATE.exit_status(status)
}

fn run(options: &GenerateOptions, suite: &'static SuiteTables) -> Result<u8, Failure> {
    let (target, mut session, _) = connect(&options.server, "pgtrial generate", LOADING)?;
    refuse_read_only(&mut session, "generate makes tables")?;
    generate(session, &target, suite, options.scale, options.seed, options.jobs)?;
    Ok(0)
}
