//! The events of a run: written until one of them cannot be.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::EventWriter;
use ground::clock::Clock;
use ground::output::plain_io_message;

/// Where events go, if they are asked for.
pub struct RunEvents<'a> {
    writer: Option<EventWriter>,
    clock: Clock,
    /// Whether nothing else is written. The run is then stopped when an event cannot be written.
    is_only_output: bool,
    is_lost: bool,
    stop: &'a AtomicBool,
}

impl<'a> RunEvents<'a> {
    /// Events to `writer`. If they are the only output and cannot be written, `stop` is set to end the run.
    pub fn new(writer: Option<EventWriter>, clock: Clock, is_only_output: bool, stop: &'a AtomicBool) -> Self {
        Self { writer, clock, is_only_output, is_lost: false, stop }
    }

    /// Whether an event could not be written; no later one was tried.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Writes an event. The error is a sentence; there is at most one in a run.
    pub fn write(&mut self, write: impl FnOnce(&mut EventWriter, Clock) -> io::Result<()>) -> Result<(), String> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        write(writer, self.clock).map_err(|error| {
            self.writer = None;
            self.is_lost = true;
            if self.is_only_output {
                self.stop.store(true, Ordering::Relaxed);
            }
            format!("could not write events: {}", plain_io_message(&error))
        })
    }
}
