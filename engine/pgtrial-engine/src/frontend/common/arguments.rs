//! The options of connection, load and output as a command line gives them, each checked by itself.

use std::path::PathBuf;
use std::time::Duration;

use super::pooling::PoolArguments;
use super::sharing::SliceArguments;
use crate::event::Events;
use drive::plan::ScriptOptions;
use drive::start_at::StartAt;
use ground::shard::Shard;
use wire::params::Given;
use wire::statement::QueryMode;

/// All options of a run. Counts are in pgbench's range 1..2147483647 unless said otherwise.
#[derive(Debug, Default)]
pub struct RunArguments {
    pub server: Given,
    pub load: LoadArguments,
    pub log: LogArguments,
    pub output: OutputOptions,
}

/// The options of the load.
#[derive(Debug, Default)]
pub struct LoadArguments {
    /// The number of clients of the whole run.
    pub clients: usize,
    pub jobs: usize,
    pub transactions: Option<u32>,
    /// The length of the measured part, seconds.
    pub duration: Option<u32>,
    pub seed: Seed,
    pub shard: Shard,
    pub slicing: SliceArguments,
    pub pooling: PoolArguments,
    pub settings: LoadSettings,
}

/// Those options of the load whose values a run uses unchanged.
#[derive(Debug, Clone, Default)]
pub struct LoadSettings {
    pub mode: QueryMode,
    /// True if executions of the extended protocol are sent without Describe.
    pub no_describe: bool,
    pub script: ScriptOptions,
    pub warmup: Duration,
    /// True if the time of the load runs while the clients connect. Always false for order entry.
    pub time_includes_connecting: bool,
    pub reconnect: bool,
    /// The mean time between the starts of two transactions, nanoseconds.
    pub interval_ns: Option<f64>,
    /// The time for which clients that lost their connection try to get another one.
    pub wait_for_server: Option<Duration>,
    pub exit_on_abort: bool,
    /// True if clients wait before or after their transactions (keying and think times). Always false for pgbench.
    pub thinks: bool,
    pub start: Option<StartAt>,
}

/// The seed of the run's random numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seed {
    pub number: u64,
    /// True if the seed was given as a number: all engines of a run then have the same one.
    pub is_given: bool,
}

/// The options of the transaction log.
#[derive(Debug, Default)]
pub struct LogArguments {
    pub is_on: bool,
    pub prefix: Option<String>,
    /// The share of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: Option<f64>,
    /// The length of the log's intervals, seconds.
    pub aggregate_interval: Option<u32>,
}

/// The options of what the run writes besides the log.
#[derive(Debug, Default)]
pub struct OutputOptions {
    pub failures_detailed: bool,
    /// The time between progress lines, seconds.
    pub progress: Option<u32>,
    pub progress_timestamp: bool,
    pub percentiles: bool,
    pub histogram: Option<PathBuf>,
    pub events: Option<Events>,
    /// The file for the statements that clients send.
    pub statements: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns true if events are written to standard output, so that nothing else may be written there.
    pub fn has_only_events(&self) -> bool {
        self.events == Some(Events::Stdout)
    }
}

impl RunArguments {
    /// Returns the arguments of a command line without options: one client of one thread, with this seed.
    pub fn new(seed: u64) -> Self {
        let seed = Seed { number: seed, is_given: false };
        Self { load: LoadArguments { clients: 1, jobs: 1, seed, ..LoadArguments::default() }, ..Self::default() }
    }
}

impl AsMut<Given> for RunArguments {
    fn as_mut(&mut self) -> &mut Given {
        &mut self.server
    }
}
