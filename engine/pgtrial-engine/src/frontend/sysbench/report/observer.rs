//! The observer of a run, which the event loop calls once for each second. It prints the same lines as sysbench while
//! the run is in progress, and determines the exit status at the end.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::forced_end::ForcedEnd;
use super::init_timeout::InitTimeout;
use super::options::ReportOptions;
use super::statistics::statistics;
use super::status::{FAILED, OVERDUE};
use super::texts::ReportedPeriod;
use super::{histogram, texts};
use crate::frontend::common::elapsed::Elapsed;
use crate::frontend::common::messages::USER;
use crate::frontend::sysbench::log::{Level, Log};
use drive::plan::Plan;
use drive::statistics::LoadStatistics;
use drive::{Abortion, Began, Cause, Observer, Outcome, STUCK, Tick};
use ground::clock::{Clock, Phase};
use ground::interrupt;
use workload::settings::Settings;
use workload::statistics::{Hooks, Statistics};
use workload::{AbortReason, Fatal};

/// sysbench's message about a run that it stops by force (`--forced-shutdown`).
pub const EXPIRED: &str = "The --max-time limit has expired, forcing shutdown...";

/// A load to be run, with the log and the other values that its reports need.
pub struct LoadRun<'a, W: Write = std::io::Stdout> {
    pub settings: &'a Settings,
    pub plan: &'a Plan,
    pub clock: Clock,
    pub test: &'a dyn Hooks,
    pub log: &'a mut Log<W>,
}

/// The observer of a run, which the event loop calls once for each second and for each client that is aborted. It
/// prints the same lines as sysbench.
pub struct RunObserver<'a, W: Write> {
    pub run: LoadRun<'a, W>,
    options: &'a ReportOptions,
    init_timeout: Option<InitTimeout>,
    stop: &'a Arc<AtomicBool>,
    /// True once all clients are ready, so that the load begins.
    pub has_started: bool,
    /// The number of aborted clients.
    pub aborted: usize,
    /// True if the run was stopped by force, because clients did not end within the time that `--forced-shutdown`
    /// allows.
    was_forced: Arc<AtomicBool>,
    forced_end: Option<ForcedEnd>,
    /// The elapsed time of the measured part.
    elapsed: Elapsed,
    /// The number of whole seconds since the scheduled end of the measured part.
    drained_s: u64,
    interval: Period,
    since_checkpoint: Period,
}

/// The counts since the last report: the last report of `--report-interval`, or the last checkpoint.
#[derive(Default)]
struct Period {
    measured: LoadStatistics,
    /// The time in the measured part at which the period began, in seconds.
    begin_s: f64,
}

impl Period {
    /// Ends the period at the time `now_s` and returns it. A new period begins at the same time.
    fn end(&mut self, now_s: f64) -> Period {
        std::mem::replace(self, Period { measured: LoadStatistics::default(), begin_s: now_s })
    }
}

impl<'a, W: Write> RunObserver<'a, W> {
    /// Makes an observer that prints the reports that `options` request. It sets `stop` to stop the run early.
    pub fn new(
        run: LoadRun<'a, W>,
        options: &'a ReportOptions,
        init_timeout: Option<InitTimeout>,
        stop: &'a Arc<AtomicBool>,
    ) -> Self {
        Self {
            elapsed: Elapsed::new(run.plan),
            run,
            options,
            init_timeout,
            stop,
            has_started: false,
            aborted: 0,
            was_forced: Arc::default(),
            forced_end: None,
            drained_s: 0,
            interval: Period::default(),
            since_checkpoint: Period::default(),
        }
    }

    /// Returns the exit status of a run with this outcome.
    pub fn status(&self, outcome: &Outcome) -> u8 {
        let was_late = self.init_timeout.as_ref().is_some_and(InitTimeout::has_expired);
        if outcome.aborted > 0 {
            FAILED
        } else if was_late || self.was_forced() && outcome.unfinished > 0 {
            OVERDUE
        } else if outcome.interrupted && !self.was_forced() {
            interrupt::STATUS
        } else {
            0
        }
    }

    /// Writes the last report. It covers the time since the last checkpoint or, without checkpoints, the whole run.
    pub fn report_whole(&mut self, outcome: &Outcome) {
        self.run.test.end_reports();
        if self.options.histogram && !self.was_cut_off(outcome) {
            self.run.log.text(Level::Notice, "Latency histogram (values are in milliseconds)");
            self.run.log.raw(&histogram::lines(&self.since_checkpoint.measured.latencies));
            self.run.log.text(Level::Notice, " ");
        }
        let unfinished = if self.was_cut_off(outcome) { outcome.unfinished } else { 0 };
        self.report_part(outcome.elapsed_s, 0, unfinished, |test, statistics| test.cumulative(statistics));
    }

    fn was_cut_off(&self, outcome: &Outcome) -> bool {
        self.was_forced() && outcome.unfinished > 0
    }

    fn was_forced(&self) -> bool {
        self.was_forced.load(Ordering::Relaxed)
    }

    fn report_part(
        &mut self,
        now_s: f64,
        threads_running: usize,
        unfinished: usize,
        hook: impl FnOnce(&dyn Hooks, &Statistics) -> Result<bool, Fatal>,
    ) {
        let period = self.since_checkpoint.end(now_s);
        let statistics = self.statistics(&period, now_s, threads_running);
        if self.is_reported(|test| hook(test, &statistics)) {
            return;
        }
        for line in self.run.test.results(&statistics) {
            self.run.log.text(Level::Notice, line);
        }
        let part = ReportedPeriod {
            statistics: &statistics,
            measured: &period.measured,
            clients: self.run.plan.clients,
            first_client: self.run.plan.part.number(0),
            has_queries: self.run.test.uses_sql(),
            unfinished,
        };
        texts::cumulative(self.run.log, &part, self.options);
    }

    fn report_interval(&mut self, tick: &Tick, now_s: f64) {
        let period = self.interval.end(now_s);
        let mut statistics = self.statistics(&period, now_s, self.run.plan.clients);
        if let Some(queue) = tick.statistics.schedule.as_ref().and_then(|schedule| schedule.queue) {
            (statistics.queue_length, statistics.concurrency) = (queue.waiting, queue.busy);
        }
        if self.is_reported(|test| test.intermediate(&statistics)) {
            return;
        }
        match self.run.test.interval_line(&statistics) {
            Some(line) => self.run.log.timed(statistics.time_total, line),
            None => texts::intermediate(self.run.log, &statistics, self.options, self.run.test.uses_sql()),
        }
    }

    fn statistics(&self, period: &Period, now_s: f64, threads_running: usize) -> Statistics {
        let percentile = f64::from(self.options.percentile);
        let seconds = period.measured.slice_time_s(self.run.plan.clients).unwrap_or(now_s - period.begin_s);
        statistics(&period.measured, percentile, threads_running, seconds, now_s)
    }

    /// Calls the test's own function for this report, if it has one. Returns true if the test has made the report, and
    /// false if sysbench's own report must be printed. An error in the function is logged, counts as a report, and does
    /// not end the run.
    fn is_reported(&mut self, hook: impl FnOnce(&dyn Hooks) -> Result<bool, Fatal>) -> bool {
        hook(self.run.test).unwrap_or_else(|fatal| {
            self.run.log.fatal(&fatal.lines);
            true
        })
    }

    /// Starts the time limit of `--forced-shutdown` for a load that begins now.
    fn limit(&mut self) {
        let plan = self.run.plan;
        if let (Some(grace), Some(time), None) = (self.options.grace, plan.duration(), &plan.slices) {
            let longest = plan.warmup + time + Duration::from_secs(grace);
            self.forced_end = ForcedEnd::start(longest, self.stop, &self.was_forced);
        }
    }

    /// Stops the run by force if the grace period of `--forced-shutdown`, which begins at the planned end of the run,
    /// is over.
    fn force_end(&mut self) {
        if self.options.grace.is_some_and(|grace| self.drained_s >= grace) && !self.stop.swap(true, Ordering::Relaxed) {
            self.was_forced.store(true, Ordering::Relaxed);
        }
    }
}

/// Writes a warning for the user to standard error.
pub fn warn(message: &String) {
    (USER.tell)(&format!("sysbench: {message}"));
}

impl<W: Write> Observer for RunObserver<'_, W> {
    fn connected(&mut self, clients: usize, _seconds: f64) {
        if self.init_timeout.as_ref().is_some_and(|timeout| !timeout.clients_are_ready()) {
            // The clients are ready too late (`--thread-init-timeout`): the run is already being stopped.
            return;
        }
        for thread in self.run.plan.part.number(0)..self.run.plan.part.number(0) + clients {
            self.run.log.text(Level::Debug, format_args!("Worker thread (#{thread}) initialized"));
        }
        self.has_started = true;
        self.run.log.text(Level::Notice, "Threads started!\n");
    }

    fn phase(&mut self, phase: Phase, began: Option<&Began>) {
        began.and_then(Began::lateness).iter().for_each(warn);
        if began.is_some() {
            self.limit();
        }
        match phase {
            Phase::Warmup => {
                self.run.log.text(
                    Level::Notice,
                    format_args!("Warming up for {} seconds...\n", self.run.plan.warmup.as_secs()),
                );
            }
            Phase::Measure => {}
            Phase::Drain => self.force_end(),
        }
    }

    /// Writes a report when an interval is complete, and at each checkpoint. An incomplete interval at the end of the
    /// run is not reported.
    fn tick(&mut self, tick: &Tick) {
        if tick.phase == Phase::Warmup {
            return;
        }
        self.since_checkpoint.measured.merge(&tick.statistics);
        if self.options.interval.is_some() {
            self.interval.measured.merge(&tick.statistics);
        }
        let ended = self.elapsed.add(tick);
        if ended.is_empty() {
            return;
        }
        let now_s = self.elapsed.seconds();
        if self.options.interval.is_some_and(|interval| ended.clone().any(|second| second % interval == 0)) {
            self.report_interval(tick, now_s);
        }
        if self.options.checkpoints.iter().any(|point| ended.contains(point)) {
            self.run.log.timed(now_s, "Checkpoint report:");
            self.report_part(now_s, self.run.plan.clients, 0, |test, statistics| test.checkpoint(statistics));
        }
        if tick.phase == Phase::Drain {
            self.drained_s += 1;
            self.force_end();
        }
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.aborted += 1;
        let client = abortion.client;
        match &abortion.cause {
            Cause::Program(AbortReason::Fatal(lines)) => self.run.log.fatal(lines),
            cause => self.run.log.text(Level::Fatal, format_args!("thread {client} cannot go on: {cause}")),
        }
        if !self.has_started {
            self.run.log.text(Level::Debug, format_args!("Worker thread (#{client}) failed to initialize!"));
        }
    }

    fn note(&mut self, text: &str) {
        self.run.log.text(Level::Warning, text);
    }

    fn stuck(&mut self, outcome: &Outcome) -> u8 {
        if self.was_forced() {
            self.run.log.text(Level::Fatal, EXPIRED);
            self.report_whole(outcome);
            return OVERDUE;
        }
        self.run.log.text(Level::Fatal, STUCK);
        interrupt::STATUS
    }
}
