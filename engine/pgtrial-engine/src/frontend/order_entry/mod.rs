//! The front end `order-entry`: makes the tables of the TPC-C specification (`load`), runs its five transactions as a
//! load (`run`), and checks its consistency conditions (`check`). The options for the tables and for the mix of
//! transactions, and the report, belong to this front end. All other options are shared with other front ends.

mod check;
mod load;
mod options;
mod report;
mod run;
mod watch;

use std::process::ExitCode;

pub use options::manual;
use options::{ORDER_ENTRY, OrderEntryCommand};

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0, 2 if clients
/// were aborted or a consistency condition does not hold, 3 if the options are rejected or an output could not be
/// written, and 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let status = options::parse(args).and_then(|command| {
        Ok(match command {
            OrderEntryCommand::Load(options) => load::run(&options)?,
            OrderEntryCommand::Run(options, share) => run::run(&options, &share)?,
            OrderEntryCommand::Check(server) => check::run(&server)?,
        })
    });
    ORDER_ENTRY.exit_status(status)
}
