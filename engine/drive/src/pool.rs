//! The bounded connection pool of one application, and the queue of the tasks that wait for a connection of the pool.
//! Decides which task gets a connection next, and which task has waited too long. The pool does not know sockets: it
//! numbers its connections, and calls such a number a slot.

use std::collections::VecDeque;

use crate::arrivals::Arrivals;
use crate::plan::PoolPlan;
use ground::clock::Nanos;
use ground::random::Random;

/// The time from a failed attempt to connect to the next attempt, in nanoseconds.
const RETRY: Nanos = 200_000_000;

/// A connection pool, and the queue of tasks that wait for it.
pub struct Pool {
    arrivals: Arrivals,
    waiting: VecDeque<QueuedTask>,
    slots: Vec<Slot>,
    /// The slots (numbers of connections) with a free connection, of which the last one was used last.
    free: Vec<usize>,
    /// The slots (numbers of connections) that have no connection.
    closed: Vec<usize>,
    /// The number of connections that are being made.
    opening: usize,
    /// The number of connections that have a task.
    busy: usize,
    timeout: Nanos,
    lifetime: Option<Nanos>,
    /// The pool makes no connection before this time, because the last attempt to connect has failed.
    retry_at: Nanos,
}

/// A task that waits in the queue of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedTask {
    pub number: u32,
    pub arrived: Nanos,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The time at which the connection was made.
    opened: Nanos,
    /// The number of the task that has the connection, or that had it last.
    task: u32,
}

impl Pool {
    /// Makes a pool whose connections have not been made yet.
    pub fn new(plan: &PoolPlan, random: Random) -> Self {
        Self {
            arrivals: Arrivals::new(plan.arrival, plan.task_share, random),
            waiting: VecDeque::new(),
            slots: vec![Slot::default(); plan.size],
            free: Vec::with_capacity(plan.size),
            closed: (0..plan.size).rev().collect(),
            opening: 0,
            busy: 0,
            timeout: plan.timeout.as_nanos() as Nanos,
            lifetime: plan.lifetime.map(|lifetime| lifetime.as_nanos() as Nanos),
            retry_at: 0,
        }
    }

    /// Begins the arrivals of tasks, when the load begins at `now`.
    pub fn start(&mut self, now: Nanos) {
        self.arrivals.start(now);
    }

    /// Adds the tasks that have arrived by `now` to the queue.
    pub fn admit(&mut self, now: Nanos) {
        while let Some((number, arrived)) = self.arrivals.next_until(now) {
            self.waiting.push_back(QueuedTask { number, arrived });
        }
    }

    /// Removes and returns the first task of the queue if it has waited too long. All tasks have the same limit: if the
    /// first has not waited too long, no other has.
    pub fn expire(&mut self, now: Nanos) -> Option<QueuedTask> {
        let first = self.waiting.front()?;
        if now < self.deadline(first) {
            return None;
        }
        self.waiting.pop_front()
    }

    fn deadline(&self, task: &QueuedTask) -> Nanos {
        task.arrived.saturating_add(self.timeout)
    }

    /// Gives the first task of the queue to the free connection that was used last. Returns the slot, which is the
    /// connection's number in the pool, and the task.
    pub fn dispatch(&mut self) -> Option<(usize, QueuedTask)> {
        if self.waiting.is_empty() {
            return None;
        }
        let slot = self.free.pop()?;
        self.assign(slot).map(|task| (slot, task))
    }

    /// Gives the first task of the queue to connection number `slot`. The caller has already removed `slot` from the
    /// lists of free connections and of numbers without a connection.
    fn assign(&mut self, slot: usize) -> Option<QueuedTask> {
        let task = self.waiting.pop_front()?;
        self.slots[slot].task = task.number;
        self.busy += 1;
        Some(task)
    }

    /// Records that the task of connection number `slot` has ended. The connection is given to the next task of the
    /// queue, which is returned. If no task waits, the connection becomes free.
    pub fn pass_on(&mut self, slot: usize) -> Option<QueuedTask> {
        self.busy -= 1;
        let next = self.assign(slot);
        if next.is_none() {
            self.free.push(slot);
        }
        next
    }

    /// Records that the task of connection number `slot` has ended and that the connection was closed.
    pub fn retire(&mut self, slot: usize) {
        self.busy -= 1;
        self.closed.push(slot);
    }

    /// Records that the free connection number `slot` was closed.
    pub fn lose(&mut self, slot: usize) {
        self.free.retain(|free| *free != slot);
        self.closed.push(slot);
    }

    /// Removes a free connection from the pool that is too old to be used for another task, and returns its slot, the
    /// connection's number in the pool. Returns `None` if there is none, or if no task waits.
    pub fn take_expired(&mut self, now: Nanos) -> Option<usize> {
        if self.lifetime.is_none() || self.waiting.is_empty() {
            return None;
        }
        let at = self.free.iter().position(|slot| self.is_expired(*slot, now))?;
        let slot = self.free.swap_remove(at);
        self.closed.push(slot);
        Some(slot)
    }

    /// Returns true if connection number `slot` is too old to be used for another task.
    pub fn is_expired(&self, slot: usize, now: Nanos) -> bool {
        self.lifetime.is_some_and(|lifetime| now - self.slots[slot].opened >= lifetime)
    }

    /// Returns the slot (the number in the pool) for a new connection if one is needed: if more tasks wait than
    /// connections are free or being made.
    pub fn open(&mut self, now: Nanos) -> Option<usize> {
        if now < self.retry_at || !self.is_short() {
            return None;
        }
        self.opening += 1;
        self.closed.pop()
    }

    fn is_short(&self) -> bool {
        self.opening + self.free.len() < self.waiting.len() && !self.closed.is_empty()
    }

    /// Records that the new connection number `slot` is ready.
    pub fn opened(&mut self, slot: usize, now: Nanos) {
        self.opening -= 1;
        self.slots[slot].opened = now;
        self.free.push(slot);
    }

    /// Records that connection number `slot` could not be made.
    pub fn refused(&mut self, slot: usize, now: Nanos) {
        self.opening -= 1;
        self.closed.push(slot);
        self.retry_at = now + RETRY;
    }

    /// Returns the number of the task that has connection number `slot`, or that had it last.
    pub fn task(&self, slot: usize) -> u32 {
        self.slots[slot].task
    }

    /// Returns the number of tasks that have a connection now.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// Returns the next time at which the pool must be visited even if nothing happens in it: a task arrives, a waiting
    /// task times out, or a connection can be tried again.
    pub fn next(&self) -> Option<Nanos> {
        let deadline = self.waiting.front().map(|task| self.deadline(task));
        let retry = self.is_short().then_some(self.retry_at);
        [self.arrivals.next(), deadline, retry].into_iter().flatten().min()
    }

    /// Returns true if all tasks have arrived and ended.
    pub fn is_done(&self) -> bool {
        self.busy == 0 && self.waiting.is_empty() && self.arrivals.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::Arrival;
    use ground::clock::MS;
    use ground::shard::{Shard, TaskShare};

    fn pool(tasks: u32, arrival: Arrival, size: usize, timeout_ms: u64, lifetime_ms: Option<u64>) -> Pool {
        let timeout = Duration::from_millis(timeout_ms);
        let lifetime = lifetime_ms.map(Duration::from_millis);
        let task_share = TaskShare { shard: Shard::WHOLE, tasks, size };
        let plan = PoolPlan { apps: 1, tasks, arrival, size, timeout, lifetime, task_share };
        let mut pool = Pool::new(&plan, Random::seeded(3));
        pool.start(0);
        pool
    }

    #[test]
    fn connections_are_made_when_tasks_wait_for_them_and_no_more_than_fit() {
        let mut pool = pool(5, Arrival::AtOnce, 3, 100, None);
        assert_eq!(pool.open(0), None);
        pool.admit(0);
        assert_eq!([pool.open(0), pool.open(0), pool.open(0), pool.open(0)], [Some(0), Some(1), Some(2), None]);
        pool.opened(1, 5);
        assert_eq!(pool.dispatch(), Some((1, QueuedTask { number: 0, arrived: 0 })));
        assert_eq!((pool.dispatch(), pool.busy()), (None, 1));
    }

    #[test]
    fn one_connection_is_enough_for_tasks_that_come_one_after_another() {
        let mut pool = pool(3, Arrival::Rate(1.0), 3, 100, None);
        for second in 0..3 {
            let now = second * 1000 * MS;
            assert_eq!(pool.next(), Some(now));
            pool.admit(now);
            if let Some(slot) = pool.open(now) {
                assert_eq!((second, slot), (0, 0));
                pool.opened(slot, now);
            }
            assert_eq!(pool.dispatch().map(|(slot, task)| (slot, task.number)), Some((0, second as u32)));
            assert_eq!(pool.pass_on(0), None);
        }
        assert!(pool.is_done());
    }

    #[test]
    fn who_has_waited_too_long_is_given_up_and_nobody_else() {
        let mut pool = pool(2, Arrival::Rate(10.0), 1, 150, None);
        pool.admit(100 * MS);
        assert_eq!((pool.expire(149 * MS), pool.next()), (None, Some(0)));
        assert_eq!(pool.expire(150 * MS), Some(QueuedTask { number: 0, arrived: 0 }));
        assert_eq!(pool.expire(150 * MS), None);
    }

    #[test]
    fn after_a_refusal_the_next_attempt_waits() {
        let mut pool = pool(1, Arrival::AtOnce, 1, 1000, None);
        pool.admit(0);
        let slot = pool.open(0).unwrap();
        pool.refused(slot, 5);
        assert_eq!((pool.open(RETRY), pool.next()), (None, Some(RETRY + 5)));
        assert_eq!(pool.open(RETRY + 5), Some(0));
    }

    #[test]
    fn a_connection_past_its_lifetime_is_replaced_before_it_is_used_again() {
        let mut pool = pool(2, Arrival::Rate(10.0), 1, 1000, Some(50));
        pool.admit(0);
        let slot = pool.open(0).unwrap();
        pool.opened(slot, 0);
        assert_eq!((pool.take_expired(49 * MS), pool.is_expired(slot, 49 * MS)), (None, false));
        pool.dispatch().unwrap();
        assert_eq!(pool.pass_on(slot), None);
        pool.admit(100 * MS);
        assert_eq!(pool.take_expired(100 * MS), Some(slot));
        assert_eq!((pool.dispatch(), pool.open(100 * MS)), (None, Some(slot)));
    }

    /// Simulates a pool. Making a connection takes `connect_ms`, and each task has its connection for `service_ms`.
    /// Returns for each task, in the order in which tasks got a connection or were given up: its number, how long it
    /// waited, and whether it got a connection.
    fn simulate(mut pool: Pool, connect_ms: u64, service_ms: u64) -> Vec<(u32, Nanos, bool)> {
        let mut ended = Vec::new();
        let mut events: Vec<(Nanos, usize, bool)> = Vec::new();
        let mut now = 0;
        while !pool.is_done() {
            pool.admit(now);
            while let Some(at) = events.iter().position(|(at, ..)| *at <= now) {
                let (_, slot, connects) = events.swap_remove(at);
                if connects {
                    pool.opened(slot, now);
                } else if pool.is_expired(slot, now) {
                    pool.retire(slot);
                } else {
                    while let Some(task) = pool.expire(now) {
                        ended.push((task.number, now - task.arrived, false));
                    }
                    if let Some(task) = pool.pass_on(slot) {
                        ended.push((task.number, now - task.arrived, true));
                        events.push((now + service_ms * MS, slot, false));
                    }
                }
            }
            while let Some(task) = pool.expire(now) {
                ended.push((task.number, now - task.arrived, false));
            }
            while pool.take_expired(now).is_some() {}
            while let Some((slot, task)) = pool.dispatch() {
                ended.push((task.number, now - task.arrived, true));
                events.push((now + service_ms * MS, slot, false));
            }
            while let Some(slot) = pool.open(now) {
                events.push((now + connect_ms * MS, slot, true));
            }
            let next = events.iter().map(|(at, ..)| *at).chain(pool.next()).min();
            now = next.map_or(now, |next| next.max(now));
        }
        ended
    }

    proptest! {
        #[test]
        fn every_task_is_served_or_given_up_once_in_the_order_of_arrival(
            tasks in 1u32..200,
            kind in 0..3,
            rate in 1.0..2000.0f64,
            size in 1usize..8,
            timeout_ms in 1u64..300,
            lifetime_ms in prop::option::of(20u64..200),
            connect_ms in 1u64..20,
            service_ms in 1u64..50,
        ) {
            let arrival = [Arrival::AtOnce, Arrival::Rate(rate), Arrival::Poisson(rate)][kind as usize];
            let ended = simulate(pool(tasks, arrival, size, timeout_ms, lifetime_ms), connect_ms, service_ms);
            let numbers: Vec<_> = ended.iter().map(|(number, ..)| *number).collect();
            prop_assert_eq!(numbers, (0..tasks).collect::<Vec<_>>());
            for (number, waited, served) in ended {
                prop_assert_eq!(served, waited < timeout_ms * MS, "task {} waited {}", number, waited);
            }
        }
    }
}
