//! What to run: everything that the reactor needs to know, whichever front end it comes from.

use std::sync::Arc;
use std::time::Duration;

use crate::connection::statement::QueryMode;
use crate::connection::target::Target;
use crate::ledger::log::LogPlan;
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

/// Applications, each with tasks that arrive by a schedule and share a bounded pool of connections. Numbers are of each
/// application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolPlan {
    pub apps: usize,
    pub tasks: u32,
    pub arrival: Arrival,
    /// The most connections.
    pub size: usize,
    /// A task that has no connection after so long has failed.
    pub timeout: Duration,
    /// A connection that is older is replaced before it is used again.
    pub lifetime: Option<Duration>,
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

/// The generators of a run.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// Each client's values.
    pub clients: Vec<Random>,
    /// The seed of hash functions that are given none.
    pub hashes: u64,
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
    /// Derives all generators from one seed in pgbench's order: the clients, the default seed of hash functions, then
    /// for each thread the choice of scripts, throttling and sampling. A seed that is given for `hashes` is not drawn.
    pub fn derive(seed: u64, clients: usize, jobs: usize, hashes: Option<u64>) -> Self {
        let mut base = Random::seeded(seed);
        Self {
            clients: (0..clients).map(|_| base.derive()).collect(),
            hashes: hashes.unwrap_or_else(|| base.next_u64()),
            threads: (0..jobs)
                .map(|_| ThreadSeeds { choose: base.derive(), throttle: base.derive(), sample: base.derive() })
                .collect(),
        }
    }
}
