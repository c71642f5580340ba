//! A run of a load: distributes the clients over threads, starts the threads together, and adds up the counts that they
//! report.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::sync::mpsc::Sender;
use std::thread as threads;

use crate::closed::Closed;
use crate::inbox::Inbox;
use crate::mode::{ActionsOf, Mode};
use crate::open_files;
use crate::outcome::{Observer, Outcome, RunError};
use crate::plan::{Load, LoadMode, Plan};
use crate::pooled::Pooled;
use crate::replayed::Replayed;
use crate::report::{PanicReporter, Report, Reporter, Shared, ThreadTotals, channel};
use crate::runtime::{Runtime, Threads};
use crate::schedule::Schedule;
use crate::staged::Staged;
use crate::start::{Started, start, wait_for_connections};
use crate::statistics::ModeTotals;
use crate::statistics::replay::ReplayTotals;
use crate::statistics::tasks::Tasks;
use crate::thread::{Share, Thread};
use crate::ticks::Ticks;
use ground::clock::{Clock, Phase, seconds};
use workload::Workload;

/// Runs the load that `plan` describes. When `interrupt` is set, the run ends early, and its outcome has the
/// measurements until then.
pub fn run(
    plan: &Plan,
    clock: Clock,
    interrupt: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    open_files::raise_limit(plan);
    let shared = Shared::default();
    threads::scope(|scope| {
        let runtime = Threads { scope, clock };
        Run { plan, interrupt, observer, runtime: &runtime, shared: &shared }.launch()
    })
}

/// A run whose threads are started by `runtime`.
pub struct Run<'a, 'run, R> {
    pub plan: &'run Plan,
    pub interrupt: &'a AtomicBool,
    pub observer: &'a mut dyn Observer,
    pub runtime: &'a R,
    pub shared: &'run Shared,
}

impl<'run, R: Runtime<'run>> Run<'_, 'run, R> {
    /// Runs the load. The code for its mode is chosen here, once for all threads.
    pub fn launch(self) -> Result<Outcome, RunError> {
        match &self.plan.load.mode {
            LoadMode::Closed(plan, workload) => self.launch_mode::<Closed>(plan, &**workload),
            LoadMode::Staged(plan, workload) => self.launch_mode::<Staged>(plan, &**workload),
            LoadMode::Pooled(plan, workload) => self.launch_mode::<Pooled>(plan, &**workload),
            LoadMode::Replayed(plan, workload) => self.launch_mode::<Replayed>(plan, &**workload),
        }
    }

    /// Runs the load. All threads have ended when this returns, whatever has ended the load. If threads do not end, the
    /// whole program ends.
    fn launch_mode<M: Mode<R::Shell> + 'run>(
        mut self,
        load: &M::Plan,
        workload: &'run dyn Workload<ActionsOf<M, R::Shell>>,
    ) -> Result<Outcome, RunError> {
        let (reporter, reports) = channel(self.plan.jobs);
        let inbox =
            Inbox::new(self.runtime, reports, self.interrupt, self.plan.load.alarm(), self.shared, self.plan.jobs);
        let mut starts = Vec::new();
        let outcome = self
            .start_threads::<M>(load, workload, &reporter, &mut starts)
            .and_then(|()| self.coordinate(&inbox, &starts));
        drop(reporter);
        // Threads that still wait for the start of the load notice that the channel is closed. The other threads notice
        // the flag.
        self.shared.end_run();
        drop(starts);
        if !inbox.outlast() {
            self.runtime.give_up(self.observer.stuck(outcome.as_ref().unwrap_or(&Outcome::default())));
        }
        outcome
    }

    /// Starts the threads. Each thread gets its schedule through one of the channels in `starts`.
    fn start_threads<M: Mode<R::Shell> + 'run>(
        &self,
        load: &M::Plan,
        workload: &'run dyn Workload<ActionsOf<M, R::Shell>>,
        reporter: &Reporter,
        starts: &mut Vec<Sender<Schedule>>,
    ) -> Result<(), RunError> {
        let plan = self.plan;
        for share in shares(plan) {
            let mode = M::new(plan, load, share);
            let thread = self
                .runtime
                .shell()
                .and_then(|shell| Thread::new(plan, shell, share, mode, reporter.clone(), self.shared))
                .map_err(|error| RunError::System(error.to_string()))?;
            let (start, started) = mpsc::channel();
            starts.push(start);
            self.runtime
                .start(thread, workload, share, started, PanicReporter(reporter.clone()))
                .map_err(|error| RunError::System(format!("could not create thread: {error}")))?;
        }
        Ok(())
    }

    /// Returns the number of clients that these threads have.
    fn clients_of(&self, threads: &[usize]) -> usize {
        shares(self.plan).filter(|share| threads.contains(&share.thread)).map(|share| share.clients).sum()
    }

    fn coordinate(&mut self, inbox: &Inbox<'_, R>, starts: &[Sender<Schedule>]) -> Result<Outcome, RunError> {
        let (plan, began) = (self.plan, inbox.now());
        let mut outcome = Outcome { of_mode: totals(&plan.load), interrupted: true, ..Outcome::default() };
        if !wait_for_connections(inbox, plan.jobs, self.observer)? {
            return Ok(outcome);
        }
        if plan.is_command {
            return Ok(Outcome { interrupted: false, ..outcome });
        }
        outcome.connect_s = seconds(inbox.now() - began);
        self.observer.connected(plan.clients, outcome.connect_s);
        if inbox.is_interrupted() {
            return Ok(outcome);
        }
        let started = start(plan, inbox, starts, self.observer, outcome.connect_s)?;
        if let Some(started) = started {
            self.observer.phase(started.schedule.first().phase, Some(&started.began));
            self.collect(inbox, started, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// Adds up the reports of the threads until all threads have finished.
    fn collect(&mut self, inbox: &Inbox<'_, R>, started: Started, outcome: &mut Outcome) -> Result<(), RunError> {
        let Started { mut schedule, mut early, .. } = started;
        let mut ticks = Ticks::new(self.plan.jobs);
        let mut next = schedule.first();
        let mut phase = next.phase;
        let mut ended = schedule.start;
        while ticks.running > 0 {
            match early.pop_front().or_else(|| inbox.next()) {
                Some(Report::Tick { thread, period, statistics }) => ticks.add(thread, period, &statistics),
                Some(Report::Note(text)) => self.observer.note(&text),
                Some(Report::Aborted { thread, abortion }) => {
                    if self.plan.exit_on_abort {
                        outcome.ended_by_thread.get_or_insert(thread);
                    }
                    self.observer.aborted(&abortion);
                }
                Some(Report::Finished { thread, totals }) => {
                    ticks.finish(thread);
                    ended = ended.max(totals.ended);
                    add_totals(outcome, *totals);
                }
                Some(Report::Failed { message }) => return Err(RunError::System(message)),
                Some(Report::Connected | Report::Began { .. } | Report::CannotConnect { .. }) => {}
                None if inbox.is_stuck() => {
                    outcome.unfinished += self.clients_of(&ticks.give_up());
                    ended = inbox.now().saturating_sub(inbox.since_end());
                }
                None => return Err(RunError::died()),
            }
            if let Some(end) = inbox.alarm_at() {
                schedule.cut(end, &mut next);
            }
            for mut tick in ticks.complete() {
                self.observer.tick(&tick);
                // Tasks are kept one by one only until the observer has seen them.
                outcome.of_mode.drain_tasks(&mut tick.statistics.of_mode);
                match tick.phase {
                    Phase::Warmup => outcome.warmup.merge(&tick.statistics),
                    Phase::Measure => outcome.measure.merge(&tick.statistics),
                    Phase::Drain => outcome.drain.merge(&tick.statistics),
                }
                // The observer learns of the next phase when it begins, and not only when its first second is over. It
                // must not learn of a phase that never begins: a run may end within the last second before it.
                let is_whole = tick.seconds >= seconds(next.ends - next.begins);
                next = schedule.after(&next);
                if is_whole && next.phase != phase {
                    phase = next.phase;
                    self.observer.phase(phase, None);
                }
            }
        }
        // An interrupt that came after the last client had finished did not cut the run short.
        outcome.interrupted = inbox.is_interrupted() && outcome.unfinished > 0;
        outcome.warmup_s = seconds(ended.min(schedule.measure) - schedule.start);
        outcome.elapsed_s = seconds(ended.saturating_sub(schedule.measure));
        outcome.measure_s = seconds(ended.min(schedule.end).saturating_sub(schedule.measure));
        let loaded_s = outcome.measure.slice_time_s(self.plan.clients).unwrap_or(outcome.measure_s);
        if loaded_s > 0.0 {
            outcome.busiest_thread /= loaded_s;
        }
        Ok(())
    }
}

/// Returns the empty totals of a run that only the mode of the load has.
fn totals(load: &Load) -> ModeTotals {
    match &load.mode {
        LoadMode::Closed(..) | LoadMode::Staged(..) => ModeTotals::None,
        LoadMode::Pooled(pools, _) => ModeTotals::Tasks(Tasks::new(pools.all_tasks())),
        LoadMode::Replayed(..) => ModeTotals::Replay(ReplayTotals::default()),
    }
}

/// Returns which clients each thread runs. As in pgbench, each thread gets the remaining clients divided by the number
/// of remaining threads, rounded up. The clients of a connection pool stay together.
fn shares(plan: &Plan) -> impl Iterator<Item = Share> {
    let unit = plan.load.pools().map_or(1, |pools| pools.size);
    let (clients, jobs) = (plan.clients, plan.jobs);
    (0..jobs).scan(0, move |first, thread| {
        let of_thread = ((clients - *first) / unit).div_ceil(jobs - thread) * unit;
        let share = Share { thread, first_client: *first, clients: of_thread };
        *first += of_thread;
        Some(share)
    })
}

/// Adds the totals of a thread that has finished to the outcome.
fn add_totals(outcome: &mut Outcome, totals: ThreadTotals) {
    outcome.log_error = outcome.log_error.take().or(totals.log_error);
    outcome.aborted += totals.aborted;
    outcome.unfinished += totals.unfinished;
    outcome.held_up_s = outcome.held_up_s.max(seconds(totals.held_up_ns));
    outcome.reconnect_s += seconds(totals.reconnect_ns);
    outcome.cpu.user += totals.cpu.user;
    outcome.cpu.system += totals.cpu.system;
    outcome.busiest_thread = outcome.busiest_thread.max(totals.cpu.total().as_secs_f64());
    outcome.of_mode.add_replay(&totals.replay);
    if outcome.scripts.is_empty() {
        outcome.scripts = totals.scripts;
    } else {
        outcome.scripts.iter_mut().zip(&totals.scripts).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}
