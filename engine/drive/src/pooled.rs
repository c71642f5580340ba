//! Runs with pools of connections: a client is a slot of an application's pool, a task is an entry of its queue. All slots
//! of an application are on one thread, and so is its queue.

use std::collections::BTreeSet;

use super::client::{Client, State};
use super::pool::{Pool, Waiting};
use super::thread::Thread;
use super::worker::Worker;
use super::{Cause, Report};
use crate::ledger::tasks::{POOL_TIMEOUT, SCRIPT, Task};
use crate::plan::PoolPlan;
use ground::clock::Nanos;
use ground::random::Random;
use wire::OpenError;

/// The pools of one thread.
pub struct Pools {
    pools: Vec<Pool>,
    /// Slots of each.
    size: usize,
    /// The number of the first pool's application.
    first_app: usize,
    /// The kinds of failures that have been told of.
    told: BTreeSet<String>,
}

impl Pools {
    /// The pools whose slots are `clients` clients from `first_client` on; `arrivals` has a generator for each of all
    /// applications.
    pub fn new(plan: &PoolPlan, first_client: usize, clients: usize, arrivals: &[Random]) -> Self {
        let (first_app, apps) = (first_client / plan.size, clients / plan.size);
        let of_thread = arrivals.iter().skip(first_app).take(apps);
        Self {
            pools: of_thread.map(|random| Pool::new(plan, random.clone())).collect(),
            size: plan.size,
            first_app,
            told: BTreeSet::new(),
        }
    }

    /// The load begins.
    fn start(&mut self, now: Nanos) {
        self.pools.iter_mut().for_each(|pool| pool.start(now));
    }

    /// When a pool has something to do by itself.
    pub fn next(&self) -> Option<Nanos> {
        self.pools.iter().filter_map(Pool::next).min()
    }

    /// A client's pool and its slot there.
    fn place(&mut self, client: usize) -> (&mut Pool, usize) {
        (&mut self.pools[client / self.size], client % self.size)
    }

    /// Pools that have tasks left.
    fn unfinished(&self) -> usize {
        self.pools.iter().filter(|pool| !pool.is_done()).count()
    }

    /// The next slots whose connections are to be made, one of each pool in turn, as numbers of clients.
    fn wanted(&mut self, now: Nanos) -> Vec<usize> {
        let mut wanted = Vec::new();
        loop {
            let before = wanted.len();
            for (number, pool) in self.pools.iter_mut().enumerate() {
                wanted.extend(pool.open(now).map(|slot| number * self.size + slot));
            }
            if wanted.len() == before {
                return wanted;
            }
        }
    }
}

impl Worker<'_> {
    /// The load of pools begins.
    pub fn start_pools(&mut self, now: Nanos) {
        if let Some(pools) = &mut self.thread.pools {
            pools.start(now);
            self.thread.active = pools.unfinished();
        }
        self.serve_pools();
    }

    /// Takes in tasks whose time has come, gives up those that waited too long, and hands out free connections.
    pub fn serve_pools(&mut self) {
        let thread = &mut self.thread;
        let now = thread.clock.now();
        thread.roll(now);
        let count = thread.pools.as_ref().map_or(0, |pools| pools.pools.len());
        for number in 0..count {
            thread.give_up_late(number, now);
            while let Some((index, assigned)) = thread.next_assignment(number, now) {
                let client = &mut self.clients[index];
                match assigned {
                    Some(task) => {
                        thread.assign(client, task, now);
                        thread.drive(client, now);
                    }
                    None => thread.close(client),
                }
            }
        }
        let Some(pools) = &mut thread.pools else { return };
        let wanted = pools.wanted(now);
        thread.active = pools.unfinished();
        for index in wanted {
            thread.connect_later(&mut self.clients[index], now);
        }
    }
}

impl Thread<'_> {
    /// Admits what has arrived at pool `number` and gives up who waited too long.
    fn give_up_late(&mut self, number: usize, now: Nanos) {
        let Some(pools) = &mut self.pools else { return };
        let app = pools.first_app + number;
        let pool = &mut pools.pools[number];
        pool.admit(now);
        while let Some(Waiting { number, arrived }) = pool.expire(now) {
            let (waited, running) = (now.saturating_sub(arrived), pool.busy());
            let failure = Some(POOL_TIMEOUT.into());
            self.tally.counts.fail(POOL_TIMEOUT);
            self.tally.counts.other_failures += 1;
            let task = Task { app, number, arrived, waited, served: 0, running, failure };
            self.tally.pooled.get_or_insert_default().add(task);
        }
    }

    /// A free connection of pool `number`, as the number of its client, and the task that gets it; without a task it is
    /// to be closed.
    fn next_assignment(&mut self, number: usize, now: Nanos) -> Option<(usize, Option<Waiting>)> {
        let pools = self.pools.as_mut()?;
        let (pool, first) = (&mut pools.pools[number], number * pools.size);
        if let Some(slot) = pool.take_worn(now) {
            return Some((first + slot, None));
        }
        pool.dispatch().map(|(slot, task)| (first + slot, Some(task)))
    }

    /// A client begins a task.
    fn assign(&mut self, client: &mut Client, task: Waiting, now: Nanos) {
        client.script = client.program.begin(&mut self.choose);
        client.tries = 1;
        client.was_answered = false;
        client.scheduled = task.arrived;
        client.transaction_began = now;
        if self.plan.options().notes.steps {
            self.note_script(client);
        }
    }

    /// The client's task is over: its connection goes to the next one that waits; false if there is none.
    pub(super) fn next_task(&mut self, client: &mut Client, now: Nanos) -> bool {
        let Some(pools) = &mut self.pools else { return false };
        client.state = State::Idle;
        let (pool, slot) = pools.place(client.index);
        if pool.is_worn(slot, now) {
            pool.retire(slot);
            self.close(client);
            return false;
        }
        self.give_up_late(client.index / self.plan_size(), now);
        let Some(pools) = &mut self.pools else { return false };
        let (pool, slot) = pools.place(client.index);
        let Some(task) = pool.pass_on(slot) else { return false };
        self.assign(client, task, now);
        true
    }

    fn plan_size(&self) -> usize {
        self.plan.pools().map_or(1, |pools| pools.size)
    }

    /// The client's task has done what it should.
    pub(super) fn complete_task(&mut self, client: &Client, now: Nanos) {
        self.end_task(client, now, None);
    }

    /// The client's task has failed on the server; its connection is as good as before.
    pub(super) fn fail_task(&mut self, client: &Client, sqlstate: &str, now: Nanos) {
        self.end_task(client, now, Some(sqlstate.into()));
    }

    fn end_task(&mut self, client: &Client, now: Nanos, failure: Option<Box<str>>) {
        let Some(pools) = &mut self.pools else { return };
        let app = pools.first_app + client.index / pools.size;
        let (pool, slot) = pools.place(client.index);
        let (number, running) = (pool.task(slot), pool.busy());
        let (arrived, began) = (client.scheduled, client.transaction_began);
        let task = Task {
            app,
            number,
            arrived,
            waited: began.saturating_sub(arrived),
            served: now.saturating_sub(began),
            running,
            failure,
        };
        self.tally.pooled.get_or_insert_default().add(task);
    }

    /// The client's task has failed and cannot go on, nor can its connection: another one is made when it is needed.
    #[cold]
    pub(super) fn break_task(&mut self, client: &mut Client, cause: &Cause) {
        let now = self.clock.now();
        self.roll(now);
        let kind = cause.sqlstate().unwrap_or(SCRIPT).to_owned();
        self.tell_failure(client, &kind, cause);
        let script = client.script;
        for counts in [&mut self.tally.counts, &mut self.scripts[script].whole] {
            counts.fail(&kind);
            counts.other_failures += 1;
        }
        self.fail_task(client, &kind, now);
        client.failure = None;
        if let Some(pools) = &mut self.pools {
            let (pool, slot) = pools.place(client.index);
            pool.retire(slot);
        }
        self.close(client);
    }

    /// Tells of a failure in words, the first of its kind.
    #[cold]
    pub(super) fn tell_failure(&mut self, client: &Client, kind: &str, error: &dyn std::fmt::Display) {
        let Some(pools) = &mut self.pools else { return };
        if !pools.told.insert(kind.to_owned()) {
            return;
        }
        let app = pools.first_app + client.index / pools.size;
        let (pool, slot) = pools.place(client.index);
        let (task, app) = (pool.task(slot) + 1, app + 1);
        let text = format!("task {task} of application {app} failed: {error} (others of this kind are only counted)");
        self.report(Report::Note(text));
    }

    /// A client's connection is ready for tasks.
    pub(super) fn slot_connected(&mut self, client: &mut Client, now: Nanos) {
        client.state = State::Idle;
        client.status = b'I';
        if let Some(pools) = &mut self.pools {
            let (pool, slot) = pools.place(client.index);
            pool.opened(slot, now);
        }
    }

    /// A client's connection could not be made: the tasks go on waiting.
    #[cold]
    pub(super) fn slot_refused(&mut self, client: &mut Client, error: &OpenError) {
        client.state = State::Idle;
        client.connection = None;
        let now = self.clock.now();
        let Some(pools) = &mut self.pools else { return };
        let app = pools.first_app + client.index / pools.size + 1;
        let (pool, slot) = pools.place(client.index);
        pool.refused(slot, now);
        if pools.told.insert(format!("connect {}", error.sqlstate)) {
            let message = error.message.trim_end();
            let text = format!(
                "the pool of application {app} could not make a connection: {message} (tried again; others are not told)"
            );
            self.report(Report::Note(text));
        }
    }

    /// The server has something to say to a client without a task: usually that it leaves.
    #[cold]
    pub(super) fn slot_spoke(&mut self, client: &mut Client) {
        let Some(connection) = &mut client.connection else { return };
        let (registry, token) = (self.readiness.registry(), mio::Token(client.index));
        let received = connection.receive(&mut self.buffer, registry, token);
        if received.is_ok() && !connection.is_dismissed() {
            return;
        }
        if let Some(pools) = &mut self.pools {
            let (pool, slot) = pools.place(client.index);
            pool.lose(slot);
        }
        self.close(client);
    }

    fn close(&mut self, client: &mut Client) {
        client.state = State::Idle;
        if let Some(mut connection) = client.connection.take() {
            connection.terminate();
        }
    }
}
