//! The front end `merge`: merges the events of several engines, each of which ran one shard of a load on its own
//! machine, into the events of the whole run.

mod error;
mod hello;
mod merger;
mod options;
mod report;
mod seconds;
mod source;
mod stream;
#[cfg(test)]
mod tests;

use std::io;
use std::process::ExitCode;

use crate::frontend::common::failure::Failure;
use error::MergeError;
use events::{Event, EventLine, Lost};
use ground::output::{CouldNot, OutputFile};
use merger::Merger;
pub use options::manual;
use options::{Inputs, MERGE};
use stream::phase_name;

/// Runs the front end with the command line `args` (without the program's name). The exit status is the highest exit
/// status of the engines, 2 if a machine was lost, or 3 if the input is rejected.
pub fn main(args: Vec<String>) -> ExitCode {
    MERGE.exit_status(options::parse(args).and_then(|inputs| Ok(merge(inputs).map_err(Failure::error)?)))
}

/// Reads the events and writes the merged events to standard output. Returns the exit status.
fn merge(Inputs { machines, files }: Inputs) -> Result<u8, MergeError> {
    let mut merger = Merger::new(machines);
    let mut out = OutputFile::stdout("events");
    let mut write = |merger: &mut Merger| -> Result<(), MergeError> {
        Ok(merger.take_lines().iter().try_for_each(|line| write_line(&mut out, line))?)
    };
    let read = if files.is_empty() {
        source::merge_live(&mut merger, io::stdin(), &mut write)
    } else {
        source::merge_files(&mut merger, &files, &mut write)
    };
    // After an error in reading, the merged events that are already complete are still written.
    let written = write(&mut merger);
    read.and(written)?;
    merger.status().ok_or(MergeError::NoEnd)
}

fn write_line(out: &mut OutputFile, line: &EventLine) -> Result<(), CouldNot> {
    if let Event::Lost(lost) = &line.event {
        warn_of_loss(lost);
    }
    line.write(out)
}

fn warn_of_loss(Lost { machine, phase, second }: &Lost) {
    let place = match phase {
        None => "before its load began".to_owned(),
        Some(phase) => format!("in second {} of the phase {}", second.unwrap_or_default(), phase_name(*phase)),
    };
    MERGE.warning(format_args!(
        "machine {machine} was lost {place}: its events end there, and only those of the other machines go on"
    ));
}
