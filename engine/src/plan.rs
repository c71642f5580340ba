//! What to run: everything that the reactor needs to know, whichever front end it comes from.

mod start;

use std::sync::Arc;
use std::time::Duration;

use crate::connection::statement::QueryMode;
use crate::connection::target::Target;
use crate::ledger::log::LogPlan;
use crate::program::Workload;
use crate::program::random::Random;
use crate::shard::{Deal, Part};
pub use start::{StartAt, instant};

/// One run of a load.
pub struct Plan {
    pub target: Arc<Target>,
    pub workload: Arc<dyn Workload>,
    /// The clients of this engine, and which of the whole run's they are.
    pub clients: usize,
    pub part: Part,
    /// When the load begins, if not as soon as the clients are ready.
    pub start: Option<StartAt>,
    /// Threads; at most as many as clients.
    pub jobs: usize,
    pub mode: QueryMode,
    pub limit: Limit,
    /// Load before the measured part; its transactions are counted apart.
    pub warmup: Duration,
    /// Whether each transaction has a connection of its own.
    pub reconnect: bool,
    /// Whether programs connect by themselves, and act before their first transaction and after the last one.
    pub staged: bool,
    /// Whether each command is timed.
    pub timed_commands: bool,
    /// Mean time between the scheduled starts of two transactions of the whole run; `None` for a closed loop.
    pub interval: Option<Duration>,
    /// Applications with pools of connections, whose slots the clients then are; all else that schedules is off.
    pub pools: Option<PoolPlan>,
    /// Transactions that take longer are late; with an `interval`, those that are late before they start are skipped.
    pub latency_limit: Option<Duration>,
    /// How often a transaction is tried after serialization failures and deadlocks; `None` without limit.
    pub tries: Option<u32>,
    /// Whether a client goes on after other errors of its statements.
    pub continue_on_error: bool,
    /// How long a client without connection tries to get another one once it has lost it; `None`: it is given up.
    pub wait_for_server: Option<Duration>,
    /// Whether one client's end by an error ends the run.
    pub exit_on_abort: bool,
    pub log: Option<LogPlan>,
    pub notes: Notes,
    pub seeds: Seeds,
}

impl Plan {
    /// The plainest load: one thread, no end, and nothing of what a front end may offer beside.
    pub fn plain(target: Arc<Target>, workload: Arc<dyn Workload>, part: Part, seeds: Seeds) -> Self {
        Self {
            target,
            workload,
            clients: part.clients(),
            part,
            start: None,
            jobs: 1,
            mode: QueryMode::Simple,
            limit: Limit::Events { total: None, time: None },
            warmup: Duration::ZERO,
            reconnect: false,
            staged: false,
            timed_commands: false,
            interval: None,
            pools: None,
            latency_limit: None,
            tries: Some(1),
            continue_on_error: false,
            wait_for_server: None,
            exit_on_abort: false,
            log: None,
            notes: Notes::default(),
            seeds,
        }
    }
}

/// Applications, each with tasks that arrive by a schedule and share a bounded pool of connections. Numbers are of each
/// application, and of this engine's part of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolPlan {
    pub apps: usize,
    pub tasks: u32,
    /// Of the whole run's tasks.
    pub arrival: Arrival,
    /// The most connections.
    pub size: usize,
    /// A task that has no connection after so long has failed.
    pub timeout: Duration,
    /// A connection that is older is replaced before it is used again.
    pub lifetime: Option<Duration>,
    /// Which tasks and connections of the whole run these are.
    pub deal: Deal,
}

impl PoolPlan {
    /// The tasks of all applications.
    pub fn all_tasks(&self) -> u64 {
        self.apps as u64 * u64::from(self.tasks)
    }
}

/// When an application's tasks arrive; rates are in tasks per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    AtOnce,
    /// At equal distances.
    Rate(f64),
    /// At the moments of a Poisson process.
    Poisson(f64),
}

/// As the option has it.
impl std::fmt::Display for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arrival::AtOnce => f.write_str("at-once"),
            Arrival::Rate(rate) => write!(f, "{rate}"),
            Arrival::Poisson(rate) => write!(f, "poisson:{rate}"),
        }
    }
}

/// What is told of each client while the run goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// Errors that are retried or counted.
    pub failures: bool,
    /// Every step.
    pub steps: bool,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Each client runs so many transactions.
    Transactions(u64),
    /// The measured part takes so long; transactions under way at its end are finished.
    Time(Duration),
    /// All clients together run so many transactions, or the measured part takes so long, whichever comes first.
    Events { total: Option<u64>, time: Option<Duration> },
}

impl Limit {
    /// The length of the measured part, if it is limited.
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::Transactions(_) => None,
            Self::Time(length) => Some(length),
            Self::Events { time, .. } => time,
        }
    }
}

/// The generators of an engine: those that its clients and threads would have in one whole run.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// Each client's values.
    pub clients: Vec<Random>,
    /// The seed of hash functions that are given none.
    pub hashes: u64,
    /// The arrivals of each application's tasks, which all engines draw alike.
    pub arrivals: Vec<Random>,
    pub threads: Vec<ThreadSeeds>,
}

/// The generators of a thread.
#[derive(Debug, Clone)]
pub struct ThreadSeeds {
    /// Which script is next.
    pub choose: Random,
    /// Times between scheduled starts.
    pub throttle: Random,
    /// Which transactions are logged.
    pub sample: Random,
}

impl Seeds {
    /// Derives all generators of the whole run from one seed in pgbench's order, and keeps the engine's own: the
    /// clients, the default seed of hash functions, the applications' arrivals, then for each thread the choice of
    /// scripts, throttling and sampling. A seed that is given for `hashes` is not drawn. The engines' threads take turns,
    /// so that engines may have different numbers of them.
    pub fn derive(seed: u64, part: &Part, apps: usize, jobs: usize, hashes: Option<u64>) -> Self {
        let mut base = Random::seeded(seed);
        let all: Vec<_> = (0..part.whole).map(|_| base.derive()).collect();
        let clients = (0..part.clients()).map(|index| all[part.number(index)].clone()).collect();
        let hashes = hashes.unwrap_or_else(|| base.next_u64());
        let arrivals = (0..apps).map(|_| base.derive()).collect();
        let threads: Vec<_> = (0..jobs * part.shard.of)
            .map(|_| ThreadSeeds { choose: base.derive(), throttle: base.derive(), sample: base.derive() })
            .collect();
        let threads = threads.into_iter().skip(part.shard.index).step_by(part.shard.of).collect();
        Self { clients, hashes, arrivals, threads }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shard::Shard;

    fn words(randoms: &[Random]) -> Vec<u64> {
        randoms.iter().map(|random| random.clone().next_u64()).collect()
    }

    fn of_threads(seeds: &Seeds) -> Vec<u64> {
        seeds.threads.iter().flat_map(|thread| words(&[thread.choose.clone(), thread.throttle.clone()])).collect()
    }

    proptest! {
        #[test]
        fn the_seeds_of_the_parts_are_those_of_the_whole(
            seed in any::<u64>(),
            of in 1usize..6,
            more in 0usize..20,
            jobs in 1usize..5,
        ) {
            let clients = of + more;
            let whole = Seeds::derive(seed, &Part::whole(clients), 0, jobs * of, None);
            let parts: Vec<_> = (0..of)
                .map(|index| Seeds::derive(seed, &Part::of_clients(Shard { index, of }, clients), 0, jobs, None))
                .collect();
            let joined: Vec<_> = parts.iter().flat_map(|part| words(&part.clients)).collect();
            prop_assert_eq!(joined, words(&whole.clients));
            prop_assert!(parts.iter().all(|part| part.hashes == whole.hashes));
            let mut threads: Vec<_> = parts.iter().flat_map(of_threads).collect();
            let mut expected = of_threads(&whole);
            threads.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(threads, expected);
        }

        #[test]
        fn engines_with_other_numbers_of_threads_share_no_seed(of in 2usize..6, jobs in prop::collection::vec(1usize..9, 6)) {
            let parts = (0..of).flat_map(|index| {
                of_threads(&Seeds::derive(1, &Part::of_clients(Shard { index, of }, 60), 0, jobs[index], None))
            });
            let mut all: Vec<_> = parts.collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count);
        }

        #[test]
        fn all_engines_draw_the_same_arrivals(of in 1usize..6, apps in 1usize..4, jobs in 1usize..5) {
            let whole = Seeds::derive(7, &Part::of_pools(Shard::WHOLE, apps, 9), apps, jobs, None);
            for index in 0..of {
                let part = Part::of_pools(Shard { index, of }, apps, 9);
                prop_assert_eq!(words(&Seeds::derive(7, &part, apps, 1, None).arrivals), words(&whole.arrivals));
            }
        }
    }
}
