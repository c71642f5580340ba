//! The front end `generate`: makes the tables of the two query suites that come with pgtrial, `reports` and `joins`.

mod options;

use std::process::ExitCode;

use crate::frontend::common::connection::{LOADING, session, target};
use crate::frontend::common::failure::Failure;
use ground::interrupt;
use options::{GENERATE, GenerateOptions};
use tables::refuse_read_only;
use tables::suites::generate;

pub use options::manual;

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0, 3 if the options
/// are rejected or the tables cannot be made, and 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|options| Ok(run(&options)?));
    GENERATE.exit_status(status)
}

fn run(options: &GenerateOptions) -> Result<u8, Failure> {
    let target = target(&options.server, "pgtrial generate", LOADING)?;
    let mut session = session(&target, LOADING)?;
    target.obey(&interrupt::catch()?);
    refuse_read_only(&mut session, "generate makes tables")?;
    let GenerateOptions { suite, scale, seed, jobs, .. } = options;
    generate(session, &target, suite, *scale, *seed, *jobs)?;
    Ok(0)
}
