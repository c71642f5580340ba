//! The reactor: decides when. It spreads the clients over threads, starts them together, and adds up what they report.

mod arrivals;
mod client;
mod connecting;
mod failures;
pub mod ledger;
mod notes;
mod outage;
mod outcome;
mod plain;
pub mod plan;
mod pool;
mod pooled;
mod replies;
mod schedule;
mod staged;
mod start;
mod thread;
mod throttle;
mod ticks;
mod timers;
mod transact;
mod usage;
mod worker;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread as threads;
use std::time::Duration;

use crate::ledger::tasks::Tasks;
use crate::ledger::{ScriptAccount, Tally};
use crate::plan::Plan;
use ground::clock::{Clock, Nanos, Phase};
pub use outcome::{Abortion, Cause, Observer, Outcome, RunError, Tick};
use schedule::{Schedule, Stretch};
pub use start::Began;
use start::Started;
use thread::Thread;
use ticks::Ticks;
pub use usage::CpuTime;
use wire::OpenError;
use worker::Worker;

/// What a thread tells the run.
pub(crate) enum Report {
    Connected,
    /// The thread has begun its load.
    Began {
        at: Nanos,
    },
    CannotConnect {
        client: usize,
        error: OpenError,
    },
    Tick {
        worker: usize,
        stretch: Stretch,
        tally: Box<Tally>,
    },
    Note(String),
    Aborted {
        client: usize,
        thread: usize,
        script: usize,
        command: Option<usize>,
        cause: Cause,
    },
    Failed {
        message: String,
    },
    Finished {
        worker: usize,
        totals: Box<ThreadTotals>,
    },
}

/// A thread's sums at its end.
#[derive(Debug, Default)]
pub(crate) struct ThreadTotals {
    pub ended: Nanos,
    pub aborted: usize,
    /// Time spent on making connections with `--connect`.
    pub reconnect_ns: u64,
    pub scripts: Vec<ScriptAccount>,
    /// CPU time in the measured part.
    pub cpu: CpuTime,
    /// The first error that the transaction log met.
    pub log_error: Option<io::Error>,
    /// Clients that had not come to their end.
    pub unfinished: usize,
}

/// What all threads of a run share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The run is to end now.
    pub stop: AtomicBool,
    /// Transactions begun, of those that all clients share.
    pub events: AtomicU64,
}

/// Runs `plan`; `interrupt` ends it early with what was measured so far.
pub fn run(
    plan: &Plan,
    clock: Clock,
    interrupt: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    launch(plan, clock, interrupt, observer, true)
}

/// Does only what the clients of a staged `plan` do before their first transaction; false if interrupted.
pub fn perform(
    plan: &Plan,
    clock: Clock,
    interrupt: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<bool, RunError> {
    launch(plan, clock, interrupt, observer, false).map(|outcome| !outcome.interrupted)
}

fn launch(
    plan: &Plan,
    clock: Clock,
    interrupt: &AtomicBool,
    observer: &mut dyn Observer,
    loads: bool,
) -> Result<Outcome, RunError> {
    let shared = Shared::default();
    threads::scope(|scope| {
        let (reports, inbox) = channel();
        let mut starts = Vec::new();
        let mut first_client = 0;
        for worker in 0..plan.jobs {
            // As pgbench deals them: the remaining clients over the remaining threads, rounded up.
            let left = plan.jobs - worker;
            // A pool is not divided.
            let unit = plan.pools().map_or(1, |pools| pools.size);
            let count = ((plan.clients - first_client) / unit).div_ceil(left) * unit;
            let thread = Thread::new(plan, clock, worker, first_client, count, reports.clone(), &shared)
                .map_err(|error| RunError::System(error.to_string()))?;
            first_client += count;
            let (start, started) = channel();
            starts.push(start);
            threads::Builder::new()
                .name("pgtrial-load".to_owned())
                .spawn_scoped(scope, move || Worker::new(thread, count).run(&started))
                .map_err(|error| RunError::System(format!("could not create thread: {error}")))?;
        }
        drop(reports);
        let mut run = Run { plan, clock, interrupt, stop: &shared.stop, observer, began: clock.now() };
        let outcome = run.coordinate(&inbox, &starts, loads);
        // Threads that still wait for their start find the channel closed, the others see the flag.
        shared.stop.store(true, Ordering::Relaxed);
        drop(starts);
        outcome
    })
}

struct Run<'a> {
    plan: &'a Plan,
    clock: Clock,
    interrupt: &'a AtomicBool,
    stop: &'a AtomicBool,
    observer: &'a mut dyn Observer,
    began: Nanos,
}

type Inbox = std::sync::mpsc::Receiver<Report>;

impl Run<'_> {
    fn coordinate(&mut self, inbox: &Inbox, starts: &[Sender<Schedule>], loads: bool) -> Result<Outcome, RunError> {
        let tasks = self.plan.pools().map(|pools| Tasks::new(pools.all_tasks()));
        let mut outcome = Outcome { tasks, ..Outcome::default() };
        if !self.wait_for_connections(inbox)? {
            outcome.interrupted = true;
            return Ok(outcome);
        }
        if !loads {
            return Ok(outcome);
        }
        outcome.connect_s = seconds(self.clock.now() - self.began);
        self.observer.connected(self.plan.clients, outcome.connect_s);
        if self.interrupt.load(Ordering::Relaxed) {
            outcome.interrupted = true;
            return Ok(outcome);
        }
        let Some(started) = self.start(inbox, starts, outcome.connect_s)? else {
            outcome.interrupted = true;
            return Ok(outcome);
        };
        self.observer.phase(started.schedule.first().phase, Some(&started.began));
        self.collect(inbox, started, &mut outcome)?;
        Ok(outcome)
    }

    fn next_report(&self, inbox: &Inbox) -> Option<Report> {
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
            }
            match inbox.recv_timeout(Duration::from_millis(50)) {
                Ok(report) => return Some(report),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn collect(&mut self, inbox: &Inbox, started: Started, outcome: &mut Outcome) -> Result<(), RunError> {
        let Started { schedule, mut early, .. } = started;
        let mut ticks = Ticks::new(self.plan.jobs);
        let mut next = schedule.first();
        let mut phase = next.phase;
        let mut ended = schedule.start;
        while ticks.running > 0 {
            match early.pop_front().or_else(|| self.next_report(inbox)) {
                Some(Report::Tick { worker, stretch, tally }) => ticks.add(worker, stretch, &tally),
                Some(Report::Note(text)) => self.observer.note(&text),
                Some(Report::Aborted { client, thread, script, command, cause }) => {
                    if self.plan.exit_on_abort {
                        outcome.ended_by_thread.get_or_insert(thread);
                    }
                    self.observer.aborted(&Abortion { client, script, command, cause });
                }
                Some(Report::Finished { worker, mut totals }) => {
                    ticks.finish(worker);
                    ended = ended.max(totals.ended);
                    outcome.log_error = outcome.log_error.take().or(totals.log_error.take());
                    outcome.add(&totals);
                }
                Some(Report::Failed { message }) => return Err(RunError::System(message)),
                Some(Report::Connected | Report::Began { .. } | Report::CannotConnect { .. }) => {}
                None => return Err(RunError::died()),
            }
            for mut tick in ticks.complete() {
                self.observer.tick(&tick);
                // Tasks have been told of, and are not kept one by one.
                outcome.tasks.iter_mut().for_each(|tasks| tasks.take(&mut tick.tally));
                match tick.phase {
                    Phase::Warmup => outcome.warmup.merge(&tick.tally),
                    Phase::Measure => outcome.measure.merge(&tick.tally),
                    Phase::Drain => outcome.drain.merge(&tick.tally),
                }
                // The next phase is announced when it begins, not when its first second is over; and if it begins: a run
                // may end within the last second before it.
                let is_whole = tick.seconds >= seconds(next.ends - next.begins);
                next = schedule.after(&next);
                if is_whole && next.phase != phase {
                    phase = next.phase;
                    self.observer.phase(phase, None);
                }
            }
        }
        // An interrupt that came when all was done has ended nothing.
        outcome.interrupted = self.interrupt.load(Ordering::Relaxed) && outcome.unfinished > 0;
        outcome.warmup_s = seconds(ended.min(schedule.measure) - schedule.start);
        outcome.elapsed_s = seconds(ended.saturating_sub(schedule.measure));
        let measured_end = schedule.end.map_or(ended, |end| end.min(ended));
        outcome.measure_s = seconds(measured_end.saturating_sub(schedule.measure));
        if outcome.measure_s > 0.0 {
            outcome.busiest_thread /= outcome.measure_s;
        }
        Ok(())
    }
}

fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}
