//! What to run: everything that the reactor needs to know, whichever front end it comes from.

mod start;

use std::sync::Arc;
use std::time::Duration;

use crate::ledger::log::LogPlan;
use ground::shard::{ClientShare, TaskShare};
pub use start::{StartAt, instant};
use wire::statement::QueryMode;
use wire::target::Target;
use workload::Workload;
use workload::seeds::Seeds;

/// One run of a load.
pub struct Plan {
    pub target: Arc<Target>,
    pub workload: Arc<dyn Workload>,
    /// The clients of this engine, and which of the whole run's they are.
    pub clients: usize,
    pub part: ClientShare,
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
    pub fn plain(target: Arc<Target>, workload: Arc<dyn Workload>, part: ClientShare, seeds: Seeds) -> Self {
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
    pub deal: TaskShare,
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
