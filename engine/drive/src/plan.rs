//! What to run: everything that the event loop needs to know, whichever front end it comes from.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::ledger::log::LogPlan;
use crate::slices::Slices;
use crate::start_at::StartAt;
use ground::shard::{ClientShare, TaskShare};
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use workload::Workload;
use workload::seeds::Seeds;

/// One run of a load.
pub struct Plan {
    /// `None` if no program connects.
    pub target: Option<Arc<Target>>,
    pub workload: Arc<dyn Workload>,
    /// The clients of this engine, and which of the whole run's they are.
    pub clients: usize,
    pub part: ClientShare,
    /// When the load begins; `None`: as soon as the clients are ready.
    pub start: Option<StartAt>,
    /// When this engine's clients act, if it takes turns with others; its load then has a planned start.
    pub slices: Option<Slices>,
    /// Threads; at most as many as clients.
    pub jobs: usize,
    pub mode: QueryMode,
    /// Whether each execution of the extended protocol asks for the columns' names and types, as libpq does.
    pub describes: bool,
    /// The format of results in the extended protocol.
    pub format: ResultFormat,
    /// Load before the measured part; its transactions are counted apart.
    pub warmup: Duration,
    /// Set when the time of the load is over early (SIGALRM).
    pub alarm: Option<Arc<AtomicBool>>,
    /// Whether one client's end by an error ends the run.
    pub exit_on_abort: bool,
    pub seeds: Seeds,
    /// Whether the run ends with what the clients of a staged load do before their first transaction.
    pub is_command: bool,
    pub load: Load,
}

/// When clients act, with what only this mode of the load needs.
pub enum Load {
    Closed(ClosedPlan),
    Staged(StagedPlan),
    Pooled(PoolPlan, ScriptOptions),
    Replayed(ReplayPlan),
}

/// A closed loop, as in pgbench: each client starts its next transaction when the former one has ended or, with a rate,
/// at its scheduled time.
#[derive(Debug, Clone)]
pub struct ClosedPlan {
    pub limit: Limit,
    /// Mean time between the scheduled starts of two transactions of the whole run, nanoseconds; `None` without a rate.
    pub interval_ns: Option<f64>,
    /// Whether each transaction has a connection of its own (`--connect`).
    pub reconnect: bool,
    /// How long a client that has lost its connection tries to get another one; `None`: it is given up.
    pub wait_for_server: Option<Duration>,
    /// Whether clients wait before their transactions, as their programs say; without a rate.
    pub thinks: bool,
    pub options: ScriptOptions,
}

/// sysbench's load: programs connect by themselves, and act before their first transaction and after the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StagedPlan {
    /// All clients together run so many transactions.
    pub events: Option<u64>,
    /// Each client runs so many.
    pub events_each: Option<u64>,
    /// The measured part takes so long, unless the events are done before.
    pub time: Option<Duration>,
    /// Mean time between the scheduled starts of two transactions of the whole run, nanoseconds; `None` without a rate.
    pub interval_ns: Option<f64>,
    /// With a rate: the run ends with an error if more transactions of this engine wait for a client.
    pub longest_queue: Option<u64>,
}

/// Applications, each with tasks that arrive by a schedule and share a bounded pool of connections; the run ends with the
/// last task. Numbers are of each application, and of this engine's part of it.
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

/// Recorded sessions; a client runs one after the other, and each of their statements counts as a transaction.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    pub pace: ReplayPace,
    /// No transaction begins later; those under way are finished without pauses. `None`: the load ends with its last session.
    pub time: Option<Duration>,
    /// What messages call the statements of each account.
    pub accounts: Arc<[String]>,
}

/// When recorded statements start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayPace {
    /// At their recorded times divided by this, whether or not the server keeps up.
    Recorded { speed: f64 },
    /// Each when the one before it in its session has ended.
    BackToBack,
}

/// pgbench's options for the transactions of scripts.
#[derive(Debug, Clone)]
pub struct ScriptOptions {
    /// Whether each command is timed.
    pub timed_commands: bool,
    /// Transactions that take longer are late; with a rate, those that are late before they start are skipped.
    pub latency_limit: Option<Duration>,
    /// How often a transaction is tried after serialization failures and deadlocks; `None` without limit.
    pub tries: Option<u32>,
    /// Whether a client goes on after other errors of its statements.
    pub continue_on_error: bool,
    pub log: Option<LogPlan>,
    pub notes: Notes,
    /// The program's name, with which lines begin that threads write themselves.
    pub program: &'static str,
}

/// One try, nothing timed, logged or noted.
static NO_OPTIONS: ScriptOptions = ScriptOptions {
    timed_commands: false,
    latency_limit: None,
    tries: Some(1),
    continue_on_error: false,
    log: None,
    notes: Notes { failures: false, steps: false },
    program: "",
};

impl Default for ScriptOptions {
    fn default() -> Self {
        NO_OPTIONS.clone()
    }
}

/// What is written of each client while the run goes on, by its thread: so it keeps its place among what the server and
/// scripts write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// Errors that are retried or counted.
    pub failures: bool,
    /// Every step.
    pub steps: bool,
}

/// When the run of a closed loop ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Each client runs so many transactions.
    Transactions(u64),
    /// The measured part takes so long; transactions under way at its end are finished.
    Time(Duration),
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

impl Plan {
    /// One thread, simple queries, no warm-up.
    pub fn new(
        target: Option<Arc<Target>>,
        workload: Arc<dyn Workload>,
        part: ClientShare,
        seeds: Seeds,
        load: Load,
    ) -> Self {
        Self {
            target,
            workload,
            clients: part.clients(),
            part,
            start: None,
            slices: None,
            jobs: 1,
            mode: QueryMode::Simple,
            describes: true,
            format: ResultFormat::Text,
            warmup: Duration::ZERO,
            alarm: None,
            exit_on_abort: false,
            seeds,
            is_command: false,
            load,
        }
    }

    /// The length of the measured part, if it is limited.
    pub fn duration(&self) -> Option<Duration> {
        match &self.load {
            Load::Closed(ClosedPlan { limit: Limit::Time(length), .. }) => Some(*length),
            Load::Staged(staged) => staged.time,
            Load::Replayed(replay) => replay.time,
            Load::Closed(ClosedPlan { limit: Limit::Transactions(_), .. }) | Load::Pooled(..) => None,
        }
    }

    /// Mean time between the scheduled starts of two transactions of the whole run, nanoseconds, if the load has a rate.
    pub fn interval_ns(&self) -> Option<f64> {
        match &self.load {
            Load::Closed(closed) => closed.interval_ns,
            Load::Staged(staged) => staged.interval_ns,
            Load::Pooled(..) | Load::Replayed(_) => None,
        }
    }

    /// Whether transactions have scheduled starts: those of a rate, or recorded ones.
    pub fn has_schedule(&self) -> bool {
        self.interval_ns().is_some() || self.replay().is_some_and(ReplayPlan::has_schedule)
    }

    /// Whether each client has a thread of its own.
    pub fn is_spread(&self) -> bool {
        self.jobs == self.clients
    }

    /// Whether each transaction has a connection of its own.
    pub fn reconnect(&self) -> bool {
        matches!(&self.load, Load::Closed(closed) if closed.reconnect)
    }

    /// The pools, if clients are the slots of some.
    pub fn pools(&self) -> Option<&PoolPlan> {
        match &self.load {
            Load::Pooled(pools, _) => Some(pools),
            Load::Closed(_) | Load::Staged(_) | Load::Replayed(_) => None,
        }
    }

    /// The replay, if the load is one.
    pub fn replay(&self) -> Option<&ReplayPlan> {
        match &self.load {
            Load::Replayed(replay) => Some(replay),
            Load::Closed(_) | Load::Staged(_) | Load::Pooled(..) => None,
        }
    }

    /// pgbench's options for the transactions; sysbench and replays have none of them.
    pub fn options(&self) -> &ScriptOptions {
        match &self.load {
            Load::Closed(ClosedPlan { options, .. }) | Load::Pooled(_, options) => options,
            Load::Staged(_) | Load::Replayed(_) => &NO_OPTIONS,
        }
    }
}

impl ReplayPlan {
    /// Whether statements start at their recorded times.
    pub fn has_schedule(&self) -> bool {
        matches!(self.pace, ReplayPace::Recorded { .. })
    }
}

impl PoolPlan {
    /// The tasks of all applications.
    pub fn all_tasks(&self) -> u64 {
        self.apps as u64 * u64::from(self.tasks)
    }
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
