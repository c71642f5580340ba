//! Makes a capture of a server's logs, for a replay.

mod options;
mod progress;
mod summary;

use std::process::ExitCode;

use capture::error::CaptureError;
use capture::make::make;
use ground::options::{ERROR, Stop, exit_status};
use ground::output::print_stdout;
use options::{NAME, Options};
use progress::Display;

/// Captures with `args` (without the program's name). The exit status is 3 if nothing could be captured.
pub fn main(args: Vec<String>) -> ExitCode {
    let made =
        options::parse(args).and_then(|options| capture(&options).map_err(|error| Stop::Error(error.to_string())));
    exit_status(made, ERROR, |message| format!("{NAME}: error: {message}"))
}

/// Returns the exit status.
fn capture(options: &Options) -> Result<u8, CaptureError> {
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
