//! The state that the clients of one thread share, and the steps that are the same for clients of all modes.

use std::io;

use crate::arrivals::Throttle;
use crate::client::{Client, ClientState};
use crate::counters::Counters;
use crate::outcome::{Abortion, Cause};
use crate::plan::{Plan, ScriptOptions};
use crate::report::{Report, Reporter, Shared};
use crate::shell::Shell;
use crate::sockets::Sockets;
use crate::statistics::LoadStatistics;
use crate::timers::Timers;
use ground::clock::Nanos;
use ground::random::Random;
use workload::Actions;

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
    choose: Random,
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
            options: plan.options(),
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

    /// Asks the client's program to choose the script of its next transaction.
    #[inline]
    pub fn choose_script<O, A: Actions>(&mut self, client: &mut Client<O, A, S>) {
        client.transaction.script = client.program.begin(&mut self.choose);
        client.transaction.tries = 1;
        client.transaction.was_answered = false;
        if self.options.notes.steps {
            self.note_script(client);
        }
    }

    /// Puts the client into the queue of clients for which a connection has to be made.
    pub fn connect<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        client.state = ClientState::Connecting;
        client.transaction.command_began = now;
        self.sockets.enqueue(client.index);
    }

    /// Makes the client wait until `at`.
    pub fn wait_until<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, at: Nanos) {
        client.state = ClientState::Idle;
        self.timers.add(at, client.index);
    }

    /// Makes a client that must not begin a transaction at `now` wait for its engine's next slice, or for the end of
    /// the load.
    pub fn await_slice<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        client.state = ClientState::Yielding;
        self.timers.add(self.counters.next_slice(now), client.index);
    }

    /// Ends the client's session, and takes the client out of the load.
    pub fn leave<O, A: Actions>(&mut self, client: &mut Client<O, A, S>) {
        if client.takes_part {
            self.counters.leave_slice(client, self.shell.now());
        }
        client.state = ClientState::Finished;
        client.disconnect();
        self.active -= 1;
    }

    /// Ends a client that cannot go on. Its current transaction is counted as failed if the error has an SQLSTATE.
    pub fn abort<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, command: Option<usize>, cause: Cause) {
        if let Some(sqlstate) = cause.counted_sqlstate() {
            self.counters.statistics.counts.fail(sqlstate);
        }
        self.counters.totals.aborted += 1;
        let abortion = Abortion { client: client.number, script: client.transaction.script, command, cause };
        self.counters.report(Report::Aborted { thread: self.counters.thread, abortion });
        self.leave(client);
    }

    /// Ends the whole run after a client was aborted, if the plan says so.
    pub fn exit_on_abort(&self) {
        if self.plan.exit_on_abort {
            self.shared.end_run();
        }
    }
}
