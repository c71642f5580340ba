//! What is written while the tasks run: their lines, and the events.

use std::sync::atomic::{AtomicBool, Ordering};

use super::NAME;
use super::lines::Lines;
use crate::event::EventWriter;
use crate::frontend::self_check::Warning;
use drive::{Abortion, Began, Observer, Outcome, Tick};
use ground::clock::{Clock, Phase};
use ground::output::plain_io_message;
use ground::output::print_stderr;

/// Watches a run for the tasks front end.
pub struct Watcher<'a> {
    clock: Clock,
    lines: Vec<Lines>,
    events: Option<EventWriter>,
    /// Whether events are all that is written: once nobody reads them the run is of no use.
    only_events: bool,
    /// Whether anything could not be written; it was not tried again.
    has_lost: bool,
    stop: &'a AtomicBool,
}

impl<'a> Watcher<'a> {
    /// A watcher that writes to what is open; it sets `stop` to end the run early.
    pub fn new(
        clock: Clock,
        lines: Vec<Lines>,
        events: Option<EventWriter>,
        only_events: bool,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { clock, lines, events, only_events, has_lost: false, stop }
    }

    /// Writes the last event.
    pub fn done(&mut self, outcome: &Outcome, status: u8, warnings: &[Warning]) {
        self.emit(|events, clock| events.done(clock, outcome, status, warnings));
    }

    /// Whether anything could not be written.
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    fn emit(&mut self, write: impl FnOnce(&mut EventWriter, Clock) -> std::io::Result<()>) {
        let clock = self.clock;
        let Some(events) = &mut self.events else { return };
        if let Err(error) = write(events, clock) {
            print_stderr(format_args!("{NAME}: error: could not write events: {}\n", plain_io_message(&error)));
            self.events = None;
            self.has_lost = true;
            if self.only_events {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Has all files of lines written to; one that cannot be is told of once.
    pub fn each_lines(&mut self, write: impl Fn(&mut Lines) -> Result<(), String>) {
        let before = self.lines.len();
        self.lines.retain_mut(|lines| {
            let written = write(lines);
            if let Err(message) = &written {
                print_stderr(format_args!("{NAME}: error: {message}\n"));
            }
            written.is_ok()
        });
        self.has_lost |= self.lines.len() < before;
    }
}

impl Observer for Watcher<'_> {
    fn connected(&mut self, clients: usize, seconds: f64) {
        self.emit(|events, clock| events.connected(clock, clients, seconds));
    }

    fn ready(&mut self, clients: usize, seconds: f64) {
        self.emit(|events, clock| events.ready(clock, clients, seconds));
    }

    fn phase(&mut self, phase: Phase, began: Option<&Began>) {
        self.emit(|events, clock| events.phase(clock, phase, began));
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some(pooled) = &tick.tally.pooled {
            self.each_lines(|lines| lines.write(&pooled.tasks));
        }
        self.emit(|events, clock| events.tick(clock, tick));
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.emit(|events, clock| events.aborted(clock, abortion));
    }

    fn note(&mut self, text: &str) {
        print_stderr(format_args!("{NAME}: {text}\n"));
    }
}
