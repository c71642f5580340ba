//! The suite front end: queries that run one after the other in one session, in random order, each timed by itself.
//!
//! It has an event for each query in place of seconds, and blocking sessions in place of the event loop.

mod options;
mod output;
mod run;

use std::process::ExitCode;

use options::SUITE;
pub use options::manual;

/// Runs the queries with `args` (without the program's name). The exit status is 0 when the run is complete, whatever
/// became of the queries; 2 when the connection is lost; 3 for what is rejected or could not be written; 130 after an
/// interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    SUITE.exit_status(options::parse(args).and_then(|options| Ok(run::run(&options)?)))
}
