//! The plan of a run: everything that the event loop needs to know. Each front end (pgbench, sysbench and others)
//! translates its options to such a plan.

mod modes;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::slices::Slices;
use crate::start_at::StartAt;
use ground::shard::ClientShare;
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use workload::seeds::Seeds;
use workload::{ReplayActions, ScriptActions, ScriptInfo, StagedActions, Workload};

pub use modes::{Arrival, ClosedPlan, Limit, Notes, PoolPlan, ReplayPlan, ReplayTiming, ScriptOptions, StagedPlan};

/// The plan of one run of a load.
pub struct Plan {
    /// The server; `None` if no client connects to a server.
    pub target: Option<Arc<Target>>,
    /// The number of clients of this engine.
    pub clients: usize,
    /// The clients of the whole run that belong to this engine, if several engines share the run.
    pub part: ClientShare,
    /// The time at which the load begins. `None`: it begins as soon as the clients are ready.
    pub start: Option<StartAt>,
    /// The slices of time in which this engine's clients act, if several engines take turns. `start` is then set.
    pub slices: Option<Slices>,
    /// The number of threads, which is at most the number of clients.
    pub jobs: usize,
    pub mode: QueryMode,
    /// True if each execution in the extended protocol also sends Describe, to get the names and types of the columns,
    /// as libpq does.
    pub describes: bool,
    /// The format of results in the extended protocol.
    pub format: ResultFormat,
    /// The length of the warm-up before the measured part. Its transactions are counted separately.
    pub warmup: Duration,
    /// True if the time of the load begins when the clients begin to connect, as in pgbench. Used only without warm-up,
    /// planned start and slices.
    pub time_includes_connecting: bool,
    /// True if the whole run ends when an error aborts a client.
    pub exit_on_abort: bool,
    /// pgbench's options for transactions. sysbench and replays do not have these options, and keep the defaults.
    pub options: ScriptOptions,
    pub seeds: Seeds,
    /// True if the run is over once each client has executed the actions that come before its first transaction. This
    /// is used for sysbench's commands other than `run`.
    pub is_command: bool,
    pub load: Load,
}

/// The load: what the clients do, and when they do it.
pub struct Load {
    pub mode: LoadMode,
    scripts: Vec<ScriptInfo>,
}

/// The four modes of a load. Each has a plan, which says when the clients act, and a workload, whose programs say what
/// the clients do.
pub enum LoadMode {
    /// A closed loop: the client of a script starts its next transaction when its last one has ended or, with a rate,
    /// at its scheduled time.
    Closed(ClosedPlan, Arc<dyn Workload<ScriptActions>>),
    /// sysbench's load: programs connect by themselves, and act before their first transaction and after their last.
    Staged(StagedPlan, Arc<dyn Workload<StagedActions>>),
    /// Tasks of applications that share bounded connection pools.
    Pooled(PoolPlan, Arc<dyn Workload<ScriptActions>>),
    /// Recorded sessions that are run again.
    Replayed(ReplayPlan, Arc<dyn Workload<ReplayActions>>),
}

/// The limits for the number of transactions of a load; `None` without such a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub of_each_client: Option<u64>,
    pub of_all_clients: Option<u64>,
}

impl Load {
    /// Makes a load whose clients run scripts in a closed loop.
    pub fn closed(workload: Arc<dyn Workload<ScriptActions>>, plan: ClosedPlan) -> Self {
        Self { scripts: workload.scripts(), mode: LoadMode::Closed(plan, workload) }
    }

    /// Makes a load that follows sysbench's rules.
    pub fn staged(workload: Arc<dyn Workload<StagedActions>>, plan: StagedPlan) -> Self {
        Self { scripts: workload.scripts(), mode: LoadMode::Staged(plan, workload) }
    }

    /// Makes a load of tasks, which run scripts on the connections of pools.
    pub fn pooled(workload: Arc<dyn Workload<ScriptActions>>, plan: PoolPlan) -> Self {
        Self { scripts: workload.scripts(), mode: LoadMode::Pooled(plan, workload) }
    }

    /// Makes a load that replays recorded sessions.
    pub fn replayed(workload: Arc<dyn Workload<ReplayActions>>, plan: ReplayPlan) -> Self {
        Self { scripts: workload.scripts(), mode: LoadMode::Replayed(plan, workload) }
    }

    /// Returns the length of the measured part, or `None` without a limit.
    pub fn time(&self) -> Option<Duration> {
        match &self.mode {
            LoadMode::Closed(ClosedPlan { limit: Limit::Time(time), .. }, _) => Some(*time),
            LoadMode::Closed(..) | LoadMode::Pooled(..) => None,
            LoadMode::Staged(staged, _) => staged.time,
            LoadMode::Replayed(replay, _) => replay.time,
        }
    }

    /// Returns the limits for the number of transactions.
    pub fn limits(&self) -> Limits {
        let (of_each_client, of_all_clients) = match &self.mode {
            LoadMode::Closed(ClosedPlan { limit: Limit::Transactions(each), .. }, _) => (Some(*each), None),
            LoadMode::Closed(..) | LoadMode::Replayed(..) => (None, None),
            LoadMode::Staged(staged, _) => (staged.events_each, staged.events),
            LoadMode::Pooled(pools, _) => (None, Some(pools.all_tasks())),
        };
        Limits { of_each_client, of_all_clients }
    }

    /// Returns the mean time between the scheduled starts of two transactions of the whole run, in nanoseconds, or
    /// `None` without a rate.
    pub fn interval_ns(&self) -> Option<f64> {
        match &self.mode {
            LoadMode::Closed(closed, _) => closed.interval_ns,
            LoadMode::Staged(staged, _) => staged.interval_ns,
            LoadMode::Pooled(..) | LoadMode::Replayed(..) => None,
        }
    }

    /// Returns true if transactions have scheduled starts, because the load has a rate or because it replays recorded
    /// times.
    pub fn has_schedule(&self) -> bool {
        match &self.mode {
            LoadMode::Replayed(replay, _) => replay.timing.has_schedule(),
            LoadMode::Closed(..) | LoadMode::Staged(..) | LoadMode::Pooled(..) => self.interval_ns().is_some(),
        }
    }

    /// Returns the flag that a signal handler sets at SIGALRM to end the load early, or `None` if the load cannot be
    /// ended in this way.
    pub fn alarm(&self) -> Option<&AtomicBool> {
        match &self.mode {
            LoadMode::Closed(closed, _) => closed.alarm.as_deref(),
            LoadMode::Staged(..) | LoadMode::Pooled(..) | LoadMode::Replayed(..) => None,
        }
    }

    /// Returns the plan of the connection pools; `None` if the load has none.
    pub fn pools(&self) -> Option<&PoolPlan> {
        match &self.mode {
            LoadMode::Pooled(pools, _) => Some(pools),
            LoadMode::Closed(..) | LoadMode::Staged(..) | LoadMode::Replayed(..) => None,
        }
    }

    /// Returns the plan of the replay; `None` if the load is no replay.
    pub(crate) fn replay(&self) -> Option<&ReplayPlan> {
        match &self.mode {
            LoadMode::Replayed(replay, _) => Some(replay),
            LoadMode::Closed(..) | LoadMode::Staged(..) | LoadMode::Pooled(..) => None,
        }
    }

    /// Returns true if each transaction uses a connection of its own (`--connect`).
    pub fn reconnects(&self) -> bool {
        match &self.mode {
            LoadMode::Closed(closed, _) => closed.reconnect,
            LoadMode::Staged(..) | LoadMode::Pooled(..) | LoadMode::Replayed(..) => false,
        }
    }

    /// Returns true if clients wait for a think time before their transactions.
    pub fn thinks(&self) -> bool {
        match &self.mode {
            LoadMode::Closed(closed, _) => closed.thinks,
            LoadMode::Staged(..) | LoadMode::Pooled(..) | LoadMode::Replayed(..) => false,
        }
    }

    /// Returns true if the load's queries are counted by their kinds (reads, writes, others), as sysbench does.
    pub fn counts_queries(&self) -> bool {
        match &self.mode {
            LoadMode::Staged(..) | LoadMode::Replayed(..) => true,
            LoadMode::Closed(..) | LoadMode::Pooled(..) => false,
        }
    }
}

impl Plan {
    /// Makes a plan with one thread, the simple query protocol and no warm-up.
    pub fn new(target: Option<Arc<Target>>, part: ClientShare, seeds: Seeds, load: Load) -> Self {
        Self {
            target,
            clients: part.clients(),
            part,
            start: None,
            slices: None,
            jobs: 1,
            mode: QueryMode::Simple,
            describes: true,
            format: ResultFormat::Text,
            warmup: Duration::ZERO,
            time_includes_connecting: false,
            exit_on_abort: false,
            options: ScriptOptions::default(),
            seeds,
            is_command: false,
            load,
        }
    }

    /// Returns the descriptions of the workload's scripts, in the order of their indexes.
    pub fn scripts(&self) -> &[ScriptInfo] {
        &self.load.scripts
    }

    /// Returns the length of the measured part, or `None` without a limit.
    pub fn duration(&self) -> Option<Duration> {
        self.load.time()
    }

    /// Returns the mean time between the scheduled starts of two transactions of the whole run, in nanoseconds, or
    /// `None` without a rate.
    pub fn interval_ns(&self) -> Option<f64> {
        self.load.interval_ns()
    }

    /// Returns true if each client has a thread of its own.
    pub fn is_spread(&self) -> bool {
        self.jobs == self.clients
    }
}
