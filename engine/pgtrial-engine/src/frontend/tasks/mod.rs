//! The tasks front end: the published application. A few applications share nothing but the server; each has a bounded
//! pool of connections and thousands of tasks of one SELECT and one UPDATE.
//!
//! It is the common run of pools with preset values. Its own are the table, a line for each task, and the summary.

mod lines;
mod options;
mod run;
mod summary;

use std::process::ExitCode;

pub use options::manual;
use options::{TASKS, TasksCommand};

/// Runs the tasks with `args` (without the program's name). The exit status is 0 if the run is complete, even if tasks
/// failed; 3 if the options are rejected or an output could not be written; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|command| {
        Ok(match command {
            TasksCommand::Initialize(server, table) => run::initialize(&server, &table)?,
            TasksCommand::Run(command) => run::run(*command)?,
        })
    });
    TASKS.exit_status(status)
}
