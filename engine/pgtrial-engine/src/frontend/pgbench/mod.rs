//! The pgbench front end: pgbench's options in, pgbench's lines out, and events beside them when asked for.

mod benchmark;
mod histogram;
mod initialize;
pub mod messages;
pub mod options;
pub mod plan;
mod progress;
mod report;
mod scripts;
pub mod server;

use std::process::ExitCode;

use ground::options::exit_status;
use options::reader::parse;

/// Exit status for what pgbench rejects, and when something that was asked for could not be written.
pub(super) const FAILED: u8 = 1;

/// Runs pgbench with `args` (without the program's name); the exit status is pgbench's: 0, 1 for what it rejects, 2 when
/// the run went wrong.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = parse(args).and_then(|options| {
        Ok(if options.init.is_asked_for { initialize::run(&options)? } else { benchmark::run(*options)? })
    });
    exit_status(status, FAILED, |failure| failure.to_string())
}
