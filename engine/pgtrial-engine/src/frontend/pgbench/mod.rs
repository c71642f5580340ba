//! The front end `pgbench`, which behaves as PostgreSQL's pgbench: it has the same options and prints the same lines. A
//! few more options are pgtrial's own.

mod benchmark;
mod histogram;
mod initialize;
mod options;
mod program;
mod progress;
mod report;
mod scripts;
mod server;

use std::process::ExitCode;

pub use options::manual;
use options::{PgbenchCommand, parse};
use program::PGBENCH;

/// Runs the front end with the command line `args` (without the program's name). The exit status is the same as
/// pgbench's: 0, 1 if the options or scripts are rejected, 2 if clients were aborted during the run. After an interrupt
/// it is 130.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = parse(args).and_then(|command| {
        Ok(match command {
            PgbenchCommand::Initialize(options) => initialize::run(&options)?,
            PgbenchCommand::Benchmark(options, share) => benchmark::run(*options, &share)?,
        })
    });
    PGBENCH.exit_status(status)
}
