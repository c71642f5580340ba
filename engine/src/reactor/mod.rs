//! The reactor: decides when. It spreads the clients over threads, starts them together, and adds up what they report.

mod arrivals;
mod client;
mod connecting;
mod failures;
mod notes;
mod outage;
mod plain;
mod pool;
mod pooled;
pub mod readiness;
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

use crate::connection::OpenError;
use crate::connection::error::{ConnectionError, ServerError};
use crate::ledger::tasks::Tasks;
use crate::ledger::{ScriptAccount, Tally};
use crate::plan::Plan;
use crate::program::Trouble;
pub use schedule::{Clock, Nanos, Phase};
use schedule::{Schedule, Stretch};
pub use start::Began;
use start::Started;
use thread::Thread;
use ticks::Ticks;
pub use usage::CpuTime;
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

/// Why a client was given up.
#[derive(Debug)]
pub enum Cause {
    /// `query` counts the statements of one request.
    Statement {
        error: Box<ServerError>,
        query: u32,
    },
    Connection(ConnectionError),
    Connect(OpenError),
    Program(Trouble),
}

impl Cause {
    /// SQLSTATE, if there is one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Cause::Statement { error, .. } => Some(&error.sqlstate),
            Cause::Connection(error) => Some(error.sqlstate()),
            Cause::Connect(error) => Some(&error.sqlstate),
            Cause::Program(_) => None,
        }
    }

    /// What kind of failure it is, one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Statement { .. } => "statement",
            Cause::Connection(_) => "connection",
            Cause::Connect(_) => "connect",
            Cause::Program(_) => "script",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Statement { error, .. } => write!(f, "{error}"),
            Cause::Connection(error) => write!(f, "{error}"),
            Cause::Connect(error) => write!(f, "{error}"),
            Cause::Program(trouble) => write!(f, "{trouble}"),
        }
    }
}

/// A client that was given up.
#[derive(Debug)]
pub struct Abortion {
    pub client: usize,
    pub script: usize,
    pub command: Option<usize>,
    pub cause: Cause,
}

/// One second of all threads together.
#[derive(Debug)]
pub struct Tick {
    pub phase: Phase,
    /// Counts from 0 in each phase.
    pub second: u32,
    /// Length of the second: 1, or less for a phase's last.
    pub seconds: f64,
    pub tally: Tally,
}

/// Whoever watches a run: called in the main thread, in the order of events.
pub trait Observer {
    /// All clients are connected, `seconds` after the first began to.
    fn connected(&mut self, clients: usize, seconds: f64);
    /// The same, where they wait for a start that is agreed upon.
    fn ready(&mut self, clients: usize, seconds: f64);
    /// A phase begins; with the first one it is said when it `began`.
    fn phase(&mut self, phase: Phase, began: Option<&Began>);
    fn tick(&mut self, tick: &Tick);
    fn aborted(&mut self, abortion: &Abortion);
    /// Something that was asked for by [`crate::plan::Notes`].
    fn note(&mut self, text: &str);
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Time until all clients were connected, seconds.
    pub connect_s: f64,
    pub warmup: Tally,
    pub measure: Tally,
    /// Transactions that were under way at the scheduled end and were finished after it.
    pub drain: Tally,
    /// Length of the measured part within its schedule, seconds.
    pub measure_s: f64,
    /// Length of the warm-up, seconds.
    pub warmup_s: f64,
    /// From the start of the measured part to the end of the last transaction, seconds.
    pub elapsed_s: f64,
    pub scripts: Vec<ScriptAccount>,
    pub aborted: usize,
    pub interrupted: bool,
    /// The thread whose client ended the run, where the plan says that one does.
    pub ended_by_thread: Option<usize>,
    /// The first error that a transaction log met.
    pub log_error: Option<io::Error>,
    /// Time spent on making connections with `--connect`, all clients, seconds.
    pub reconnect_s: f64,
    pub cpu: CpuTime,
    /// CPU time of the busiest thread as a share of the measured time.
    pub busiest_thread: f64,
    /// Clients that had not come to their end when the run did.
    pub unfinished: usize,
    /// With pools of connections, what became of the tasks.
    pub tasks: Option<Tasks>,
}

/// Why a run could not be.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{error}")]
    Connect { client: usize, error: OpenError },
    /// Clients of a staged run were given up before the load; the observer knows why.
    #[error("clients could not begin")]
    Unready,
    /// Nobody said when to begin.
    #[error("{0}")]
    Start(String),
    #[error("{0}")]
    System(String),
}

impl RunError {
    fn died() -> Self {
        Self::System("a load thread died".to_owned())
    }
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
            let unit = plan.pools.map_or(1, |pools| pools.size);
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
        let tasks = self.plan.pools.map(|pools| Tasks::new(pools.all_tasks()));
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
                    add_totals(outcome, &totals);
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
                // the next phase is announced when it begins, not when its first second is over
                next = schedule.after(&next);
                if next.phase != phase {
                    phase = next.phase;
                    self.observer.phase(phase, None);
                }
            }
        }
        outcome.interrupted = self.interrupt.load(Ordering::Relaxed);
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

fn add_totals(outcome: &mut Outcome, totals: &ThreadTotals) {
    outcome.aborted += totals.aborted;
    outcome.unfinished += totals.unfinished;
    outcome.reconnect_s += totals.reconnect_ns as f64 / 1e9;
    outcome.cpu.user += totals.cpu.user;
    outcome.cpu.system += totals.cpu.system;
    outcome.busiest_thread = outcome.busiest_thread.max(totals.cpu.total().as_secs_f64());
    if outcome.scripts.is_empty() {
        outcome.scripts.clone_from(&totals.scripts);
    } else {
        for (mine, theirs) in outcome.scripts.iter_mut().zip(&totals.scripts) {
            mine.merge(theirs);
        }
    }
}

fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}
