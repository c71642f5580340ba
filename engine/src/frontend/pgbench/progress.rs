//! What is said while a run goes on: progress lines, given-up clients, and the events beside them.

use super::messages;
use super::options::Options;
use crate::connection::ServerInfo;
use crate::event::EventWriter;
use crate::ledger::Tally;
use crate::reactor::{Abortion, Cause, Clock, Observer, Phase, Tick};

/// Watches a run for the pgbench front end.
pub struct Watcher<'a> {
    clock: Clock,
    events: Option<&'a mut EventWriter>,
    /// Seconds between progress lines.
    every: Option<u32>,
    /// What has happened since the last progress line, and how long that is.
    since: Tally,
    since_s: f64,
    elapsed_s: f64,
    ticks: u32,
}

impl<'a> Watcher<'a> {
    /// A watcher that prints and writes what the options ask for.
    pub fn new(options: &Options, clock: Clock, events: Option<&'a mut EventWriter>) -> Self {
        Self { clock, events, every: options.progress, since: Tally::default(), since_s: 0.0, elapsed_s: 0.0, ticks: 0 }
    }

    /// The last progress line of a run whose end fell between two: pgbench prints none for less than an interval.
    pub fn finish_line(&mut self) {
        self.since = Tally::default();
    }

    fn emit(&mut self, write: impl FnOnce(&mut EventWriter, Clock) -> std::io::Result<()>) {
        let clock = self.clock;
        if let Some(events) = &mut self.events {
            if let Err(error) = write(events, clock) {
                messages::error(format!("could not write events: {error}"));
                self.events = None;
            }
        }
    }
}

impl Observer for Watcher<'_> {
    fn connected(&mut self, clients: usize, seconds: f64, _server: Option<&ServerInfo>) {
        self.emit(|events, clock| events.connected(clock, clients, seconds));
    }

    fn phase(&mut self, phase: Phase) {
        self.emit(|events, clock| events.phase(clock, phase));
        self.since = Tally::default();
        self.since_s = 0.0;
        self.elapsed_s = 0.0;
        self.ticks = 0;
    }

    fn tick(&mut self, tick: &Tick) {
        self.emit(|events, clock| events.tick(clock, tick));
        let Some(every) = self.every else { return };
        self.since.merge(&tick.tally);
        self.since_s += tick.seconds;
        self.elapsed_s += tick.seconds;
        self.ticks += 1;
        if tick.phase == Phase::Measure && self.ticks % every == 0 && tick.seconds >= 1.0 {
            eprintln!("{}", progress_line(self.elapsed_s, self.since_s, &self.since));
            self.since = Tally::default();
            self.since_s = 0.0;
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

/// pgbench's sentence on a client that is given up.
fn describe(abortion: &Abortion) -> String {
    let Abortion { client, script, command, cause } = abortion;
    match (cause, command) {
        (Cause::Statement(error), Some(command)) => {
            format!("client {client} script {script} aborted in command {command} query 0: {error}")
        }
        (Cause::Statement(error), None) => format!("client {client} aborted: {error}"),
        (Cause::Connection(error), Some(command)) => format!(
            "{error}\npgbench: error: client {client} aborted in command {command} (SQL) of script {script}; \
             perhaps the backend died while processing"
        ),
        (Cause::Connection(error), None) => format!("{error}\npgbench: error: client {client} aborted"),
        (Cause::Connect(error), _) => {
            format!("{error}\npgbench: error: client {client} aborted while establishing connection")
        }
        (Cause::Program(message), Some(command)) => format!(
            "{message}\npgbench: error: client {client} aborted in command {command} (set) of script {script}; \
             evaluation of meta-command failed"
        ),
        (Cause::Program(message), None) => format!("client {client} aborted: {message}"),
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
}
