//! The values of pgbench's options.

use std::path::PathBuf;
use std::time::Duration;

use super::pooling::Pooling;
use crate::event::Events;
use crate::frontend::sharing::SliceOptions;
use drive::plan::{PoolPlan, ScriptOptions};
use drive::slices::Slices;
use drive::start_at::StartAt;
use ground::shard::{ClientShare, Shard};
use tables::{InitOptions, PartitionMethod};
use wire::params::Given;
use wire::statement::QueryMode;
use wire::value::Value;
use workload::pgbench::Parsed;

/// All options; counts are in pgbench's range 1..2147483647 unless said otherwise. [`Options::new`] has pgbench's defaults.
#[derive(Debug, Default)]
pub struct Options {
    pub server: Given,
    pub scale: Option<u32>,
    pub no_vacuum: bool,
    pub init: Initialization,

    pub scripts: Vec<Parsed>,
    /// Whether a built-in script is among them, which needs pgbench's tables.
    pub needs_tables: bool,
    /// Whether a script is read from standard input.
    pub reads_stdin: bool,
    /// Variables by name, each once.
    pub variables: Vec<(String, String)>,
    /// Variables that take a random value of a list in each transaction.
    pub lists: Vec<(String, Vec<Value>)>,
    /// Whether a variable without a value aborts its client.
    pub needs_values: bool,
    /// Whether the commands of the scripts are listed, and nothing is run.
    pub lists_commands: bool,
    pub mode: QueryMode,
    /// Whether executions of the extended protocol are sent without Describe.
    pub no_describe: bool,
    pub script: ScriptOptions,

    /// Clients of the whole run.
    pub clients: usize,
    pub jobs: usize,
    pub transactions: Option<u32>,
    /// Seconds.
    pub duration: Option<u32>,
    pub warmup: Duration,
    pub reconnect: bool,
    pub vacuum_all: bool,
    /// Mean time between the starts of two transactions.
    pub interval_ns: Option<f64>,
    /// How long clients that lost their connection try to get another one.
    pub wait_for_server: Option<Duration>,
    pub exit_on_abort: bool,
    /// Whether clients wait around their transactions; pgbench's never do.
    pub thinks: bool,
    pub seed: u64,
    /// Whether the seed is a number that was given: all engines of a run then have the same one.
    pub is_seeded: bool,
    pub shard: Shard,
    pub start: Option<StartAt>,
    pub slicing: SliceOptions,
    pub pooling: Pooling,

    pub log: LogOptions,
    pub output: OutputOptions,
    pub uses_additions: bool,

    /// Which of the whole run's clients this engine has; for pools, which of their connections. Follows from the options.
    pub part: ClientShare,
    /// Follows from `pooling` and the shard.
    pub pools: Option<PoolPlan>,
    /// Follows from `slicing`.
    pub slices: Option<Slices>,
}

/// What `-i` does.
#[derive(Debug, Default)]
pub struct Initialization {
    /// Whether the tables are to be made; otherwise a benchmark runs.
    pub is_asked_for: bool,
    /// The letters of `--init-steps`.
    pub steps: String,
    pub foreign_keys: bool,
    pub partition_method: Option<PartitionMethod>,
    pub tables: InitOptions,
}

/// The transaction log.
#[derive(Debug, Default)]
pub struct LogOptions {
    pub is_on: bool,
    pub prefix: Option<String>,
    /// Above 0 to 1.
    pub sampling_rate: Option<f64>,
    /// Seconds.
    pub aggregate_interval: Option<u32>,
}

/// What the run writes beside the log.
#[derive(Debug, Default)]
pub struct OutputOptions {
    pub failures_detailed: bool,
    /// Seconds between progress lines.
    pub progress: Option<u32>,
    pub progress_timestamp: bool,
    pub percentiles: bool,
    pub histogram: Option<PathBuf>,
    pub events: Option<Events>,
}

impl OutputOptions {
    /// Whether standard output belongs to the events: nothing else is written there.
    pub fn has_only_events(&self) -> bool {
        self.events == Some(Events::Stdout)
    }
}

impl Options {
    /// Those of a command line without options.
    pub fn new(seed: u64) -> Self {
        let init = Initialization { steps: "dtgvp".to_owned(), ..Initialization::default() };
        Self { init, clients: 1, jobs: 1, seed, ..Self::default() }
    }
}
