//! What is said while a run goes on, and what is known of it at its end.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use super::choice::Choice;
use super::statistics::statistics;
use super::watchdog::Watchdog;
use super::{FAILED, Hooks, OVERDUE, Run, histogram, intermediate};
use crate::event::EventWriter;
use crate::frontend::events::Events;
use crate::frontend::self_check::Warning;
use crate::frontend::sysbench::log::{Level, Log};
use crate::frontend::sysbench::report::cumulative;
use crate::frontend::sysbench::report::cumulative::Part;
use drive::ledger::Tally;
use drive::{Abortion, Began, Cause, Observer, Outcome, Tick};
use ground::clock::{Clock, Phase};
use ground::interrupt;
use ground::output::plain_io_message;
use workload::statistics::Statistics;
use workload::{AbortReason, Fatal};

/// Watches a run for the sysbench front end.
pub struct Watcher<'a, W: Write> {
    pub log: &'a mut Log<W>,
    choice: &'a Choice,
    clients: usize,
    first_client: usize,
    warmup_s: u64,
    clock: Clock,
    test: &'a dyn Hooks,
    events: Option<EventWriter>,
    events_lost: bool,
    watchdog: Option<Watchdog>,
    stop: &'a AtomicBool,
    has_started: bool,
    /// Clients that were given up.
    aborted: usize,
    /// Whether the run was stopped because the grace after its end was over.
    was_forced: bool,
    /// Length of the measured part so far, and of what came after its scheduled end, whole seconds.
    elapsed_s: u64,
    drained_s: u64,
    interval: Stretch,
    since_checkpoint: Stretch,
}

/// What has happened since the last report of a kind.
#[derive(Default)]
struct Stretch {
    tally: Tally,
    /// Its begin in the measured part, seconds.
    begin_s: f64,
}

impl Stretch {
    /// Ends at `now_s`, where the next one begins.
    fn end(&mut self, now_s: f64) -> Stretch {
        std::mem::replace(self, Stretch { tally: Tally::default(), begin_s: now_s })
    }
}

impl<'a, W: Write> Watcher<'a, W> {
    /// A watcher that prints what `choice` asks for; it sets `stop` to end the run early.
    pub fn new(
        run: Run<'a, W>,
        choice: &'a Choice,
        events: Option<EventWriter>,
        watchdog: Option<Watchdog>,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            log: run.log,
            choice,
            clients: run.plan.clients,
            first_client: run.plan.part.number(0),
            warmup_s: run.plan.warmup.as_secs(),
            clock: run.clock,
            test: run.test,
            events,
            events_lost: false,
            watchdog,
            stop,
            has_started: false,
            aborted: 0,
            was_forced: false,
            elapsed_s: 0,
            drained_s: 0,
            interval: Stretch::default(),
            since_checkpoint: Stretch::default(),
        }
    }

    /// Whether all clients became ready.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// How many clients were given up.
    pub fn aborted(&self) -> usize {
        self.aborted
    }

    /// The exit status that a run with this outcome has.
    pub fn status(&self, outcome: &Outcome) -> u8 {
        let was_late = self.watchdog.as_ref().is_some_and(Watchdog::has_barked);
        if outcome.aborted > 0 {
            FAILED
        } else if was_late || self.was_forced && outcome.unfinished > 0 {
            OVERDUE
        } else if outcome.interrupted && !self.was_forced {
            interrupt::STATUS
        } else {
            0
        }
    }

    /// Writes the last event; the exit status, which is another one if events were lost.
    pub fn end(&mut self, outcome: &Outcome, status: u8, warnings: &[Warning]) -> u8 {
        self.emit(|events, clock| events.done(clock, outcome, status, warnings));
        if self.events_lost { FAILED } else { status }
    }

    /// Writes the report on what has happened since the last checkpoint, the whole run if there was none.
    pub fn report_whole(&mut self, outcome: &Outcome) {
        self.test.end_intervals();
        if self.choice.histogram && !self.was_cut_off(outcome) {
            self.log.text(Level::Notice, "Latency histogram (values are in milliseconds)");
            self.log.raw(&histogram::lines(&self.since_checkpoint.tally.latencies));
            self.log.text(Level::Notice, " ");
        }
        let unfinished = if self.was_cut_off(outcome) { outcome.unfinished } else { 0 };
        self.report_part(outcome.elapsed_s, 0, unfinished);
    }

    fn was_cut_off(&self, outcome: &Outcome) -> bool {
        self.was_forced && outcome.unfinished > 0
    }

    fn report_part(&mut self, now_s: f64, threads_running: usize, unfinished: usize) {
        let stretch = self.since_checkpoint.end(now_s);
        let statistics = self.statistics(&stretch, now_s, threads_running);
        if self.is_reported(|test| test.cumulative(&statistics)) {
            return;
        }
        let has_queries = self.test.uses_sql();
        let part = Part {
            statistics: &statistics,
            tally: &stretch.tally,
            clients: self.clients,
            first_client: self.first_client,
            has_queries,
            unfinished,
        };
        cumulative::report(self.log, &part, self.choice);
    }

    fn report_interval(&mut self, tick: &Tick, now_s: f64) {
        let stretch = self.interval.end(now_s);
        let mut statistics = self.statistics(&stretch, now_s, self.clients);
        if let Some(pace) = &tick.tally.pace {
            (statistics.queue_length, statistics.concurrency) = (pace.backlog, pace.busy);
        }
        let Choice { percentile, paced, .. } = *self.choice;
        if self.is_reported(|test| test.intermediate(&statistics)) {
            return;
        }
        if self.test.uses_sql() {
            intermediate::report(self.log, &statistics, percentile, paced);
        } else {
            intermediate::report_events(self.log, &statistics, percentile, paced);
        }
    }

    fn statistics(&self, stretch: &Stretch, now_s: f64, threads_running: usize) -> Statistics {
        let percentile = f64::from(self.choice.percentile);
        statistics(&stretch.tally, percentile, threads_running, now_s - stretch.begin_s, now_s)
    }

    /// Whether the test reports in its own way. Its errors are told; the run goes on.
    fn is_reported(&mut self, hook: impl FnOnce(&dyn Hooks) -> Result<bool, Fatal>) -> bool {
        hook(self.test).unwrap_or_else(|fatal| {
            self.tell_fatal(&fatal);
            true
        })
    }

    /// Says what went wrong.
    pub fn tell_fatal(&mut self, fatal: &Fatal) {
        fatal.lines.iter().for_each(|line| self.log.text(Level::Fatal, line));
    }

    fn emit(&mut self, write: impl FnOnce(&mut EventWriter, Clock) -> std::io::Result<()>) {
        let Some(events) = &mut self.events else { return };
        if let Err(error) = write(events, self.clock) {
            self.log.text(Level::Fatal, format_args!("could not write events: {}", plain_io_message(&error)));
            self.events = None;
            self.events_lost = true;
            if self.choice.events == Some(Events::Stdout) {
                // Nobody would see the results.
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Ends the run if its end is more than the grace ago.
    fn force_end(&mut self) {
        if self.choice.grace.is_some_and(|grace| self.drained_s >= grace) && !self.stop.swap(true, Ordering::Relaxed) {
            self.was_forced = true;
        }
    }
}

impl<W: Write> Observer for Watcher<'_, W> {
    fn connected(&mut self, clients: usize, seconds: f64) {
        if self.watchdog.as_ref().is_some_and(|watchdog| !watchdog.call_off()) {
            // They are ready, and too late: the run has been told to end.
            return;
        }
        self.emit(|events, clock| events.connected(clock, clients, seconds));
        for thread in self.first_client..self.first_client + clients {
            self.log.text(Level::Debug, format_args!("Worker thread (#{thread}) initialized"));
        }
        self.has_started = true;
        self.log.text(Level::Notice, "Threads started!\n");
    }

    fn ready(&mut self, clients: usize, seconds: f64) {
        self.emit(|events, clock| events.ready(clock, clients, seconds));
    }

    fn phase(&mut self, phase: Phase, began: Option<&Began>) {
        self.emit(|events, clock| events.phase(clock, phase, began));
        match phase {
            Phase::Warmup => {
                self.log.text(Level::Notice, format_args!("Warming up for {} seconds...\n", self.warmup_s));
            }
            Phase::Measure => {}
            Phase::Drain => self.force_end(),
        }
    }

    /// Reports when an interval or the way to a checkpoint is full; for the rest of an interval at the end there is no line.
    fn tick(&mut self, tick: &Tick) {
        self.emit(|events, clock| events.tick(clock, tick));
        if tick.phase == Phase::Warmup {
            return;
        }
        self.since_checkpoint.tally.merge(&tick.tally);
        if self.choice.interval.is_some() {
            self.interval.tally.merge(&tick.tally);
        }
        if tick.seconds < 1.0 {
            return;
        }
        self.elapsed_s += 1;
        let now_s = self.elapsed_s as f64;
        if self.choice.interval.is_some_and(|interval| self.elapsed_s % interval == 0) {
            self.report_interval(tick, now_s);
        }
        if self.choice.checkpoints.binary_search(&self.elapsed_s).is_ok() {
            self.log.timed(now_s, "Checkpoint report:");
            self.report_part(now_s, self.clients, 0);
        }
        if tick.phase == Phase::Drain {
            self.drained_s += 1;
            self.force_end();
        }
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.emit(|events, clock| events.aborted(clock, abortion));
        self.aborted += 1;
        let client = abortion.client;
        match &abortion.cause {
            Cause::Program(AbortReason::Fatal(lines)) => {
                lines.iter().for_each(|line| self.log.text(Level::Fatal, line));
            }
            cause => self.log.text(Level::Fatal, format_args!("thread {client} cannot go on: {cause}")),
        }
        if !self.has_started {
            self.log.text(Level::Debug, format_args!("Worker thread (#{client}) failed to initialize!"));
        }
    }

    fn note(&mut self, text: &str) {
        self.log.text(Level::Debug, text);
    }
}
