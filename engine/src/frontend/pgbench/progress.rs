//! What is said while a run goes on: progress lines, given-up clients, and the events beside them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::messages;
use super::options::{Events, Options};
use crate::connection::error::ConnectionError;
use crate::connection::target::plain_io_message;
use crate::event::EventWriter;
use crate::ledger::Tally;
use crate::reactor::{Abortion, Cause, Clock, Observer, Outcome, Phase, Tick};

/// Watches a run for the pgbench front end.
pub struct Watcher<'a> {
    clock: Clock,
    events: Option<&'a mut EventWriter>,
    /// Whether events are all that is written: once nobody reads them the run is of no use.
    only_events: bool,
    events_lost: bool,
    stop: &'a AtomicBool,
    /// Seconds between progress lines.
    every: Option<u32>,
    /// What has happened since the last progress line, and how long that is.
    since: Tally,
    since_s: f64,
    elapsed_s: f64,
    ticks: u32,
}

impl<'a> Watcher<'a> {
    /// A watcher that prints and writes what the options ask for; it sets `stop` to end the run early.
    pub fn new(options: &Options, clock: Clock, events: Option<&'a mut EventWriter>, stop: &'a AtomicBool) -> Self {
        Self {
            clock,
            events,
            only_events: options.events == Some(Events::Stdout),
            events_lost: false,
            stop,
            every: options.progress,
            since: Tally::default(),
            since_s: 0.0,
            elapsed_s: 0.0,
            ticks: 0,
        }
    }

    /// Writes the last event.
    pub fn done(&mut self, outcome: &Outcome, status: u8) {
        self.emit(|events, clock| events.done(clock, outcome, status));
    }

    /// Whether an event could not be written; those after it were not tried.
    pub fn events_lost(&self) -> bool {
        self.events_lost
    }

    fn emit(&mut self, write: impl FnOnce(&mut EventWriter, Clock) -> std::io::Result<()>) {
        let clock = self.clock;
        if let Some(events) = &mut self.events {
            if let Err(error) = write(events, clock) {
                messages::error(format_args!("could not write events: {}", plain_io_message(&error)));
                self.events = None;
                self.events_lost = true;
                if self.only_events {
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn forget(&mut self) {
        self.since = Tally::default();
        self.since_s = 0.0;
    }
}

impl Observer for Watcher<'_> {
    fn connected(&mut self, clients: usize, seconds: f64) {
        self.emit(|events, clock| events.connected(clock, clients, seconds));
    }

    fn phase(&mut self, phase: Phase) {
        self.emit(|events, clock| events.phase(clock, phase));
        if phase == Phase::Measure {
            self.forget();
        }
    }

    /// Prints a progress line when an interval is full; for the rest of one at the end of a run there is none.
    fn tick(&mut self, tick: &Tick) {
        self.emit(|events, clock| events.tick(clock, tick));
        let Some(every) = self.every else { return };
        if tick.phase == Phase::Warmup {
            return;
        }
        self.since.merge(&tick.tally);
        self.since_s += tick.seconds;
        self.elapsed_s += tick.seconds;
        self.ticks += 1;
        if self.ticks % every == 0 && tick.seconds >= 1.0 {
            let line = progress_line(self.elapsed_s, self.since_s, &self.since);
            messages::tell(format_args!("{line}\n"));
            self.forget();
        }
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.emit(|events, clock| events.aborted(clock, abortion));
        messages::error(describe(abortion));
    }
}

/// pgbench's progress line.
fn progress_line(elapsed_s: f64, since_s: f64, tally: &Tally) -> String {
    let tps = tally.transactions() as f64 / since_s;
    let (latency, stddev) = (tally.moments.mean() / 1000.0, tally.moments.stddev() / 1000.0);
    let failed = results_failed(tally);
    format!("progress: {elapsed_s:.1} s, {tps:.1} tps, lat {latency:.3} ms stddev {stddev:.3}, {failed} failed")
}

/// Failures as pgbench counts them: serialization failures and deadlocks.
pub fn results_failed(tally: &Tally) -> u64 {
    ["40001", "40P01"].iter().filter_map(|kind| tally.failures.get(*kind)).sum()
}

/// pgbench's sentence on a client that is given up. Why a connection broke it does not say; the events do.
fn describe(abortion: &Abortion) -> String {
    const DIED: &str = "perhaps the backend died while processing";
    let Abortion { client, script, command, cause } = abortion;
    let last_word: Option<&dyn std::fmt::Display> = match cause {
        Cause::Statement(error) | Cause::Connection(ConnectionError::Server(error)) => Some(error),
        _ => None,
    };
    match (cause, last_word, command) {
        (Cause::Connect(error), ..) => {
            format!("{error}\npgbench: error: client {client} aborted while establishing connection")
        }
        (Cause::Program(message), _, Some(command)) => format!(
            "{message}\npgbench: error: client {client} aborted in command {command} (set) of script {script}; \
             evaluation of meta-command failed"
        ),
        (_, Some(error), Some(command)) => {
            format!("client {client} script {script} aborted in command {command} query 0: {error}")
        }
        (_, None, Some(command)) => {
            format!("client {client} aborted in command {command} (SQL) of script {script}; {DIED}")
        }
        (_, last_word, None) => {
            let reason = last_word.map_or_else(|| DIED.to_owned(), ToString::to_string);
            format!("client {client} aborted while rolling back the transaction after an error; {reason}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_is_pgbenchs() {
        let mut tally = Tally::default();
        (0..2750).for_each(|_| tally.commit(3_770_000));
        tally.fail("40001");
        tally.fail("57P01");
        assert_eq!(
            progress_line(10.0, 10.0, &tally),
            "progress: 10.0 s, 275.0 tps, lat 3.770 ms stddev 0.000, 1 failed"
        );
    }

    #[test]
    fn a_lost_connection_is_told_with_the_servers_last_word_if_there_is_one() {
        let told = |command, cause| describe(&Abortion { client: 3, script: 1, command, cause });
        let server = || ConnectionError::Server(Box::default());
        assert_eq!(
            told(Some(4), Cause::Connection(ConnectionError::Closed)),
            "client 3 aborted in command 4 (SQL) of script 1; perhaps the backend died while processing"
        );
        assert!(
            told(Some(4), Cause::Connection(server())).starts_with("client 3 script 1 aborted in command 4 query 0:")
        );
        assert_eq!(
            told(None, Cause::Connection(ConnectionError::Closed)),
            "client 3 aborted while rolling back the transaction after an error; \
             perhaps the backend died while processing"
        );
    }
}
