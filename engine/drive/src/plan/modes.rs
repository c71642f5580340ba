//! The part of a plan that only one mode of the load has, and pgbench's options for transactions. The mode decides when
//! the transactions of the load start.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::statistics::log::LogPlan;
use ground::clock::Nanos;
use ground::shard::TaskShare;
use workload::recorded::Micros;

/// The plan of a closed loop, as in pgbench: each client starts its next transaction when its last one has ended or,
/// with a rate, at its scheduled time.
#[derive(Debug, Clone)]
pub struct ClosedPlan {
    pub limit: Limit,
    /// A flag that is set when an alarm (SIGALRM) ends the load early. `None` if the load has no such alarm.
    pub alarm: Option<Arc<AtomicBool>>,
    /// The mean time between the scheduled starts of two transactions of the whole run, in nanoseconds. `None` without
    /// a rate.
    pub interval_ns: Option<f64>,
    /// True if each transaction uses a connection of its own (`--connect`).
    pub reconnect: bool,
    /// The time for which a client that has lost its connection tries to connect again (`--wait-for-server`). `None`:
    /// the client ends at once.
    pub wait_for_server: Option<Duration>,
    /// True if clients wait for a think time before their transactions; their programs determine it. Used only without
    /// a rate.
    pub thinks: bool,
}

/// The limit of a closed loop: a number of transactions for each client, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The run ends when each client has run this number of transactions.
    Transactions(u64),
    /// The duration of the measured part. Transactions that are under way at its end are finished.
    Time(Duration),
}

/// The plan of sysbench's load, in which programs connect by themselves, and act before their first transaction and
/// after their last one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StagedPlan {
    /// The number of transactions that all clients run together; `None` without a limit.
    pub events: Option<u64>,
    /// The number of transactions that each client runs; `None` without a limit.
    pub events_each: Option<u64>,
    /// The length of the measured part, unless the transactions are used up before. `None` without a limit.
    pub time: Option<Duration>,
    /// The mean time between the scheduled starts of two transactions of the whole run, in nanoseconds. `None` without
    /// a rate.
    pub interval_ns: Option<f64>,
    /// The maximum number of transactions of this engine that may wait for a client. If more of them wait, the run ends
    /// with an error. Used only with a rate.
    pub longest_queue: Option<u64>,
}

/// The plan of a load that consists of applications. Each application has tasks that arrive by a schedule, and a
/// bounded pool of connections that its tasks share. The run ends with the last task. If several engines share the
/// tasks of a single application, the numbers of tasks and connections are those of this engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolPlan {
    pub apps: usize,
    pub tasks: u32,
    /// The schedule by which the tasks of the whole run arrive.
    pub arrival: Arrival,
    /// The maximum number of connections of each pool.
    pub size: usize,
    /// The time after which a task fails if it has got no connection.
    pub timeout: Duration,
    /// The age at which a connection is closed and replaced by a new one before another task gets it.
    pub lifetime: Option<Duration>,
    /// The tasks and connections of the whole run that belong to this engine.
    pub task_share: TaskShare,
}

impl PoolPlan {
    /// Returns the number of tasks of all applications together.
    pub fn all_tasks(&self) -> u64 {
        self.apps as u64 * u64::from(self.tasks)
    }
}

/// The schedule by which an application's tasks arrive; rates are in tasks per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    AtOnce,
    /// Tasks arrive at equal distances in time.
    Rate(f64),
    /// Tasks arrive at the moments of a Poisson process.
    Poisson(f64),
}

/// Writes the schedule in the syntax of the command-line option.
impl std::fmt::Display for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arrival::AtOnce => f.write_str("at-once"),
            Arrival::Rate(rate) => write!(f, "{rate}"),
            Arrival::Poisson(rate) => write!(f, "poisson:{rate}"),
        }
    }
}

/// The plan of a replay of recorded sessions. A client runs one session after the other, and each statement counts as a
/// transaction.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    pub timing: ReplayTiming,
    /// The time after which no transaction begins. Transactions that are under way then are finished without the
    /// recorded pauses. `None`: the load ends with its last session.
    pub time: Option<Duration>,
    /// The names that messages show for the statement templates, in the order in which the results list the templates.
    pub accounts: Arc<[String]>,
}

/// The rule by which recorded statements start in the replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayTiming {
    /// Statements start at their recorded times divided by `speed`, whether or not the server keeps up.
    Recorded { speed: f64 },
    /// Each statement starts when the statement before it in its session has ended.
    BackToBack,
}

impl ReplayTiming {
    /// Converts a time of the recording to a time of a replay that began at `began`. Returns `None` if statements run
    /// back to back.
    pub fn moment(self, began: Nanos, at: Micros) -> Option<Nanos> {
        self.has_schedule().then(|| began.saturating_add(self.length(at)))
    }

    /// Converts a recorded duration to a duration in the replay. If statements run back to back, the duration stays the
    /// same.
    pub fn length(self, recorded: Micros) -> Nanos {
        let speed = match self {
            Self::Recorded { speed } => speed,
            Self::BackToBack => 1.0,
        };
        (recorded as f64 * 1000.0 / speed) as Nanos
    }

    /// Returns true if statements start at their recorded times, and false if they run back to back.
    pub fn has_schedule(self) -> bool {
        matches!(self, Self::Recorded { .. })
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

/// pgbench's defaults: each transaction is tried once, commands are not timed, and there is no log and no debugging
/// output.
impl Default for ScriptOptions {
    fn default() -> Self {
        Self {
            timed_commands: false,
            latency_limit: None,
            tries: Some(1),
            continue_on_error: false,
            log: None,
            notes: Notes::default(),
            program: "",
        }
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
