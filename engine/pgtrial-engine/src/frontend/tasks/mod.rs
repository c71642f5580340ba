//! The tasks front end: the published application. A few applications share nothing but the server; each has a bounded pool
//! of connections and thousands of tasks of one SELECT and one UPDATE.
//!
//! It is pgbench's run of pools with preset values. Its own are the table, a line for each task, and the summary.

mod lines;
mod options;
mod run;
mod summary;

use std::process::ExitCode;

use ground::options::{ERROR, exit_status};

/// Runs the tasks with `args` (without the program's name). The exit status is 0 when the run is complete, whatever became
/// of the tasks; 3 for what is rejected, and when something that was asked for could not be written; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|options| Ok(run::run(options)?));
    exit_status(status, ERROR, options::describe)
}
