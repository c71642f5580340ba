//! The replay front end: runs the sessions of a capture against a server, at their recorded times or as fast as
//! possible.

mod description;
mod examples;
mod options;
mod report;
mod run;

use std::process::ExitCode;

use options::REPLAY;
pub use options::manual;

/// Replays with `args` (without the program's name). The exit status is 0 when the replay is complete, whatever became
/// of its statements; 3 for what is rejected, and when something that was asked for could not be written; 2 when the
/// capture could not be read to its end; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|options| Ok(run::run(&options)?));
    REPLAY.exit_status(status)
}
