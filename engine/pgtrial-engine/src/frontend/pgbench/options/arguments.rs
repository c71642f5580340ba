//! pgbench's options as the command line gives them ([`Arguments`]), and the checked options from which pgbench runs
//! ([`PgbenchCommand`]).

use crate::frontend::common::arguments::RunArguments;
use crate::frontend::common::options::RunOptions;
use crate::frontend::common::plan::ScriptSources;
use tables::{InitOptions, PartitionMethod};
use wire::params::Given;

/// The options of a command line. Each value has been checked on its own, but not whether the options fit together.
/// [`Arguments::new`] returns pgbench's defaults.
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
    /// True with `--list-commands`: the commands of the scripts are printed, and no load is run.
    pub lists_commands: bool,
    /// True with `--time-after-connecting`: the time limit begins when all clients are connected. If false, it begins
    /// before they connect, as in pgbench.
    pub time_after_connecting: bool,
    /// True if the command line has an option that pgtrial adds to pgbench. Warnings about the load generator are
    /// printed only in this case, since PostgreSQL's pgbench does not print such warnings.
    pub uses_additions: bool,
}

/// The options for making pgbench's tables (`-i`).
#[derive(Debug, Default)]
pub struct InitArguments {
    /// True if pgbench makes its tables (`-i`), false if it runs a benchmark.
    pub is_asked_for: bool,
    /// The value of `--init-steps`, in which each letter is a step.
    pub steps: String,
    pub foreign_keys: bool,
    pub partition_method: Option<PartitionMethod>,
    pub tables: InitOptions,
}

/// The work that the options ask pgbench to do: making its tables, or running a benchmark.
#[derive(Debug)]
pub enum PgbenchCommand {
    Initialize(Box<Initialization>),
    Benchmark(Box<Benchmark>),
}

/// The checked options for making pgbench's tables.
#[derive(Debug)]
pub struct Initialization {
    pub server: Given,
    /// The steps that make the tables, one letter for each step, as in `--init-steps`.
    pub steps: String,
    pub tables: InitOptions,
}

/// The checked options for a benchmark run.
#[derive(Debug)]
pub struct Benchmark {
    pub run: RunOptions,
    pub sources: ScriptSources,
    pub needs_tables: bool,
    /// True with `--list-commands`: the commands of the scripts are printed, and no load is run.
    pub lists_commands: bool,
    pub scale: Option<u32>,
    pub no_vacuum: bool,
    pub vacuum_all: bool,
    /// True if the command line has an option that pgtrial adds to pgbench. Warnings about the load generator are
    /// printed only in this case, since PostgreSQL's pgbench does not print such warnings.
    pub uses_additions: bool,
}

impl Arguments {
    /// Returns the arguments of a command line without options. `seed` is the random seed.
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
