//! The front end `replay`: runs the sessions of a capture, which were recorded from a server's logs, against another
//! server, at their recorded times or as fast as possible.

mod description;
mod examples;
mod options;
mod report;
mod run;

use std::process::ExitCode;

use options::REPLAY;
pub use options::manual;

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0 if the replay is
/// complete, even if statements failed; 2 if the capture could not be read to its end; 3 if the options are rejected or
/// an output could not be written; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|options| Ok(run::run(&options)?));
    REPLAY.exit_status(status)
}
