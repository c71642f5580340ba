//! The front end `suite`: runs queries one after the other in one session, in random order, and measures the time of
//! each query.
//!
//! Unlike the other front ends that run a load, it writes an event for each query instead of one for each second, and
//! uses a session with blocking calls instead of the event loop.

mod options;
mod output;
mod run;

use std::process::ExitCode;

use options::SUITE;
pub use options::manual;

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0 if the run is
/// complete, even if queries failed; 2 if the connection is lost; 3 if the options are rejected or an output could not
/// be written; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    SUITE.exit_status(options::parse(args).and_then(|options| Ok(run::run(&options)?)))
}
