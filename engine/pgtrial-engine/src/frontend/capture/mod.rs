//! The front end `capture`: makes a capture (the recorded sessions of clients) from the logs of a server. The front end
//! `replay` runs these sessions on another server.

mod options;
mod progress;
mod summary;

use std::process::ExitCode;

use crate::frontend::common::failure::Failure;
use capture::error::CaptureError;
use capture::make::make;
use ground::interrupt;
use ground::output::print_stdout;
pub use options::manual;
use options::{CAPTURE, CaptureOptions};
use progress::Display;

/// Runs the front end with the command line `args` (without the program's name). The exit status is 0, 3 if the options
/// are rejected or the capture could not be made, and 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    CAPTURE.exit_status(options::parse(args).and_then(|mut options| {
        options.order.interrupt = interrupt::catch().map_err(Failure::from)?;
        Ok(match capture(&options) {
            Err(error @ CaptureError::Interrupted) => {
                CAPTURE.info(error);
                interrupt::STATUS
            }
            done => done.map_err(Failure::error)?,
        })
    }))
}

/// Makes the capture, a recording of the sessions in the logs, and prints its summary. Returns the exit status.
fn capture(options: &CaptureOptions) -> Result<u8, CaptureError> {
    let mut display = Display::start(options.quiet);
    let about = make(&options.order, &options.directory, &mut |progress| display.show(progress))?;
    let text = if options.json {
        summary::json(&about)
    } else {
        summary::text(&about, &summary::commonest(&options.directory)?, &options.directory)
    };
    print_stdout(text);
    Ok(0)
}
