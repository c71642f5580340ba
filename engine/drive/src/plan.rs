//! The plan of a run: everything that the event loop needs to know. Each front end (pgbench, sysbench and others)
//! translates its options to such a plan.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::slices::Slices;
use crate::start_at::StartAt;
use crate::statistics::log::LogPlan;
use ground::shard::ClientShare;
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use workload::seeds::Seeds;
use workload::{Actions, ScriptInfo, Workload};

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
    pub seeds: Seeds,
    /// True if the run is over once each client has executed the actions that come before its first transaction. This
    /// is used for sysbench's commands other than `run`.
    pub is_command: bool,
    pub load: Load,
}

/// The load. Its workload says what clients do, and the plan of its mode says when they do it.
pub struct Load {
    plan: Box<dyn ModePlan>,
    /// The workload, stored as an `Arc<dyn Workload<A>>` whose type is erased. `A` are the actions of the load's mode.
    workload: Box<dyn Any + Send + Sync>,
    scripts: Vec<ScriptInfo>,
}

/// The part of a plan that only one mode of the load has. Its methods give the event loop and the reports the facts
/// that they need from the plan of any mode.
pub trait ModePlan: Any + Send + Sync {
    /// Returns the length of the measured part, or `None` without a limit.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Returns the limits for the number of transactions.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Returns the mean time between the scheduled starts of two transactions of the whole run, in nanoseconds, or
    /// `None` without a rate.
    fn interval_ns(&self) -> Option<f64> {
        None
    }

    /// Returns true if transactions have scheduled starts, because the load has a rate or because it replays recorded
    /// times.
    fn has_schedule(&self) -> bool {
        self.interval_ns().is_some()
    }

    /// Returns the flag that a signal handler sets at SIGALRM to end the load early, or `None` if the load cannot be
    /// ended in this way.
    fn alarm(&self) -> Option<&AtomicBool> {
        None
    }

    /// Returns pgbench's options for transactions. sysbench and replays do not have these options.
    fn options(&self) -> &ScriptOptions {
        &NO_OPTIONS
    }

    /// Returns the size of the groups of consecutive clients that must run in one thread, such as the connections of
    /// one pool.
    fn unit(&self) -> usize {
        1
    }

    /// Returns true if the load's queries are counted by their kinds (reads, writes, others), as sysbench does.
    fn counts_queries(&self) -> bool {
        false
    }
}

/// The plan of a mode that is in the list of modes in [`mod@crate::run`].
pub trait KnownPlan: ModePlan {
    /// The actions that the programs of the mode's workloads can ask for.
    type Actions: Actions;
}

/// The limits for the number of transactions of a load; `None` without such a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub of_each_client: Option<u64>,
    pub of_all_clients: Option<u64>,
}

impl Load {
    /// Makes a load from a workload, which says what clients do, and from the plan of a mode, which says when they do
    /// it.
    pub fn new<P: KnownPlan>(workload: Arc<dyn Workload<P::Actions>>, plan: P) -> Self {
        Self { scripts: workload.scripts(), plan: Box::new(plan), workload: Box::new(workload) }
    }

    /// Returns the plan of the load's mode, if that mode has the plan type `P`.
    pub fn of<P: KnownPlan>(&self) -> Option<&P> {
        let plan: &dyn Any = &*self.plan;
        plan.downcast_ref()
    }

    /// Returns a mutable reference to the plan of the load's mode, if that mode has the plan type `P`.
    pub fn of_mut<P: KnownPlan>(&mut self) -> Option<&mut P> {
        let plan: &mut dyn Any = &mut *self.plan;
        plan.downcast_mut()
    }

    /// Returns the workload, if the load's mode has the plan type `P`.
    pub(crate) fn workload<P: KnownPlan>(&self) -> Option<&dyn Workload<P::Actions>> {
        self.workload.downcast_ref::<Arc<dyn Workload<P::Actions>>>().map(|workload| &**workload)
    }
}

/// pgbench's options for the transactions of scripts.
#[derive(Debug, Clone)]
pub struct ScriptOptions {
    /// True if the time of each command is measured.
    pub timed_commands: bool,
    /// The latency limit. Transactions that take longer are counted as late. With a rate, transactions that are already
    /// late before they start are skipped.
    pub latency_limit: Option<Duration>,
    /// The maximum number of tries of a transaction that meets serialization failures or deadlocks, including the first
    /// try; `None` without a limit.
    pub tries: Option<u32>,
    /// True if a client goes on with its next transaction after an error that is neither a serialization failure nor a
    /// deadlock. False if such an error aborts the client.
    pub continue_on_error: bool,
    pub log: Option<LogPlan>,
    pub notes: Notes,
    /// The program's name. The lines that threads print by themselves begin with it.
    pub program: &'static str,
}

/// The values of pgbench's options for loads that do not have these options: each transaction is tried once, commands
/// are not timed, and there is no log and no debugging output.
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

/// The debugging lines that are printed about each client during the run. The client's thread prints them itself, so
/// that they are in the right order among the server's messages and the output of scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// True if errors are printed after which a transaction is retried or counted as failed.
    pub failures: bool,
    /// True if every step of a client is printed.
    pub steps: bool,
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
            seeds,
            is_command: false,
            load,
        }
    }

    /// Returns the descriptions of the workload's scripts, in the order of their indexes.
    pub fn scripts(&self) -> &[ScriptInfo] {
        &self.load.scripts
    }

    /// Returns the plan of the load's mode, with its type erased.
    pub fn mode_plan(&self) -> &dyn ModePlan {
        &*self.load.plan
    }

    /// Returns the length of the measured part, or `None` without a limit.
    pub fn duration(&self) -> Option<Duration> {
        self.mode_plan().time()
    }

    /// Returns the mean time between the scheduled starts of two transactions of the whole run, in nanoseconds, or
    /// `None` without a rate.
    pub fn interval_ns(&self) -> Option<f64> {
        self.mode_plan().interval_ns()
    }

    /// Returns pgbench's options for transactions.
    pub fn options(&self) -> &ScriptOptions {
        self.mode_plan().options()
    }

    /// Returns true if each client has a thread of its own.
    pub fn is_spread(&self) -> bool {
        self.jobs == self.clients
    }
}
