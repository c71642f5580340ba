//! Computes which clients, transactions and tasks each engine has, if several engines share a run.
//!
//! Each engine gets a contiguous range of the clients. The rate and a number of transactions that all clients share are
//! divided in proportion to the clients. The slots of a connection pool, which are its numbered connections, and its
//! tasks are assigned round-robin, so that tasks that arrive one after another go to different engines.

use std::fmt;
use std::ops::Range;

/// The number of an engine among the engines that share a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The engine's number, counted from 0.
    pub index: usize,
    /// The number of engines that share the run, at least 1.
    pub of: usize,
}

impl Shard {
    /// The shard, the number among the engines of a run, of an engine that shares its run with no other engine.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// Returns true if other engines share the run.
    pub fn is_part(self) -> bool {
        self.of > 1
    }

    /// Returns true if this is the first engine. It does the work that must be done only once for a run.
    pub fn is_first(self) -> bool {
        self.index == 0
    }

    /// Returns the contiguous range of the numbers `0..total` that belongs to this engine. The ranges are as even as
    /// possible: the first engines may have one number more.
    pub fn range(self, total: u64) -> Range<u64> {
        let of = self.of as u64;
        let start = |index: u64| total / of * index + index.min(total % of);
        start(self.index as u64)..start(self.index as u64 + 1)
    }

    /// Returns true if item `number` belongs to this engine, if items are assigned to the engines round-robin. Numbers
    /// count from 0.
    pub fn has_turn(self, number: u64) -> bool {
        number % self.of as u64 == self.index as u64
    }

    /// Returns how many of `total` items belong to this engine, if items are assigned to the engines round-robin.
    pub fn turns(self, total: usize) -> usize {
        total / self.of + usize::from(self.index < total % self.of)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

/// Writes `INDEX/OF`, with the index counted from 1, as the option `--shard` reads it.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

/// The clients of a run that belong to one engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientShare {
    pub shard: Shard,
    /// The number of clients of the whole run.
    pub whole: usize,
    /// The number of connections of a pool in the whole run, if each client is a connection of a pool. `None`
    /// otherwise.
    pool: Option<usize>,
}

impl ClientShare {
    /// Returns the share of an engine that has all `clients` clients of the run.
    pub fn whole(clients: usize) -> Self {
        Self::of_clients(Shard::WHOLE, clients)
    }

    /// Returns the share that the engine `shard` has of `clients` clients.
    pub fn of_clients(shard: Shard, clients: usize) -> Self {
        Self { shard, whole: clients, pool: None }
    }

    /// Returns the share that the engine `shard` has of the connections of `apps` connection pools with `size`
    /// connections each. Each connection is a client.
    pub fn of_pools(shard: Shard, apps: usize, size: usize) -> Self {
        Self { shard, whole: apps * size, pool: Some(size) }
    }

    /// Returns the number of clients of this engine.
    pub fn clients(&self) -> usize {
        match self.pool {
            Some(size) => self.whole / size * self.shard.turns(size),
            None => self.range().len(),
        }
    }

    /// Returns the number that this engine's client `index` has in the whole run. Both count from 0.
    pub fn number(&self, index: usize) -> usize {
        match self.pool {
            Some(size) => {
                let own = self.shard.turns(size);
                index / own * size + index % own * self.shard.of + self.shard.index
            }
            None => self.range().start + index,
        }
    }

    /// Returns the contiguous range of this engine's clients. Not used if each client is a connection of a pool.
    fn range(&self) -> Range<usize> {
        let own = self.shard.range(self.whole as u64);
        own.start as usize..own.end as usize
    }

    /// Returns how many of the `total` transactions that all clients of the run share belong to this engine.
    pub fn transactions(&self, total: u64) -> u64 {
        let before = |clients: usize| (u128::from(total) * clients as u128 / self.whole.max(1) as u128) as u64;
        let first = self.range().start;
        before(first + self.clients()) - before(first)
    }

    /// Returns the mean time between two transactions of this engine, in nanoseconds. `interval_ns` is the mean time
    /// between two transactions of the whole run.
    pub fn mean_ns(&self, interval_ns: f64) -> f64 {
        interval_ns * (self.whole as f64 / self.clients() as f64)
    }
}

/// The tasks of one application and the slots (numbered connections) of its connection pool that belong to an engine.
/// Slot `s` belongs to engine `s` modulo the number of engines. Task `t` belongs to the engine that has the slot `t`
/// modulo the size of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskShare {
    pub shard: Shard,
    /// The number of tasks of the application in the whole run.
    pub tasks: u32,
    /// The size of the application's pool in the whole run.
    pub size: usize,
}

impl TaskShare {
    /// Returns true if task `task` belongs to this engine. Tasks are numbered from 0.
    pub fn is_own(&self, task: u32) -> bool {
        self.shard.has_turn(u64::from(task) % self.size as u64)
    }

    /// Returns the number of tasks of this engine.
    pub fn own_tasks(&self) -> u32 {
        let (rounds, rest) = (self.tasks as usize / self.size, self.tasks as usize % self.size);
        (rounds * self.own_slots() + self.shard.turns(rest)) as u32
    }

    /// Returns the number of connections of the pool that belong to this engine.
    pub fn own_slots(&self) -> usize {
        self.shard.turns(self.size)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shards(of: usize) -> impl Iterator<Item = Shard> {
        (0..of).map(move |index| Shard { index, of })
    }

    fn numbers(part: ClientShare) -> impl Iterator<Item = usize> {
        (0..part.clients()).map(move |index| part.number(index))
    }

    #[test]
    fn the_first_shards_take_the_rest() {
        let clients: Vec<_> = shards(4).map(|shard| ClientShare::of_clients(shard, 10).clients()).collect();
        assert_eq!(clients, [3, 3, 2, 2]);
        assert_eq!(numbers(ClientShare::of_clients(Shard { index: 2, of: 4 }, 10)).collect::<Vec<_>>(), [6, 7]);
    }

    #[test]
    fn the_slots_of_each_pool_take_turns() {
        let part = ClientShare::of_pools(Shard { index: 1, of: 2 }, 2, 5);
        assert_eq!(numbers(part).collect::<Vec<_>>(), [1, 3, 6, 8]);
    }

    #[test]
    fn a_run_that_is_not_shared_out_has_everything() {
        let whole = ClientShare::whole(7);
        assert!(numbers(whole).eq(0..7));
        assert_eq!((whole.transactions(11), whole.mean_ns(3000.0)), (11, 3000.0));
        let share = TaskShare { shard: Shard::WHOLE, tasks: 9, size: 4 };
        assert_eq!((share.own_tasks(), share.own_slots(), (0..9).all(|task| share.is_own(task))), (9, 4, true));
    }

    proptest! {
        #[test]
        fn each_client_is_in_one_shard_and_the_numbers_continue(of in 1usize..40, more in 0usize..500) {
            let clients = of + more;
            let all: Vec<_> = shards(of).flat_map(|shard| numbers(ClientShare::of_clients(shard, clients))).collect();
            prop_assert_eq!(all, (0..clients).collect::<Vec<_>>());
            let counts: Vec<_> = shards(of).map(|shard| ClientShare::of_clients(shard, clients).clients()).collect();
            prop_assert!(counts.iter().all(|count| *count >= 1) && counts.is_sorted_by(|one, next| one >= next));
            prop_assert!(counts[0] - counts[of - 1] <= 1);
        }

        #[test]
        fn each_slot_is_in_one_shard_and_stays_in_its_pool(of in 1usize..10, more in 0usize..30, apps in 1usize..5) {
            let size = of + more;
            let mut all = Vec::new();
            for shard in shards(of) {
                let part = ClientShare::of_pools(shard, apps, size);
                let own = part.clients() / apps;
                prop_assert!((0..part.clients()).all(|index| part.number(index) / size == index / own));
                all.extend(numbers(part));
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..apps * size).collect::<Vec<_>>());
        }

        #[test]
        fn what_clients_share_adds_up(of in 1usize..40, more in 0usize..500, total in any::<u64>(), us in 1u64..10_000_000) {
            let parts: Vec<_> = shards(of).map(|shard| ClientShare::of_clients(shard, of + more)).collect();
            prop_assert_eq!(parts.iter().map(|part| u128::from(part.transactions(total))).sum::<u128>(), total.into());
            let interval = 1000.0 * us as f64;
            let rate: f64 = parts.iter().map(|part| 1e9 / part.mean_ns(interval)).sum();
            prop_assert!((rate / (1e6 / us as f64) - 1.0).abs() < 1e-12);
            for part in &parts {
                let each = total as f64 / (of + more) as f64;
                let fair = each * part.clients() as f64;
                prop_assert!((part.transactions(total) as f64 - fair).abs() <= 1.0 + fair * 1e-9);
            }
        }

        #[test]
        fn each_task_belongs_to_one_shard_and_each_shard_has_tasks(
            of in 1usize..10,
            more in 0usize..30,
            tasks in 10u32..3000,
        ) {
            let shares: Vec<_> = shards(of).map(|shard| TaskShare { shard, tasks, size: of + more }).collect();
            for task in 0..tasks {
                prop_assert_eq!(shares.iter().filter(|share| share.is_own(task)).count(), 1);
            }
            for share in &shares {
                prop_assert_eq!(share.own_tasks() as usize, (0..tasks).filter(|task| share.is_own(*task)).count());
                prop_assert!(share.own_tasks() > 0 && share.own_slots() > 0);
            }
            prop_assert_eq!(shares.iter().map(TaskShare::own_slots).sum::<usize>(), of + more);
        }
    }
}
