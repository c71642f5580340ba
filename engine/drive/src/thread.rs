//! What the clients of one thread share: the poll, the clock and its stretches, buffers, and the thread's page of the
//! ledger.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use super::client::Client;
use super::connecting::Connecting;
use super::pooled::Pools;
use super::throttle::Throttle;
use super::timers::Timers;
use super::usage::CpuTime;
use super::{Report, Shared, ThreadTotals};
use crate::ledger::log::{End, Entry, TransactionLog};
use crate::ledger::{Account, Clients, Counts, Pace, ScriptAccount, Tally};
use crate::plan::{ClosedPlan, Limit, Load, Plan};
use crate::schedule::{Schedule, Stretch};
use ground::clock::{Clock, Nanos, Phase};
use ground::random::Random;
use ground::readiness::Readiness;
use wire::BUFFER_SIZE;

/// The common part of a thread.
pub struct Thread<'a> {
    pub plan: &'a Plan,
    pub clock: Clock,
    /// The thread's number in the engine, and that of its first client there.
    pub number: usize,
    pub first_client: usize,
    pub readiness: Readiness,
    pub schedule: Schedule,
    pub stretch: Stretch,
    pub tally: Tally,
    pub scripts: Vec<ScriptAccount>,
    pub log: Option<TransactionLog>,
    pub totals: ThreadTotals,
    pub reports: Sender<Report>,
    pub shared: &'a Shared,
    /// Clients that are not at their end.
    pub active: usize,
    /// Clients of a staged run that are not ready for their first transaction.
    pub unready: usize,
    pub choose: Random,
    pub throttle: Option<Throttle>,
    pub pools: Option<Box<Pools>>,
    pub timers: Timers,
    /// Clients that yielded.
    pub yielding: Vec<usize>,
    pub connecting: Connecting,
    pub buffer: Vec<u8>,
    pub scratch: Vec<u8>,
    /// Whether connections are made while the load runs.
    pub connects_under_way: bool,
    /// Whether a commit needs more than the tally.
    pub is_detailed: bool,
    /// Whether there is nothing to do beside statements and the tally: neither timing of commands nor notes, no rate, no
    /// staged clients, no connection for each transaction.
    pub is_plain: bool,
    /// What each client of a plain run has to do.
    pub share: Share,
    cpu_at_measure: Option<CpuTime>,
}

impl<'a> Thread<'a> {
    /// The thread `number`, whose clients are `first_client..first_client + clients`.
    pub fn new(
        plan: &'a Plan,
        clock: Clock,
        number: usize,
        first_client: usize,
        clients: usize,
        reports: Sender<Report>,
        shared: &'a Shared,
    ) -> io::Result<Self> {
        let schedule = Schedule::new(0, plan.warmup, None);
        let seeds = &plan.seeds.threads[number];
        let scripts = empty_accounts(plan);
        let is_detailed = plan.interval().is_some()
            || plan.pools().is_some()
            || plan.options().latency_limit.is_some()
            || plan.options().log.is_some()
            || plan.options().tries != Some(1)
            || scripts.len() > 1;
        Ok(Self {
            plan,
            clock,
            number,
            first_client,
            readiness: Readiness::new()
                .map_err(|error| io::Error::new(error.kind(), format!("could not create an event loop: {error}")))?,
            // Nothing rolls before the start.
            stretch: Stretch { ends: Nanos::MAX, ..schedule.first() },
            schedule,
            tally: empty_tally(plan, Clients::new(first_client, if plan.is_staged() { clients } else { 0 })),
            log: match &plan.options().log {
                Some(log) => Some(TransactionLog::open(log, number, seeds.sample.clone())?),
                None => None,
            },
            totals: ThreadTotals::default(),
            reports,
            shared,
            active: clients,
            unready: clients,
            choose: seeds.choose.clone(),
            throttle: plan
                .interval()
                .map(|interval| Throttle::new(plan.part.mean_ns(interval), plan.jobs, seeds.throttle.clone())),
            pools: plan.pools().map(|pools| Box::new(Pools::new(pools, first_client, clients, &plan.seeds.arrivals))),
            timers: Timers::default(),
            yielding: Vec::new(),
            connecting: Connecting::default(),
            buffer: vec![0; BUFFER_SIZE],
            scratch: Vec::new(),
            connects_under_way: plan.reconnect() || plan.is_staged() || plan.pools().is_some(),
            is_detailed,
            is_plain: !(is_detailed
                || plan.options().timed_commands
                || plan.options().notes.steps
                || plan.is_staged()
                || plan.reconnect()),
            share: Share { transactions: u64::MAX, until: Nanos::MAX },
            scripts,
            cpu_at_measure: None,
        })
    }

    /// The run begins.
    pub fn start(&mut self, schedule: Schedule) {
        self.schedule = schedule;
        self.stretch = schedule.first();
        self.share.until = schedule.end.unwrap_or(Nanos::MAX);
        if let Load::Closed(ClosedPlan { limit: Limit::Transactions(limit), .. }) = self.plan.load {
            self.share.transactions = limit;
        }
        if self.stretch.phase == Phase::Measure {
            self.cpu_at_measure = CpuTime::of_thread();
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.start(schedule.start);
        }
        if let Some(log) = &mut self.log {
            log.begin(schedule.measure);
        }
    }

    /// The number in the whole run of the client that has this index here.
    pub fn number_of(&self, index: usize) -> usize {
        self.plan.part.number(self.first_client + index)
    }

    /// Ends stretches that are over at `now`: each is handed to the run, empty or not.
    #[inline]
    pub fn roll(&mut self, now: Nanos) {
        if now >= self.stretch.ends {
            self.roll_on(now);
        }
    }

    #[cold]
    fn roll_on(&mut self, now: Nanos) {
        while now >= self.stretch.ends {
            let next = self.schedule.after(&self.stretch);
            self.hand_over(self.stretch.ends);
            if next.phase != self.stretch.phase {
                self.change_phase(next.phase);
            }
            self.stretch = next;
        }
    }

    fn change_phase(&mut self, phase: Phase) {
        match phase {
            Phase::Measure => {
                self.scripts = empty_accounts(self.plan);
                self.totals.reconnect_ns = 0;
                self.cpu_at_measure = CpuTime::of_thread();
            }
            Phase::Drain => self.note_cpu(),
            Phase::Warmup => {}
        }
    }

    fn note_cpu(&mut self) {
        if let (Some(before), Some(now)) = (self.cpu_at_measure.take(), CpuTime::of_thread()) {
            self.totals.cpu = now - before;
        }
    }

    fn hand_over(&mut self, ended: Nanos) {
        self.note_waiting(ended);
        let stretch = Stretch { ends: ended.max(self.stretch.begins), ..self.stretch };
        let empty = empty_tally(self.plan, self.tally.clients.emptied());
        let tally = Box::new(std::mem::replace(&mut self.tally, empty));
        self.report(Report::Tick { worker: self.number, stretch, tally });
    }

    /// With a rate: notes who waits for whom at the end of a stretch.
    fn note_waiting(&mut self, now: Nanos) {
        let (Some(pace), Some(throttle)) = (&mut self.tally.pace, &self.throttle) else { return };
        pace.backlog = throttle.backlog(now);
        pace.busy = self.active.saturating_sub(self.timers.len()) as u64;
    }

    /// All clients are at their end, or the run is.
    pub fn finish(mut self) {
        let ended = self.clock.now();
        self.roll(ended);
        self.note_cpu();
        self.hand_over(ended);
        let mut totals = std::mem::take(&mut self.totals);
        totals.ended = ended;
        totals.log_error = self.log.take().and_then(|log| log.finish(ended).err());
        if self.stretch.phase == Phase::Warmup {
            // The thread has nothing to say of the measured part.
            self.scripts = empty_accounts(self.plan);
        }
        totals.scripts = std::mem::take(&mut self.scripts);
        totals.unfinished = self.active;
        self.report(Report::Finished { worker: self.number, totals: Box::new(totals) });
    }

    /// Reports to the run; nobody listens any more once the run has been given up, which is no error here.
    pub fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }

    /// Waiting for events failed.
    pub fn fail(&self, error: &io::Error) {
        self.report(Report::Failed { message: format!("could not wait for events: {error}") });
    }

    /// Whether a client has done all that it should.
    #[inline]
    pub fn is_done(&self, client: &Client, now: Nanos) -> bool {
        match &self.plan.load {
            Load::Closed(_) => self.share.is_done(client.done, now),
            Load::Staged(staged) => self.is_over(now) || staged.events.is_some_and(|total| !self.take_event(total)),
            Load::Pooled(..) => false,
        }
    }

    /// Takes one of the transactions that all clients share; false if none is left. Those of the warm-up are not of them.
    fn take_event(&self, total: u64) -> bool {
        self.stretch.phase == Phase::Warmup || self.shared.events.fetch_add(1, Ordering::Relaxed) < total
    }

    /// Whether the time of a run that is limited by it is over.
    #[inline]
    pub fn is_over(&self, now: Nanos) -> bool {
        self.schedule.end.is_some_and(|end| now >= end)
    }

    /// Writes a transaction's end to the log, if there is one.
    pub fn log(&mut self, client: &Client, now: Nanos, end: End) {
        let number = self.number_of(client.index);
        let Some(log) = &mut self.log else { return };
        if self.stretch.phase == Phase::Warmup {
            return;
        }
        let lag = client.transaction_began - client.scheduled;
        log.note(&Entry {
            client: number,
            number: client.done,
            script: client.script,
            ended: now,
            end,
            lag: if matches!(end, End::Committed { .. }) { lag } else { 0 },
            retries: client.tries - 1,
        });
    }
}

/// What each client has to do, where that is not shared: the limit in a form that takes two comparisons.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// So many transactions, or
    pub transactions: u64,
    /// as many as begin before this time.
    pub until: Nanos,
}

impl Share {
    /// Whether a client with so many transactions has done its share at `now`.
    #[inline(always)]
    pub fn is_done(&self, transactions: u64, now: Nanos) -> bool {
        transactions >= self.transactions || now >= self.until
    }
}

fn empty_tally(plan: &Plan, clients: Clients) -> Tally {
    Tally { pace: plan.interval().map(|_| Box::<Pace>::default()), clients, ..Tally::default() }
}

fn empty_accounts(plan: &Plan) -> Vec<ScriptAccount> {
    let scripts = plan.workload.scripts();
    scripts
        .iter()
        .map(|script| ScriptAccount {
            whole: Counts::default(),
            commands: vec![Account::default(); script.commands.len()],
        })
        .collect()
}
