//! pgbench's command line.

mod checks;
mod pools;
mod reader;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use super::messages::Failure;
use super::values::{is_number, random_seed};
use super::{PGBENCH_VERSION, help};
use crate::frontend::events::Events;
use drive::plan::{PoolPlan, StartAt};
use ground::getopt_by_id::Getopt;
use ground::shard::{ClientShare, Shard};
use reader::Reader;
use table::{LONGS, SHORTS};
use tables::PartitionMethod;
use wire::statement::QueryMode;
use workload::pgbench::Parsed;

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Print on standard output and stop.
    Print(String),
    /// Print on standard error and stop.
    List(String),
    Initialize(Box<Options>),
    Benchmark(Box<Options>),
}

/// All options; counts are in pgbench's range 1..2147483647 unless said otherwise.
#[derive(Debug)]
pub struct Options {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    pub dbname: Option<String>,
    pub scale: Option<u32>,
    pub no_vacuum: bool,
    pub debug: bool,

    pub init_steps: String,
    /// Percent, 10 to 100.
    pub fillfactor: u32,
    pub foreign_keys: bool,
    pub quiet: bool,
    pub tablespace: Option<String>,
    pub index_tablespace: Option<String>,
    pub unlogged_tables: bool,
    /// 0 for none.
    pub partitions: u32,
    pub partition_method: Option<PartitionMethod>,
    pub load_jobs: Option<usize>,
    /// Whose rows are loaded.
    pub load_shard: Shard,

    pub scripts: Vec<Parsed>,
    /// Whether a built-in script is among them, which needs pgbench's tables.
    pub needs_tables: bool,
    /// Variables by name, each once.
    pub variables: Vec<(String, String)>,
    /// Those of this engine, and which of the whole run's they are.
    pub clients: usize,
    pub part: ClientShare,
    pub start: Option<StartAt>,
    pub jobs: usize,
    pub transactions: Option<u32>,
    /// Seconds.
    pub duration: Option<u32>,
    pub warmup: Duration,
    pub mode: QueryMode,
    pub reconnect: bool,
    pub vacuum_all: bool,
    /// Mean time between the starts of two transactions.
    pub interval: Option<Duration>,
    pub pools: Option<PoolPlan>,
    pub latency_limit: Option<Duration>,
    /// `None` for no limit.
    pub tries: Option<u32>,
    pub continue_on_error: bool,
    /// How long clients that lost their connection try to get another one.
    pub wait_for_server: Option<Duration>,
    pub exit_on_abort: bool,
    pub verbose_errors: bool,
    pub seed: u64,

    pub report_per_command: bool,
    pub failures_detailed: bool,
    /// Seconds between progress lines.
    pub progress: Option<u32>,
    pub progress_timestamp: bool,
    pub log: bool,
    pub log_prefix: Option<String>,
    /// Above 0 to 1.
    pub sampling_rate: Option<f64>,
    /// Seconds.
    pub aggregate_interval: Option<u32>,
    pub percentiles: bool,
    pub histogram: Option<PathBuf>,
    pub events: Option<Events>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: None,
            port: None,
            user: None,
            dbname: None,
            scale: None,
            no_vacuum: false,
            debug: false,
            init_steps: "dtgvp".to_owned(),
            fillfactor: 100,
            foreign_keys: false,
            quiet: false,
            tablespace: None,
            index_tablespace: None,
            unlogged_tables: false,
            partitions: 0,
            partition_method: None,
            load_jobs: None,
            load_shard: Shard::WHOLE,
            scripts: Vec::new(),
            needs_tables: false,
            variables: Vec::new(),
            clients: 1,
            part: ClientShare::whole(1),
            start: None,
            jobs: 1,
            transactions: None,
            duration: None,
            warmup: Duration::ZERO,
            mode: QueryMode::Simple,
            reconnect: false,
            vacuum_all: false,
            interval: None,
            pools: None,
            latency_limit: None,
            tries: Some(1),
            continue_on_error: false,
            wait_for_server: None,
            exit_on_abort: false,
            verbose_errors: false,
            seed: 0,
            report_per_command: false,
            failures_detailed: false,
            progress: None,
            progress_timestamp: false,
            log: false,
            log_prefix: None,
            sampling_rate: None,
            aggregate_interval: None,
            percentiles: false,
            histogram: None,
            events: None,
        }
    }
}

impl Options {
    /// Whether anything is asked for that pgbench does not have, so that what it does not say may be said.
    pub fn uses_additions(&self) -> bool {
        self.events.is_some()
            || self.percentiles
            || self.histogram.is_some()
            || self.continue_on_error
            || self.wait_for_server.is_some()
            || self.pools.is_some()
            || self.part.shard.is_part()
            || self.start.is_some()
            || !self.warmup.is_zero()
    }
}

/// Reads the command line (without the program's name). The first mistake is reported, in the order of the options.
/// Help and version are asked for by the first argument or not at all, as in pgbench.
pub fn parse(args: Vec<String>) -> Result<Command, Failure> {
    match args.first().map(String::as_str) {
        Some("--help" | "-?") => return Ok(Command::Print(help::text())),
        Some("--version" | "-V") => return Ok(Command::Print(version())),
        _ => {}
    }
    let mut reader = Reader::default();
    let seed = std::env::var_os("PGBENCH_RANDOM_SEED").map(|seed| seed.to_string_lossy().into_owned());
    reader.options.seed = random_seed(seed.as_deref()).map_err(|failure| {
        failure.and("error while setting random seed from PGBENCH_RANDOM_SEED environment variable")
    })?;
    reader.is_seeded = seed.is_some_and(|seed| is_number(&seed));
    let mut getopt = Getopt::new("pgbench", args, &SHORTS, &LONGS);
    for option in getopt.by_ref() {
        let (id, value) = option.map_err(Failure::usage)?;
        if let Some(command) = reader.take(id, value.unwrap_or_default())? {
            return Ok(command);
        }
    }
    reader.finish(getopt.into_positional())
}

fn version() -> String {
    format!("pgbench (PostgreSQL) {PGBENCH_VERSION} (pgtrial {})\n", env!("CARGO_PKG_VERSION"))
}
