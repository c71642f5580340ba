//! The options for the connection, the load and the output, as a command line gives them. Each value has been checked
//! by itself, but not whether the options fit together. The module `options` does that check.

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

/// All options of a run. Numbers of clients, threads, transactions and seconds are from 1 to 2147483647, as in pgbench,
/// unless a field says otherwise.
#[derive(Debug, Default)]
pub struct RunArguments {
    pub server: Given,
    pub load: LoadArguments,
    pub log: LogArguments,
    pub output: OutputOptions,
}

/// The options that determine the load.
#[derive(Debug, Default)]
pub struct LoadArguments {
    /// The number of clients of the whole run, also if several engines share the run.
    pub clients: usize,
    pub jobs: usize,
    pub transactions: Option<u32>,
    /// The length of the measured part, in seconds.
    pub duration: Option<u32>,
    pub seed: Seed,
    pub shard: Shard,
    pub slicing: SliceArguments,
    pub pooling: PoolArguments,
    pub settings: LoadSettings,
}

/// Options of the load whose values need no further check: the plan of the run contains them unchanged.
#[derive(Debug, Clone, Default)]
pub struct LoadSettings {
    pub mode: QueryMode,
    /// True if executions in the extended protocol are sent without Describe, so that the server does not send the
    /// columns of results. If false, Describe is sent, as libpq does.
    pub no_describe: bool,
    pub script: ScriptOptions,
    pub warmup: Duration,
    /// True if the time limit of the load already runs while the clients connect, as in pgbench. If false, the time
    /// begins when all clients are connected. Always false for order entry.
    pub time_includes_connecting: bool,
    pub reconnect: bool,
    /// The mean time between the scheduled starts of two transactions of the whole run, in nanoseconds. `None` without
    /// a rate limit.
    pub interval_ns: Option<f64>,
    /// The time for which a client that has lost its connection tries to connect again. `None` if the client is aborted
    /// at once.
    pub wait_for_server: Option<Duration>,
    pub exit_on_abort: bool,
    /// True if clients wait before and after each transaction, as people at terminals do (the keying and think times of
    /// TPC-C). Always false for pgbench.
    pub thinks: bool,
    pub start: Option<StartAt>,
}

/// The seed of the run's random numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seed {
    pub number: u64,
    /// True if the user gave the seed as a number. If false, it was drawn at random, and engines that share a run would
    /// have different seeds.
    pub is_given: bool,
}

/// The options of the transaction log.
#[derive(Debug, Default)]
pub struct LogArguments {
    pub is_on: bool,
    pub prefix: Option<String>,
    /// The fraction of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: Option<f64>,
    /// The length of the intervals for which the log contains totals, in seconds. `None` if the log has a line for each
    /// transaction.
    pub aggregate_interval: Option<u32>,
}

/// The options for the output of a run, except the transaction log.
#[derive(Debug, Default)]
pub struct OutputOptions {
    pub failures_detailed: bool,
    /// The time between progress lines, in seconds.
    pub progress: Option<u32>,
    pub progress_timestamp: bool,
    pub percentiles: bool,
    pub histogram: Option<PathBuf>,
    pub events: Option<Events>,
    /// The file to which pgtrial writes the statements that its clients send to the server (`--list-statements`).
    pub statements: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns true if the events are written to standard output. Reports and other texts must then not be written
    /// there.
    pub fn has_only_events(&self) -> bool {
        self.events == Some(Events::Stdout)
    }
}

impl RunArguments {
    /// Returns the arguments of a command line without options: one client and one thread. `seed` is the random seed.
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
