//! The state that the clients of one thread share, and the clock of the thread.

use std::io;

use crate::arrivals::Throttle;
use crate::counters::Counters;
use crate::plan::{Plan, ScriptOptions};
use crate::report::{Reporter, Shared};
use crate::shell::Shell;
use crate::sockets::Sockets;
use crate::statistics::LoadStatistics;
use crate::timers::Timers;
use ground::clock::Nanos;
use ground::random::Random;

/// The clients that one thread of the engine runs.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// The thread's number, counted from 0.
    pub thread: usize,
    pub first_client: usize,
    pub clients: usize,
}

/// One thread of a load of mode `M`, without its clients. `S` is the operating system that it uses, which can be
/// simulated.
pub struct Thread<'a, M, S> {
    pub plan: &'a Plan,
    pub options: &'a ScriptOptions,
    pub shell: S,
    pub sockets: Sockets,
    pub counters: Counters<'a>,
    pub timers: Timers,
    /// The schedule of a load with a rate.
    pub throttle: Option<Throttle>,
    pub shared: &'a Shared,
    /// The random number generator that chooses the script of the next transaction.
    pub choose: Random,
    /// The number of clients that are not yet ready for the start of the load.
    pub unready: usize,
    pub active: usize,
    pub mode: M,
}

impl<'a, M, S: Shell> Thread<'a, M, S> {
    /// Makes a thread that has not begun its load. It gets the state of the load's mode, and the empty counters of one
    /// period, in which the mode counts its transactions.
    pub fn new(
        plan: &'a Plan,
        shell: S,
        share: Share,
        (mode, mut statistics): (M, LoadStatistics),
        reports: Reporter,
        shared: &'a Shared,
    ) -> io::Result<Self> {
        let throttle = Throttle::of_thread(plan, share.thread);
        if throttle.is_some() {
            statistics.schedule.get_or_insert_default();
        }
        Ok(Self {
            plan,
            options: &plan.options,
            shell,
            sockets: Sockets::new(plan.describes, plan.format),
            counters: Counters::new(plan, share.thread, statistics, reports)?,
            timers: Timers::default(),
            throttle,
            shared,
            choose: plan.seeds.threads[share.thread].choose.clone(),
            unready: 0,
            active: share.clients,
            mode,
        })
    }

    /// Returns true if the load has a time limit and has reached it.
    #[inline]
    pub fn is_over(&self, now: Nanos) -> bool {
        now >= self.counters.schedule.end
    }

    /// Returns true if a transaction can begin at `now`: the load is not over and, if several engines take turns in
    /// slices of time, it is this engine's slice.
    #[inline]
    pub fn is_open(&self, now: Nanos) -> bool {
        now < self.counters.start_deadline
    }

    /// Reports the counts of all periods (seconds, or rounds of slices) that are over at `now`.
    #[inline]
    pub fn end_periods(&mut self, now: Nanos) {
        if now >= self.counters.period.ends {
            self.end_due_periods(now);
        }
    }

    #[cold]
    fn end_due_periods(&mut self, now: Nanos) {
        while now >= self.counters.period.ends {
            self.note_queue(self.counters.period.ends, 0);
            self.counters.begin_next_period();
        }
    }

    /// Reads the clock. If a second (or a round of slices) has ended, the thread reports its counts.
    #[inline(always)]
    pub fn read_clock(&mut self) -> Nanos {
        let now = self.shell.now();
        self.end_periods(now);
        now
    }
}
