//! Front ends: each reads one tool's options, builds a plan, and writes that tool's output.

pub mod events;
pub mod exit;
pub mod merge;
pub mod pgbench;
pub mod run_events;
pub mod self_check;
pub mod sharing;
pub mod sysbench;
pub mod tasks;

use std::process::ExitCode;

use ground::output;

/// Exit status of what is refused or cannot be done.
const REFUSED: u8 = 1;

/// The end of one of our own front ends, called `name` in messages: its status, or a sentence on why there is none.
pub fn ended(name: &str, done: Result<u8, String>) -> ExitCode {
    match done {
        Ok(status) => ExitCode::from(status),
        Err(message) => {
            output::print_stderr(format_args!("{name}: error: {message}\n"));
            ExitCode::from(REFUSED)
        }
    }
}
