//! The pgbench front end. It takes the options of pgbench and prints the same lines as pgbench. An option adds events.

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

use options::arguments::PgbenchCommand;
pub use options::reader::manual;
use options::reader::parse;
use program::PGBENCH;

/// Runs pgbench with `args` (without the program's name); the exit status is that of pgbench: 0, 1 if options or
/// scripts are rejected, 2 if clients were given up during the run.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = parse(args).and_then(|command| {
        Ok(match command {
            PgbenchCommand::Initialize(initialization) => initialize::run(&initialization)?,
            PgbenchCommand::Benchmark(benchmark) => benchmark::run(*benchmark)?,
        })
    });
    PGBENCH.exit_status(status)
}
