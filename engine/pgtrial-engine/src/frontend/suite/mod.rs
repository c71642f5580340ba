//! The suite front end: queries that run one after the other in one session, in random order, each timed by itself.
//!
//! It has an event for each query in place of seconds, and blocking sessions in place of the event loop.

mod options;
mod output;
mod run;

use std::process::ExitCode;

use options::SUITE;
pub use options::manual;

/// Runs the queries with `args` (without the program's name). The exit status is 0 if the run is complete, even if
/// queries failed; 2 if the connection is lost; 3 if the options are rejected or an output could not be written; 130
/// after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    SUITE.exit_status(options::parse(args).and_then(|options| Ok(run::run(&options)?)))
}
