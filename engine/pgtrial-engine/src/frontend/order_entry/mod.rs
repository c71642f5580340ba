//! The order-entry front end: the tables of the TPC-C specification, its five transactions as a load, and its consistency
//! conditions. Its own are the tables, the mix and the report; the other options are pgbench's.

mod check;
mod load;
mod messages;
mod options;
mod report;
mod run;
mod watch;

use std::process::ExitCode;

use ground::options::{ERROR, exit_status};
use options::{Command, describe};

/// Runs a command with `args` (without the program's name). The exit status is 0; 3 for what is rejected or could not be
/// written; 2 if clients were given up, or if a condition does not hold; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|options| {
        Ok(match options.command {
            Command::Load => load::run(&options)?,
            Command::Run => run::run(&options)?,
            Command::Check => check::run(&options)?,
        })
    });
    exit_status(status, ERROR, describe)
}
