//! Where the events of a run go, which front ends share.

use std::path::PathBuf;

use crate::event::{EventWriter, Hello};
use ground::clock::Clock;
use ground::output::plain_io_message;

/// Where the JSON Lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Events {
    Stdout,
    File(PathBuf),
}

impl Events {
    /// As options name it: a file, or `-`.
    pub fn named(name: &str) -> Self {
        if name == "-" { Self::Stdout } else { Self::File(name.into()) }
    }

    /// Opens it and writes the first event; the error is a whole sentence.
    pub fn open(&self, clock: Clock, hello: &Hello<'_>) -> Result<EventWriter, String> {
        let mut writer = match self {
            Self::Stdout => EventWriter::stdout(),
            Self::File(path) => EventWriter::file(path).map_err(|error| {
                format!("could not open events file \"{}\": {}", path.display(), plain_io_message(&error))
            })?,
        };
        writer.hello(clock, hello).map_err(|error| format!("could not write events: {}", plain_io_message(&error)))?;
        Ok(writer)
    }
}
