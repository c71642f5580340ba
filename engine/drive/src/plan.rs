//! What to run: everything that the event loop needs to know, whichever front end it comes from.

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

/// One run of a load.
pub struct Plan {
    /// `None` if no program connects.
    pub target: Option<Arc<Target>>,
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
    /// Whether one client's end by an error ends the run.
    pub exit_on_abort: bool,
    pub seeds: Seeds,
    /// Whether the run ends with what the clients of a staged load do before their first transaction.
    pub is_command: bool,
    pub load: Load,
}

/// What clients do and when: a workload, and the plan of a mode that takes its actions.
pub struct Load {
    plan: Box<dyn ModePlan>,
    /// An `Arc<dyn Workload<_>>` with the actions of the mode.
    workload: Box<dyn Any + Send + Sync>,
    scripts: Vec<ScriptInfo>,
}

/// What the event loop and reports ask the plan of any mode.
pub trait ModePlan: Any + Send + Sync {
    /// The length of the measured part, if it is limited.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// The limits of transactions.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Mean time between the scheduled starts of two transactions of the whole run, nanoseconds, if the load has a rate.
    fn interval_ns(&self) -> Option<f64> {
        None
    }

    /// Whether transactions have scheduled starts: those of a rate, or recorded ones.
    fn has_schedule(&self) -> bool {
        self.interval_ns().is_some()
    }

    /// The flag of an alarm that ends the load early, if the load may have one.
    fn alarm(&self) -> Option<&AtomicBool> {
        None
    }

    /// pgbench's options for the transactions; sysbench and replays have none of them.
    fn options(&self) -> &ScriptOptions {
        &NO_OPTIONS
    }

    /// So many clients in a row are on one thread.
    fn unit(&self) -> usize {
        1
    }

    /// Whether statements are counted by their kinds.
    fn counts_queries(&self) -> bool {
        false
    }
}

/// The plan of a mode that is among those of [`crate::run`].
pub trait KnownPlan: ModePlan {
    /// The actions of its workloads.
    type Actions: Actions;
}

/// How many transactions a load has at most; `None` without such a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub of_each_client: Option<u64>,
    pub of_all_clients: Option<u64>,
}

impl Load {
    /// The load in which `workload` says what clients do, and `plan` when.
    pub fn new<P: KnownPlan>(workload: Arc<dyn Workload<P::Actions>>, plan: P) -> Self {
        Self { scripts: workload.scripts(), plan: Box::new(plan), workload: Box::new(workload) }
    }

    /// The plan of this mode, if the load has it.
    pub fn of<P: KnownPlan>(&self) -> Option<&P> {
        let plan: &dyn Any = &*self.plan;
        plan.downcast_ref()
    }

    /// As [`Load::of`], to change it.
    pub fn of_mut<P: KnownPlan>(&mut self) -> Option<&mut P> {
        let plan: &mut dyn Any = &mut *self.plan;
        plan.downcast_mut()
    }

    /// The workload, if the load has this mode.
    pub(crate) fn workload<P: KnownPlan>(&self) -> Option<&dyn Workload<P::Actions>> {
        self.workload.downcast_ref::<Arc<dyn Workload<P::Actions>>>().map(|workload| &**workload)
    }
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

impl Plan {
    /// One thread, simple queries, no warm-up.
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
            exit_on_abort: false,
            seeds,
            is_command: false,
            load,
        }
    }

    /// Descriptions of the workload's scripts in the order of their indexes.
    pub fn scripts(&self) -> &[ScriptInfo] {
        &self.load.scripts
    }

    /// What the plan of the load's mode says.
    pub fn mode_plan(&self) -> &dyn ModePlan {
        &*self.load.plan
    }

    /// The length of the measured part, if it is limited.
    pub fn duration(&self) -> Option<Duration> {
        self.mode_plan().time()
    }

    /// Mean time between the scheduled starts of two transactions of the whole run, nanoseconds, if the load has a rate.
    pub fn interval_ns(&self) -> Option<f64> {
        self.mode_plan().interval_ns()
    }

    /// pgbench's options for the transactions.
    pub fn options(&self) -> &ScriptOptions {
        self.mode_plan().options()
    }

    /// Whether each client has a thread of its own.
    pub fn is_spread(&self) -> bool {
        self.jobs == self.clients
    }
}
