//! The option that names the file of the events. All front ends share it.

use std::path::PathBuf;

use crate::event::{EventWriter, RunDescription};
use events::Writer;
use ground::clock::Clock;
use ground::output::plain_io_message;

/// Where the engine writes the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Events {
    Stdout,
    File(PathBuf),
}

impl Events {
    /// The option's value: a file, or `-` for standard output.
    pub fn named(name: &str) -> Self {
        if name == "-" { Self::Stdout } else { Self::File(name.into()) }
    }

    /// Opens the file, and writes the first event. The error is a sentence.
    pub fn open(&self, clock: Clock, hello: &RunDescription<'_>) -> Result<EventWriter, String> {
        let out = match self {
            Self::Stdout => Writer::stdout(),
            Self::File(path) => Writer::file(path).map_err(|error| {
                format!("could not open events file \"{}\": {}", path.display(), plain_io_message(&error))
            })?,
        };
        EventWriter::new(out, clock, hello)
            .map_err(|error| format!("could not write events: {}", plain_io_message(&error)))
    }
}
