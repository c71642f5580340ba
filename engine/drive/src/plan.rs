//! The plan of a run: everything that the event loop needs to know, whichever front end it comes from.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::ledger::log::LogPlan;
use crate::slices::Slices;
use crate::start_at::StartAt;
use ground::shard::ClientShare;
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use workload::seeds::Seeds;
use workload::{Actions, ScriptInfo, Workload};

/// The plan of one run of a load.
pub struct Plan {
    /// The server; `None` if no program connects.
    pub target: Option<Arc<Target>>,
    /// The number of clients of this engine, and which of the whole run's clients they are.
    pub clients: usize,
    pub part: ClientShare,
    /// The time at which the load begins; `None`: as soon as the clients are ready.
    pub start: Option<StartAt>,
    /// The slices in which this engine's clients act, if it takes turns with others. Its load then has a planned start.
    pub slices: Option<Slices>,
    /// The number of threads, at most the number of clients.
    pub jobs: usize,
    pub mode: QueryMode,
    /// True if each execution in the extended protocol sends Describe to get the columns' names and types, as libpq
    /// does.
    pub describes: bool,
    /// The format of results in the extended protocol.
    pub format: ResultFormat,
    /// The duration of the load before the measured part. Its transactions are counted separately.
    pub warmup: Duration,
    /// True if the time of the load runs while the clients connect, as in pgbench. Used without warm-up, planned start
    /// and slices.
    pub time_includes_connecting: bool,
    /// True if an error that ends one client ends the run.
    pub exit_on_abort: bool,
    pub seeds: Seeds,
    /// True if the run is over once each client has executed the actions that come before its first transaction, as for
    /// sysbench's commands other than `run`.
    pub is_command: bool,
    pub load: Load,
}

/// The load, which says what clients do and when: a workload, and the plan of a mode that takes its actions.
pub struct Load {
    plan: Box<dyn ModePlan>,
    /// An `Arc<dyn Workload<_>>` with the actions of the mode.
    workload: Box<dyn Any + Send + Sync>,
    scripts: Vec<ScriptInfo>,
}

/// The part of a plan that belongs to one mode, as far as the event loop and the reports need to know it in every mode.
pub trait ModePlan: Any + Send + Sync {
    /// Returns the length of the measured part, if it is limited.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Returns the limits of the number of transactions.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Returns the mean time between the scheduled starts of two transactions of the whole run, nanoseconds, if the
    /// load has a rate.
    fn interval_ns(&self) -> Option<f64> {
        None
    }

    /// Returns true if transactions have scheduled starts: those of a rate, or recorded ones.
    fn has_schedule(&self) -> bool {
        self.interval_ns().is_some()
    }

    /// Returns the flag of an alarm that ends the load early, if the load may have one.
    fn alarm(&self) -> Option<&AtomicBool> {
        None
    }

    /// Returns pgbench's options for the transactions. sysbench and replays have none of them.
    fn options(&self) -> &ScriptOptions {
        &NO_OPTIONS
    }

    /// Returns the size of the groups of consecutive clients that must share a thread, such as the connections of one
    /// pool.
    fn unit(&self) -> usize {
        1
    }

    /// Returns true if statements are counted by their kinds.
    fn counts_queries(&self) -> bool {
        false
    }
}

/// The plan of a mode that is among those of [`crate::run`].
pub trait KnownPlan: ModePlan {
    /// The actions of the mode's workloads.
    type Actions: Actions;
}

/// The greatest number of transactions of a load; `None` without such a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub of_each_client: Option<u64>,
    pub of_all_clients: Option<u64>,
}

impl Load {
    /// Makes a load from a workload, which determines what clients do, and a plan, which determines when they do it.
    pub fn new<P: KnownPlan>(workload: Arc<dyn Workload<P::Actions>>, plan: P) -> Self {
        Self { scripts: workload.scripts(), plan: Box::new(plan), workload: Box::new(workload) }
    }

    /// Returns the part of the plan that belongs to the mode with the plan type `P`, if that is the load's mode.
    pub fn of<P: KnownPlan>(&self) -> Option<&P> {
        let plan: &dyn Any = &*self.plan;
        plan.downcast_ref()
    }

    /// Returns a mutable reference to the part of the plan that belongs to the mode with the plan type `P`, if that is
    /// the load's mode.
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
    /// True if each command is timed.
    pub timed_commands: bool,
    /// Transactions that take longer are late; with a rate, those that are late before they start are skipped.
    pub latency_limit: Option<Duration>,
    /// The number of tries of a transaction after serialization failures and deadlocks; `None` without limit.
    pub tries: Option<u32>,
    /// True if a client goes on after other errors of its statements.
    pub continue_on_error: bool,
    pub log: Option<LogPlan>,
    pub notes: Notes,
    /// The program's name, with which lines begin that threads write themselves.
    pub program: &'static str,
}

/// The values of pgbench's options for loads that do not have these options: one try for each transaction, and no
/// timing of commands, no log and no debugging output.
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

/// The debugging lines that are printed about each client during the run. The client's thread prints them, so that they
/// are in the right order among the messages of the server and the output of scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// True if errors that are retried or counted are written.
    pub failures: bool,
    /// True if every step is written.
    pub steps: bool,
}

impl Plan {
    /// Makes a plan with one thread, simple queries and no warm-up.
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

    /// Returns descriptions of the workload's scripts in the order of their indexes.
    pub fn scripts(&self) -> &[ScriptInfo] {
        &self.load.scripts
    }

    /// Returns the plan of the load's mode.
    pub fn mode_plan(&self) -> &dyn ModePlan {
        &*self.load.plan
    }

    /// Returns the length of the measured part, if it is limited.
    pub fn duration(&self) -> Option<Duration> {
        self.mode_plan().time()
    }

    /// Returns the mean time between the scheduled starts of two transactions of the whole run, nanoseconds, if the
    /// load has a rate.
    pub fn interval_ns(&self) -> Option<f64> {
        self.mode_plan().interval_ns()
    }

    /// Returns pgbench's options for the transactions.
    pub fn options(&self) -> &ScriptOptions {
        self.mode_plan().options()
    }

    /// Returns true if each client has a thread of its own.
    pub fn is_spread(&self) -> bool {
        self.jobs == self.clients
    }
}
