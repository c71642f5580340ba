//! pgbench's command line. The value of each option is checked in the order of the command line. Afterwards pgtrial
//! checks, in pgbench's order, that the options fit together. Only the first mistake is reported. A new option needs a
//! field and a row in `table.rs`.

pub mod table;
#[cfg(test)]
mod tests;
mod values;

use std::os::unix::ffi::OsStrExt;

use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::options::EngineShare;
use crate::frontend::common::values::seed_of_time;
use crate::frontend::pgbench::program::VERSION;
use crate::frontend::pgbench::scripts;
use drive::start_at::StartAt;
use ground::getopt::Getopt;
use ground::manual::{Manual, entries};
use ground::options::{Argument, Stop};
use table::{HelpSection, InitializationOptions, OPTIONS, OptionMode, PgbenchOptions, Row};
use tables::PartitionMethod;
use values::random_seed;

/// The work that the options ask pgbench to do.
#[derive(Debug)]
pub enum PgbenchCommand {
    /// Makes pgbench's tables.
    Initialize(Box<PgbenchOptions>),
    /// Runs this engine's share of a benchmark.
    Benchmark(Box<PgbenchOptions>, EngineShare),
}

/// The long options of PostgreSQL's pgbench, in the order of `long_options` in pgbench.c. The error about an ambiguous
/// abbreviation lists the possible options in this order.
#[rustfmt::skip]
const ORIGINALS: &[&str] = &[
    "builtin", "client", "connect", "dbname", "define", "file", "fillfactor", "host", "initialize", "init-steps", "jobs",
    "log", "latency-limit", "no-vacuum", "port", "progress", "protocol", "quiet", "report-per-command", "rate", "scale",
    "select-only", "skip-some-updates", "time", "transactions", "username", "vacuum-all", "unlogged-tables", "tablespace",
    "index-tablespace", "sampling-rate", "aggregate-interval", "progress-timestamp", "log-prefix", "foreign-keys",
    "random-seed", "show-script", "partitions", "partition-method", "failures-detailed", "max-tries", "verbose-errors",
    "exit-on-abort", "debug",
];

/// The options that cannot be combined with connection pools (`--pool`), each with the reason.
const EXCLUDED: [(&str, &str); 10] = [
    ("client", "the size of the pools determines the number of connections"),
    ("connect", "a pool keeps its connections"),
    ("transactions", "--tasks sets the number of transactions"),
    ("time", "the run ends when all --tasks have run"),
    ("rate", "--arrival determines when tasks start"),
    ("warmup", "all tasks are measured"),
    ("slice", "tasks that wait for a connection would wait during the slices of other engines"),
    ("log", "a log of tasks is written by \"pgtrial-engine tasks --csv\""),
    ("exit-on-abort", "no client is aborted when a task fails"),
    ("wait-for-server", "a pool replaces broken connections, and tasks wait for them up to --pool-timeout"),
];

/// Reads the arguments, without the program's name. As in pgbench, `--help` and `--version` count only as the first
/// argument.
pub fn parse(args: Vec<String>) -> Result<PgbenchCommand, Stop<Failure>> {
    match args.first().map(String::as_str) {
        Some("--help" | "-?") => return Err(Stop::Print(manual().help())),
        Some("--version" | "-V") => return Err(Stop::Print(version())),
        _ => {}
    }
    let mut options = Box::new(PgbenchOptions::new(seed_of_time()));
    if let Some(seed) = std::env::var_os("PGBENCH_RANDOM_SEED") {
        let seed = ground::text::of(seed.as_bytes());
        options.run.seed = random_seed(&seed).map_err(|failure| {
            failure.and("error while setting random seed from PGBENCH_RANDOM_SEED environment variable")
        })?;
    }
    let mut given = Vec::new();
    let mut getopt = Getopt::new(&[OPTIONS], ORIGINALS, args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(Failure::from)?;
        given.push(row);
        options.uses_additions |= matches!(row.group, HelpSection::Added(_));
        row.apply(&mut options, &value)?;
    }
    let positional = getopt.into_positional();
    if options.init.is_asked_for {
        settle_initialization(&mut options, &given, positional)?;
        return Ok(PgbenchCommand::Initialize(options));
    }
    let share = settle_benchmark(&mut options, &given, positional)?;
    Ok(PgbenchCommand::Benchmark(options, share))
}

/// Sets defaults that depend on other options, and rejects options for a benchmark that do not fit together. `given` are
/// the options that the command line contains, and `positional` are its other arguments. Returns the share that this
/// engine has of the run.
fn settle_benchmark(
    PgbenchOptions { run, sources, .. }: &mut PgbenchOptions,
    given: &[&Row],
    positional: Vec<String>,
) -> Result<EngineShare, Failure> {
    if sources.scripts.is_empty() {
        scripts::add_builtin(sources, "tpcb-like")?;
    }
    if run.start == Some(StartAt::StandardInput) && sources.reads_stdin {
        return Err(Failure::error("--start-at=- cannot be combined with --file=-: both read standard input"));
    }
    if run.pooling.is_given() {
        check_excluded(given)?;
    }
    let share = run.share()?;
    if sources.scripts.iter().all(|script| script.weight == 0) {
        return Err(Failure::error("total script weight must not be zero"));
    }
    with_database(&mut run.server, positional)?;
    check_mode(given, OptionMode::Benchmarking, "benchmarking")?;
    run.check()?;
    Ok(share)
}

/// Sets defaults that depend on other options, and rejects options for making pgbench's tables that do not fit together.
fn settle_initialization(
    PgbenchOptions { run, scale, no_vacuum, init, .. }: &mut PgbenchOptions,
    given: &[&Row],
    positional: Vec<String>,
) -> Result<(), Failure> {
    with_database(&mut run.server, positional)?;
    check_mode(given, OptionMode::Initialization, "initialization (-i)")?;
    let InitializationOptions { steps, foreign_keys, partition_method, tables, .. } = init;
    if tables.partitions == 0 && partition_method.is_some() {
        return Err(Failure::error("--partition-method requires greater than zero --partitions"));
    }
    if *foreign_keys && !steps.contains('f') {
        steps.push('f');
    }
    if *no_vacuum {
        steps.retain(|step| step != 'v');
    }
    if run.shard.is_part() && steps.trim() != "g" {
        return Err(Failure::error(
            "--shard with -i divides only the making of rows (-I g) among engines: make the tables once before \
             (-I dt), and vacuum them and make their keys once afterwards (-I vp)",
        ));
    }
    tables.partition_method = partition_method.unwrap_or(PartitionMethod::Range);
    tables.scale = scale.unwrap_or(1);
    tables.shard = run.shard;
    Ok(())
}

/// Rejects options that cannot be combined with connection pools.
fn check_excluded(given: &[&Row]) -> Result<(), Failure> {
    for (long, reason) in EXCLUDED {
        if let Some(row) = given.iter().find(|row| row.long() == long) {
            let option = Argument::new(row.spec, "").option();
            return Err(Failure::error(format!("{option} cannot be combined with --pool: {reason}")));
        }
    }
    Ok(())
}

/// Rejects options that are not valid in this mode. `called` is the mode's name in pgbench's error message.
fn check_mode(given: &[&Row], mode: OptionMode, called: &str) -> Result<(), Failure> {
    let is_for = |option: &Row| OPTIONS.iter().any(|row| row.long() == option.long() && row.group.is_for(mode));
    if given.iter().all(|row| is_for(row)) {
        return Ok(());
    }
    Err(Failure::error(format!("some of the specified options cannot be used in {called} mode")))
}

/// Returns the description of pgbench and its options. Options that pgtrial adds are in a section of their own.
pub fn manual() -> Manual {
    let mut options = entries(&[OPTIONS], |group| group.title());
    // pgbench accepts these two options only as the first argument, so they are not in the table of options.
    let first = [
        Row::action("-V, --version", HelpSection::Common, "output version information, then exit", |_| Ok(())),
        Row::action("-?, --help", HelpSection::Common, "show this help, then exit", |_| Ok(())),
    ];
    options.extend(entries(&[&first], |group| group.title()));
    Manual {
        about: "pgbench is a benchmarking tool for PostgreSQL.",
        usage: &["pgbench [OPTION]... [DBNAME]"],
        description: "",
        options,
        notes: "This pgbench is a part of pgtrial, not of PostgreSQL.\nReport bugs to <the maintainers of pgtrial>."
            .to_owned(),
    }
}

/// Returns the text of `--version`.
fn version() -> String {
    format!("pgbench (PostgreSQL) {VERSION} (pgtrial {})\n", env!("CARGO_PKG_VERSION"))
}
