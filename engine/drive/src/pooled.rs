//! Tasks of applications that share bounded connection pools. A client of this mode is one slot of a pool, which is one
//! of its connections. A task is an entry of the pool's queue. All slots of an application's pool and its queue are in
//! one thread.

use std::collections::BTreeSet;

use crate::agenda::Agenda;
use crate::client::{Client, ClientState};
use crate::mode::{Asked, End, Mode};
use crate::outcome::Cause;
use crate::plan::{Plan, PoolPlan};
use crate::pool::{Pool, QueuedTask};
use crate::report::Report;
use crate::shell::{Shell, TransportOf};
use crate::statistics::log::FailureKind;
use crate::statistics::tasks::{POOL_TIMEOUT, PooledTasks, SCRIPT, Task};
use crate::statistics::{LoadStatistics, ModeCounts};
use crate::thread::{Share, Thread};
use ground::clock::Nanos;
use wire::error::ConnectionError;
use wire::{Connection, OpenError};
use workload::{ScriptActions, ScriptStep, StartPipeline};

/// The connection pools of one thread.
pub struct Pooled {
    pools: Vec<Pool>,
    /// The pools that the event loop has to visit. Code that changes a pool must call [`Agenda::touch`].
    agenda: Agenda,
    /// One flag for each pool: true if all tasks of the pool have ended.
    done: Vec<bool>,
    /// The number of connections of each pool.
    size: usize,
    /// The number of the application to which the thread's first pool belongs.
    first_app: usize,
    /// The kinds of failures that have been reported. Of each kind only the first failure is reported.
    reported: BTreeSet<String>,
}

type PoolThread<'a, S> = Thread<'a, Pooled, S>;
type Slot<S> = Client<(), ScriptActions, S>;

impl<S: Shell> Mode<S> for Pooled {
    type Plan = PoolPlan;
    type Actions = ScriptActions;
    type Client = ();

    const READS_WHEN_IDLE: bool = true;

    fn new(plan: &Plan, load: &PoolPlan, share: Share) -> (Self, LoadStatistics) {
        let (first_app, apps) = (share.first_client / load.size, share.clients / load.size);
        let arrivals = plan.seeds.arrivals.iter().skip(first_app).take(apps);
        let mode = Self {
            pools: arrivals.map(|random| Pool::new(load, random.clone())).collect(),
            agenda: Agenda::new(apps),
            done: vec![false; apps],
            size: load.size,
            first_app,
            reported: BTreeSet::new(),
        };
        let of_mode = ModeCounts::Tasks(PooledTasks::default());
        (mode, LoadStatistics { of_mode, ..LoadStatistics::default() })
    }

    /// Does nothing, since a pool makes connections when tasks wait for them.
    fn prepare(_thread: &mut PoolThread<'_, S>, _client: &mut Slot<S>) {}

    fn start(thread: &mut PoolThread<'_, S>, clients: &mut [Slot<S>], at: Nanos) {
        thread.mode.pools.iter_mut().for_each(|pool| pool.start(at));
        thread.active = thread.mode.pools.len();
        Self::tend(thread, clients);
    }

    /// Gives the client's connection, which has become free, to the next task. Returns false if no task waits, or if
    /// the connection is too old.
    fn next(thread: &mut PoolThread<'_, S>, client: &mut Slot<S>, now: Nanos) -> bool {
        client.state = ClientState::Idle;
        let (pool, slot) = thread.mode.place(client);
        if pool.is_expired(slot, now) {
            pool.retire(slot);
            client.disconnect();
            return false;
        }
        thread.admit(client.index / thread.mode.size, now);
        let (pool, slot) = thread.mode.place(client);
        let Some(task) = pool.pass_on(slot) else { return false };
        thread.assign(client, task, now);
        true
    }

    /// Never called, since a connection waits for a task and not for a time.
    fn due(_thread: &mut PoolThread<'_, S>, _client: &mut Slot<S>, _now: Nanos) {}

    fn ended(thread: &mut PoolThread<'_, S>, client: &mut Slot<S>, end: End<'_>, mut now: Nanos) -> Option<Nanos> {
        match end {
            End::Completed => {
                now = thread.end_time(client, now);
                if client.status != b'I' {
                    // A task is counted once. If it leaves a transaction open, it counts as failed and its connection
                    // is closed.
                    thread.left_open(client);
                    return None;
                }
                thread.counters.commit(client, now);
                thread.end_task(client, now, None);
                thread.counters.count(client);
            }
            End::Failed(error) => {
                if FailureKind::of(&error.sqlstate) == FailureKind::Other {
                    thread.report_failure(client, &error.sqlstate, error);
                }
                thread.end_task(client, now, Some(&error.sqlstate));
            }
        }
        thread.next_after(client, now)
    }

    fn connected(thread: &mut PoolThread<'_, S>, client: &mut Slot<S>, now: Nanos) {
        client.state = ClientState::Idle;
        client.status = b'I';
        let (pool, slot) = thread.mode.place(client);
        pool.opened(slot, now);
    }

    /// Handles a connection that could not be made. The tasks stay in the queue until a connection is free.
    fn refused(thread: &mut PoolThread<'_, S>, client: &mut Slot<S>, error: OpenError, now: Nanos) {
        client.state = ClientState::Idle;
        let app = thread.mode.app(client) + 1;
        let (pool, slot) = thread.mode.place(client);
        pool.refused(slot, now);
        if thread.mode.reported.insert(format!("connect {}", error.sqlstate)) {
            let message = error.message.trim_end();
            let text = format!(
                "the pool of application {app} could not connect and tries again: {message} (further errors are only counted)"
            );
            thread.counters.report(Report::Note(text));
        }
    }

    fn lost(
        thread: &mut PoolThread<'_, S>,
        client: &mut Slot<S>,
        command: Option<usize>,
        error: ConnectionError,
        _now: Nanos,
    ) {
        if client.state == ClientState::Idle {
            let (pool, slot) = thread.mode.place(client);
            return pool.lose(slot);
        }
        Self::stuck(thread, client, command, Cause::Connection(error));
    }

    /// Counts the client's task as failed, and closes its connection. The pool makes another connection when it is
    /// needed.
    #[cold]
    fn stuck(thread: &mut PoolThread<'_, S>, client: &mut Slot<S>, _command: Option<usize>, cause: Cause) {
        let now = thread.read_clock();
        let kind = cause.sqlstate().unwrap_or(SCRIPT);
        thread.report_failure(client, kind, &cause);
        thread.counters.fail(client, kind);
        thread.end_task(client, now, Some(kind));
        client.transaction.failure = None;
        client.state = ClientState::Idle;
        let (pool, slot) = thread.mode.place(client);
        pool.retire(slot);
        client.disconnect();
    }

    fn ask(
        thread: &mut PoolThread<'_, S>,
        connection: &mut Connection<TransportOf<S>>,
        request: StartPipeline<'_>,
    ) -> Asked {
        thread.prepare_pipeline(connection, request)
    }

    fn step(thread: &mut PoolThread<'_, S>, client: &mut Slot<S>, step: ScriptStep, now: Nanos) -> Option<Nanos> {
        thread.step_script(client, step, now)
    }

    fn tends_at(&self) -> Option<Nanos> {
        let touched = self.agenda.touched().iter().filter_map(|pool| self.pools[*pool].next());
        touched.chain(self.agenda.next()).min()
    }

    /// Adds the tasks that have arrived to the queues, fails the tasks that have waited too long, gives free
    /// connections to the tasks that wait, and begins to make the connections that are still needed.
    fn tend(thread: &mut PoolThread<'_, S>, clients: &mut [Slot<S>]) {
        let now = thread.read_clock();
        let visits = thread.mode.agenda.visits(now);
        for number in visits.iter().copied() {
            thread.admit(number, now);
            let first = number * thread.mode.size;
            while let Some(slot) = thread.mode.pools[number].take_expired(now) {
                clients[first + slot].disconnect();
            }
            while let Some((slot, task)) = thread.mode.pools[number].dispatch() {
                let client = &mut clients[first + slot];
                thread.assign(client, task, now);
                thread.drive(client, now);
            }
        }
        for index in thread.mode.wanted(&visits, now) {
            thread.connect(&mut clients[index], now);
        }
        for number in visits.iter().copied() {
            let Pooled { pools, agenda, done, .. } = &mut thread.mode;
            agenda.settle(number, pools[number].next());
            let was_done = std::mem::replace(&mut done[number], pools[number].is_done());
            thread.active -= usize::from(done[number] && !was_done);
        }
        thread.mode.agenda.take_back(visits);
    }
}

impl Pooled {
    /// Returns the pool to which a client belongs, and the client's slot, which is the number of its connection in the
    /// pool. The next round of the event loop visits the pool, since the caller may change it.
    fn place<S: Shell>(&mut self, client: &Slot<S>) -> (&mut Pool, usize) {
        self.agenda.touch(client.index / self.size);
        (&mut self.pools[client.index / self.size], client.index % self.size)
    }

    /// Returns the number of a client's application, counted from 0.
    fn app<S: Shell>(&self, client: &Slot<S>) -> usize {
        self.first_app + client.index / self.size
    }

    /// Returns the indexes of the clients of these pools whose connections must be made now. The indexes alternate
    /// between the pools.
    fn wanted(&mut self, pools: &[usize], now: Nanos) -> Vec<usize> {
        let mut wanted = Vec::new();
        loop {
            let before = wanted.len();
            for number in pools {
                wanted.extend(self.pools[*number].open(now).map(|slot| number * self.size + slot));
            }
            if wanted.len() == before {
                return wanted;
            }
        }
    }
}

impl<S: Shell> PoolThread<'_, S> {
    /// Adds the tasks that have arrived to the queue of pool `number`, and fails its tasks that have waited too long.
    fn admit(&mut self, number: usize, now: Nanos) {
        let app = self.mode.first_app + number;
        let pool = &mut self.mode.pools[number];
        pool.admit(now);
        while let Some(QueuedTask { number, arrived }) = pool.expire(now) {
            let (waited, running) = (now.saturating_sub(arrived), pool.busy());
            let statistics = &mut self.counters.statistics;
            statistics.counts.fail(POOL_TIMEOUT);
            statistics.counts.other_failures += 1;
            let failure = Some(POOL_TIMEOUT.into());
            let task = Task { app, number, arrived, waited, served: 0, running, failure };
            statistics.of_mode.add_task(task);
        }
    }

    /// Gives a task to a client, which will run the task's transaction.
    fn assign(&mut self, client: &mut Slot<S>, task: QueuedTask, now: Nanos) {
        self.choose_script(client);
        client.transaction.scheduled = task.arrived;
        client.transaction.began = now;
    }

    /// Counts the end of the client's task. `failure` is the kind of failure, or `None` if the task was completed.
    fn end_task(&mut self, client: &Slot<S>, now: Nanos, failure: Option<&str>) {
        let app = self.mode.app(client);
        let (pool, slot) = self.mode.place(client);
        let (number, running) = (pool.task(slot), pool.busy());
        let (arrived, began) = (client.transaction.scheduled, client.transaction.began);
        let (waited, served) = (began.saturating_sub(arrived), now.saturating_sub(began));
        let task = Task { app, number, arrived, waited, served, running, failure: failure.map(Into::into) };
        self.counters.statistics.of_mode.add_task(task);
    }

    /// Reports the failure of a task if it is the first failure of its kind.
    #[cold]
    fn report_failure(&mut self, client: &Slot<S>, kind: &str, error: &dyn std::fmt::Display) {
        if !self.mode.reported.insert(kind.to_owned()) {
            return;
        }
        let app = self.mode.app(client) + 1;
        let (pool, slot) = self.mode.place(client);
        let task = pool.task(slot) + 1;
        let text = format!(
            "task {task} of application {app} failed: {error} (further failures of this kind are only counted)"
        );
        self.counters.report(Report::Note(text));
    }
}
