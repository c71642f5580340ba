//! The front end `tasks`, which reproduces a published benchmark: a few applications share a server. Each application
//! has a bounded pool of connections and thousands of tasks, each of which runs one SELECT and one UPDATE.
//!
//! The run itself is the same as for pgbench with connection pools, with other defaults. This front end adds the table,
//! a line for each task, and the summary.

mod lines;
mod options;
mod run;
mod summary;

use std::process::ExitCode;

pub use options::manual;
use options::{TASKS, TasksCommand};

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0 if the run is
/// complete, even if tasks failed; 3 if the options are rejected or an output could not be written; 130 after an
/// interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|command| {
        Ok(match command {
            TasksCommand::Initialize(options) => run::initialize(&options)?,
            TasksCommand::Run(options, share) => run::run(&options, &share)?,
        })
    });
    TASKS.exit_status(status)
}
