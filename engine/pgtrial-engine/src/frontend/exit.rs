//! The exit status of a front end.

use std::process::ExitCode;

use ground::options::Stop;
use ground::output::{print_stderr, print_stdout};

/// Exit status of what is rejected or cannot be done.
const REJECTED: u8 = 1;

/// Prints why there is nothing to run, or an error as `describe` words it. Returns the status.
pub fn status<E>(done: Result<u8, Stop<E>>, describe: impl FnOnce(&E) -> String) -> ExitCode {
    match done {
        Ok(status) => return ExitCode::from(status),
        Err(Stop::Print(text)) => print_stdout(text),
        Err(Stop::List(text)) => print_stderr(text),
        Err(Stop::Error(error)) => {
            print_stderr(format_args!("{}\n", describe(&error)));
            return ExitCode::from(REJECTED);
        }
    }
    ExitCode::SUCCESS
}
