//! pgbench's options: as the command line gives them, and the command that they come to.

use crate::frontend::common::arguments::RunArguments;
use crate::frontend::common::options::RunOptions;
use crate::frontend::common::plan::ScriptSources;
use tables::{InitOptions, PartitionMethod};
use wire::params::Given;

/// The options of a command line. Each value has been checked on its own, but not whether the options fit together.
/// [`Arguments::new`] has pgbench's defaults.
#[derive(Debug, Default)]
pub struct Arguments {
    pub run: RunArguments,
    pub scale: Option<u32>,
    pub no_vacuum: bool,
    pub vacuum_all: bool,
    pub init: InitArguments,
    pub sources: ScriptSources,
    /// True if the run has a built-in script, which needs pgbench's tables.
    pub needs_tables: bool,
    /// True if a script is read from standard input.
    pub reads_stdin: bool,
    /// True if the commands of the scripts are listed, and nothing is run.
    pub lists_commands: bool,
    /// True if the time of the load begins when all clients are connected, and not before they connect.
    pub time_after_connecting: bool,
    pub uses_additions: bool,
}

/// The options of `-i`.
#[derive(Debug, Default)]
pub struct InitArguments {
    /// True if pgbench makes its tables (`-i`), false if it runs a benchmark.
    pub is_asked_for: bool,
    /// The letters of `--init-steps`.
    pub steps: String,
    pub foreign_keys: bool,
    pub partition_method: Option<PartitionMethod>,
    pub tables: InitOptions,
}

/// The task that the options give to pgbench: to make its tables or to run a benchmark.
#[derive(Debug)]
pub enum PgbenchCommand {
    Initialize(Box<Initialization>),
    Benchmark(Box<Benchmark>),
}

/// The tables that are made, and how.
#[derive(Debug)]
pub struct Initialization {
    pub server: Given,
    /// The letters of the steps.
    pub steps: String,
    pub tables: InitOptions,
}

/// A benchmark to be run.
#[derive(Debug)]
pub struct Benchmark {
    pub run: RunOptions,
    pub sources: ScriptSources,
    pub needs_tables: bool,
    /// True if the commands of the scripts are listed, and nothing is run.
    pub lists_commands: bool,
    pub scale: Option<u32>,
    pub no_vacuum: bool,
    pub vacuum_all: bool,
    pub uses_additions: bool,
}

impl Arguments {
    /// Returns the arguments of a command line without options.
    pub fn new(seed: u64) -> Self {
        let init = InitArguments { steps: "dtgvp".to_owned(), ..InitArguments::default() };
        Self { init, run: RunArguments::new(seed), ..Self::default() }
    }
}

impl AsMut<RunArguments> for Arguments {
    fn as_mut(&mut self) -> &mut RunArguments {
        &mut self.run
    }
}

impl AsMut<Given> for Arguments {
    fn as_mut(&mut self) -> &mut Given {
        &mut self.run.server
    }
}
