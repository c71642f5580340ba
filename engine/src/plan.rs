//! What to run: everything that the reactor needs to know, whichever front end it comes from.

use std::sync::Arc;
use std::time::Duration;

use crate::connection::statement::QueryMode;
use crate::connection::target::Target;
use crate::program::Workload;
use crate::program::random::Random;

/// One run of a load.
pub struct Plan {
    pub target: Arc<Target>,
    pub workload: Arc<dyn Workload>,
    pub clients: usize,
    /// Threads; at most as many as clients.
    pub jobs: usize,
    pub mode: QueryMode,
    pub limit: Limit,
    /// Load before the measured part; its transactions are counted apart.
    pub warmup: Duration,
    /// Whether each transaction has a connection of its own.
    pub reconnect: bool,
    /// Whether each command is timed.
    pub timed_commands: bool,
    pub seeds: Seeds,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Each client runs so many transactions.
    Transactions(u64),
    /// The measured part takes so long; transactions under way at its end are finished.
    Time(Duration),
}

/// The generators of a run: one for each client's values, one for each thread's choice of scripts.
#[derive(Debug, Clone)]
pub struct Seeds {
    pub clients: Vec<Random>,
    pub threads: Vec<Random>,
}

impl Seeds {
    /// Derives all generators from one seed in pgbench's order: the clients, the default seed of hash functions, then
    /// for each thread the choice of scripts, throttling and sampling.
    pub fn derive(seed: u64, clients: usize, jobs: usize) -> Self {
        let mut base = Random::seeded(seed);
        let clients = (0..clients).map(|_| base.derive()).collect();
        let _default_seed_of_hashes = base.next_u64();
        let threads = (0..jobs)
            .map(|_| {
                let choose = base.derive();
                let _throttle = base.derive();
                let _sample = base.derive();
                choose
            })
            .collect();
        Self { clients, threads }
    }
}
