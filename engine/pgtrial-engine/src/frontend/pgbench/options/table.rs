//! pgbench's options: the fields in which they are stored, and the table of options. Each row of the table is one option,
//! with a function that checks its value and stores it.

use super::values::{definition, init_steps, partition_method, query_mode, random_seed, sampling_rate};
use crate::frontend::common::failure::Failure;
use crate::frontend::common::options::{self, RunOptions};
use crate::frontend::common::scripts::ScriptSources;
use crate::frontend::common::values::{count, integer};
use crate::frontend::pgbench::scripts;
use ground::options::{OptionRow, Stop, set};
use tables::{InitOptions, PartitionMethod};
use workload::pgbench::builtin;

/// The options of a command line. The function [`parse`](super::parse) checks whether they fit together.
#[derive(Debug, Default)]
pub struct PgbenchOptions {
    pub run: RunOptions,
    pub scale: Option<u32>,
    pub no_vacuum: bool,
    pub vacuum_all: bool,
    pub init: InitializationOptions,
    pub sources: ScriptSources,
    /// True with `--list-commands`: the commands of the scripts are printed, and no load is run.
    pub lists_commands: bool,
    /// True if the command line has an option that pgtrial adds to pgbench. Warnings about the load generator are
    /// printed only in this case, since PostgreSQL's pgbench does not print such warnings.
    pub uses_additions: bool,
}

/// The options for making pgbench's tables (`-i`).
#[derive(Debug, Default)]
pub struct InitializationOptions {
    /// True if pgbench makes its tables (`-i`), false if it runs a benchmark.
    pub is_asked_for: bool,
    /// The value of `--init-steps`, in which each letter is a step.
    pub steps: String,
    pub foreign_keys: bool,
    pub partition_method: Option<PartitionMethod>,
    pub tables: InitOptions,
}

impl PgbenchOptions {
    /// Returns the options of a command line without options, which are pgbench's defaults. `seed` is the random seed.
    pub fn new(seed: u64) -> Self {
        let init = InitializationOptions { steps: "dtgvp".to_owned(), ..InitializationOptions::default() };
        Self { init, run: RunOptions::new(seed), ..Self::default() }
    }
}

impl AsMut<RunOptions> for PgbenchOptions {
    fn as_mut(&mut self) -> &mut RunOptions {
        &mut self.run
    }
}

/// The section of the help that lists an option. pgbench has two modes, making tables and running a benchmark; a section
/// also says in which modes its options are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpSection {
    Initialization,
    Scripts,
    Benchmarking,
    /// Options that pgtrial adds, which PostgreSQL's pgbench does not have. They are valid in this mode.
    Added(OptionMode),
    Common,
}

/// The mode of pgbench in which an option is valid: making tables (`-i`), running a benchmark, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionMode {
    Initialization,
    Benchmarking,
    Both,
}

impl HelpSection {
    pub fn title(self) -> &'static str {
        match self {
            Self::Initialization => "Initialization options:",
            Self::Scripts => "Options to select what to run:",
            Self::Benchmarking => "Benchmarking options:",
            Self::Added(_) => "Options that pgtrial adds:",
            Self::Common => "Common options:",
        }
    }

    /// Returns true if the options of this section are valid in the mode `wanted`, which is `Initialization` or
    /// `Benchmarking`.
    pub fn is_for(self, wanted: OptionMode) -> bool {
        let mode = match self {
            Self::Initialization => OptionMode::Initialization,
            Self::Scripts | Self::Benchmarking => OptionMode::Benchmarking,
            Self::Added(mode) => mode,
            Self::Common => OptionMode::Both,
        };
        mode == wanted || mode == OptionMode::Both
    }
}

/// An option of pgbench.
pub type Row = OptionRow<PgbenchOptions, Failure, HelpSection>;

use HelpSection::{Added, Benchmarking, Common, Initialization as Init, Scripts};

const fn no_vacuum(group: HelpSection, help: &'static str) -> Row {
    Row::switch("-n, --no-vacuum", group, help, |o| &mut o.no_vacuum)
}

const fn scale(group: HelpSection, help: &'static str) -> Row {
    Row::value("-s, --scale=NUM", group, help, |o, v| set(&mut o.scale, count(v)))
}

/// The rows, in the order of the help. `-n` and `-s` have two rows each, since the help lists them in two sections.
#[rustfmt::skip]
pub const OPTIONS: &[Row] = &[
    Row::switch("-i, --initialize", Init, "invokes initialization mode",
        |o| &mut o.init.is_asked_for),
    Row::value("-I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")", Init,
        "run selected initialization steps, in the specified order\n\
         d: drop any existing pgbench tables\n\
         t: create the tables used by the standard pgbench scenario\n\
         g: generate data, client-side\n\
         G: generate data, server-side\n\
         v: invoke VACUUM on the standard tables\n\
         p: create primary key indexes on the standard tables\n\
         f: create foreign keys between the standard tables",
        |o, v| set(&mut o.init.steps, init_steps(v.text))),
    Row::value("-F, --fillfactor=NUM", Init, "set fill factor",
        |o, v| set(&mut o.init.tables.fillfactor, integer(v, 10, 100))),
    no_vacuum(Init, "do not run VACUUM during initialization"),
    Row::switch("-q, --quiet", Init, "quiet logging (one message each 5 seconds)",
        |o| &mut o.init.tables.quiet),
    scale(Init, "scaling factor"),
    Row::switch("--foreign-keys", Init, "create foreign key constraints between tables",
        |o| &mut o.init.foreign_keys),
    Row::text("--index-tablespace=TABLESPACE", Init, "create indexes in the specified tablespace",
        |o| &mut o.init.tables.index_tablespace),
    Row::value("--partition-method=(range|hash)", Init,
        "partition pgbench_accounts with this method (default: range)",
        |o, v| set(&mut o.init.partition_method, partition_method(v.text))),
    Row::value("--partitions=NUM", Init, "partition pgbench_accounts into NUM parts (default: 0)",
        |o, v| set(&mut o.init.tables.partitions, integer(v, 0, i32::MAX as u32))),
    Row::text("--tablespace=TABLESPACE", Init, "create tables in the specified tablespace",
        |o| &mut o.init.tables.tablespace),
    Row::switch("--unlogged-tables", Init, "create tables as unlogged tables",
        |o| &mut o.init.tables.unlogged),

    Row::value("-b, --builtin=NAME[@W]", Scripts,
        "add builtin script NAME weighted at W (default: 1)\n(use \"-b list\" to list available scripts)",
        |o, v| match v.text {
            "list" => Err(Stop::List(builtin::listing())),
            name => Ok(scripts::add_builtin(&mut o.sources, name)?),
        }),
    Row::value("-f, --file=FILENAME[@W]", Scripts, "add script FILENAME weighted at W (default: 1)",
        |o, v| Ok(scripts::add_file(&mut o.sources, v.text)?)),
    Row::action("-N, --skip-some-updates", Scripts,
        "skip updates of pgbench_tellers and pgbench_branches\n(same as \"-b simple-update\")",
        |o| Ok(scripts::add_builtin(&mut o.sources, "simple-update")?)),
    Row::action("-S, --select-only", Scripts,
        "perform SELECT-only transactions\n(same as \"-b select-only\")",
        |o| Ok(scripts::add_builtin(&mut o.sources, "select-only")?)),

    Row::value("-c, --client=NUM", Benchmarking, "number of concurrent database clients (default: 1)",
        |o, v| set(&mut o.run.clients, count(v).map(|clients| clients as usize))),
    Row::switch("-C, --connect", Benchmarking, "establish new connection for each transaction",
        |o| &mut o.run.reconnect),
    Row::value("-D, --define=VARNAME=VALUE", Benchmarking, "define variable for use by custom script",
        |o, v| {
            let (name, value) = definition(v.text)?;
            o.sources.variables.retain(|(known, _)| *known != name);
            o.sources.variables.push((name, value));
            Ok(())
        }),
    Row::value("-j, --jobs=NUM", Benchmarking, "number of threads (default: 1)",
        |o, v| set(&mut o.run.jobs, count(v).map(|jobs| jobs as usize))),
    Row::switch("-l, --log", Benchmarking, "write transaction times to log file",
        |o| &mut o.run.log.is_on),
    Row::part(&options::LATENCY_LIMIT, Benchmarking, "count transactions lasting more than NUM ms as late"),
    Row::value("-M, --protocol=simple|extended|prepared", Benchmarking,
        "protocol for submitting queries (default: simple)",
        |o, v| set(&mut o.run.mode, query_mode(v.text))),
    no_vacuum(Benchmarking, "do not run VACUUM before tests"),
    Row::part(&options::PROGRESS, Benchmarking, "show thread progress report every NUM seconds"),
    Row::switch("-r, --report-per-command", Benchmarking,
        "report latencies, failures, and retries per command",
        |o| &mut o.run.script.timed_commands),
    Row::part(&options::RATE, Benchmarking, "target rate in transactions per second"),
    scale(Benchmarking, "report this scale factor in output"),
    Row::part(&options::TRANSACTIONS, Benchmarking, "number of transactions each client runs (default: 10)"),
    Row::value("-T, --time=NUM", Benchmarking, "duration of benchmark test in seconds",
        |o, v| set(&mut o.run.duration, count(v))),
    Row::switch("-v, --vacuum-all", Benchmarking, "vacuum all four standard tables before tests",
        |o| &mut o.vacuum_all),
    Row::value("--aggregate-interval=NUM", Benchmarking, "aggregate data over NUM seconds",
        |o, v| set(&mut o.run.log.aggregate_interval, count(v))),
    Row::part(&options::EXIT_ON_ABORT, Benchmarking, "exit when any client is aborted"),
    Row::switch("--failures-detailed", Benchmarking, "report the failures grouped by basic types",
        |o| &mut o.run.output.failures_detailed),
    Row::text("--log-prefix=PREFIX", Benchmarking,
        "prefix for transaction time log file\n(default: \"pgbench_log\")",
        |o| &mut o.run.log.prefix),
    Row::part(&options::MAX_TRIES, Benchmarking, "max number of tries to run transaction (default: 1)"),
    Row::switch("--progress-timestamp", Benchmarking, "use Unix epoch timestamps for progress",
        |o| &mut o.run.output.progress_timestamp),
    Row::value("--random-seed=SEED", Benchmarking, "set random seed (\"time\", \"rand\", integer)",
        |o, v| {
            let named = |failure: Failure| failure.and("error while setting random seed from --random-seed option");
            set(&mut o.run.seed, random_seed(v.text).map_err(named))
        }),
    Row::value("--sampling-rate=NUM", Benchmarking, "fraction of transactions to log (e.g., 0.01 for 1%)",
        |o, v| set(&mut o.run.log.sampling_rate, sampling_rate(v.text))),
    Row::value("--show-script=NAME", Benchmarking, "show builtin script code, then exit",
        |_, v| {
            let script = scripts::named(v.text)?;
            Err(Stop::List(format!("-- {}: {}\n{}\n", script.name, script.description, script.text)))
        }),
    Row::part(&options::VERBOSE_ERRORS, Benchmarking, "print messages of all errors"),

    Row::part(&options::APPS, Added(OptionMode::Benchmarking),
        "run the tasks of NUM applications, each with its own pool of\nconnections, instead of clients (default: 1)"),
    Row::part(&options::ARRIVAL, Added(OptionMode::Benchmarking),
        "when the tasks of each application arrive: all at once, or at a\nrate in tasks per second (default: at-once)"),
    Row::part(&options::CONTINUE_ON_ERROR, Added(OptionMode::Benchmarking),
        "go on after any SQL error; the transaction counts as failed\n(an option of pgbench 19)"),
    Row::part(&options::EVENTS, Added(OptionMode::Benchmarking),
        "write the events of the run as JSON Lines to FILE, or with \"-\"\nto standard output instead of the report"),
    Row::value("--histogram=FILE", Added(OptionMode::Benchmarking),
        "write the latencies of the measured part to FILE as a line\n\
         \"latency BASE64\": an HdrHistogram in microseconds in V2\n\
         encoding, deflated; with a rate also \"service BASE64\" (times\n\
         from the actual start) and \"lag BASE64\" (delays of the start);\n\
         with pools also \"service BASE64\" (times with a connection) and\n\
         \"queue BASE64\" (times of waiting for a connection)",
        |o, v| {
            o.run.output.histogram = Some(ground::text::path(v.text));
            Ok(())
        }),
    Row::switch("--list-commands", Added(OptionMode::Benchmarking),
        "list the commands of the scripts as JSON Lines, each statement\n\
         with the parameter values of six transactions, then exit",
        |o| &mut o.lists_commands),
    Row::part(&options::LIST_STATEMENTS, Added(OptionMode::Benchmarking),
        "write the statements that clients send to FILE as JSON Lines,\n\
         each with the values of its first six executions"),
    Row::value("--load-jobs=NUM", Added(OptionMode::Initialization),
        "number of connections that load partitions in initialization\nmode, 1 to 1000 (default: 1)",
        |o, v| set(&mut o.init.tables.jobs, integer(v, 1, 1000).map(|jobs| jobs as usize))),
    Row::text("--mark-by=QUERY", Added(OptionMode::Initialization),
        "make the tables in one transaction, and run QUERY in it; QUERY\n\
         must return one value, SQL that marks the tables, which is then\n\
         run before the commit",
        |o| &mut o.init.tables.mark_by),
    Row::switch("--no-describe", Added(OptionMode::Benchmarking),
        "in extended and prepared mode, do not ask for the columns of\n\
         results (Describe), unlike libpq; the server then has less to do",
        |o| &mut o.run.no_describe),
    Row::switch("--percentiles", Added(OptionMode::Benchmarking), "report latency percentiles",
        |o| &mut o.run.output.percentiles),
    Row::part(&options::POOL, Added(OptionMode::Benchmarking),
        "greatest number of connections in an application's pool; needs\n--tasks"),
    Row::part(&options::POOL_LIFETIME, Added(OptionMode::Benchmarking),
        "replace a pool's connections that are older than this"),
    Row::part(&options::POOL_TIMEOUT, Added(OptionMode::Benchmarking),
        "a task that gets no connection within this time fails\n(default: 15)"),
    Row::switch("--require-values", Added(OptionMode::Benchmarking),
        "abort a client if a variable in its statement has no value;\n\
         without this option, the value in extended and prepared mode is\n\
         NULL",
        |o| &mut o.sources.needs_values),
    Row::part(&options::SHARD, Added(OptionMode::Both),
        "run only shard I (from 1 to N) of the load that the other\n\
         options describe and that N engines share; -j is the number\n\
         of threads of this engine alone; with -i -I g: load only\n\
         shard I of the rows, into existing tables"),
    Row::part(&options::SLICE, Added(OptionMode::Benchmarking),
        "take turns with other engines in slices of this length, such\n\
         as 250ms; needs --slice-of, --slice-seed and --start-at"),
    Row::part(&options::SLICE_OF, Added(OptionMode::Benchmarking),
        "number I (from 1 to N) of this engine among the N engines that\ntake turns"),
    Row::part(&options::SLICE_SEED, Added(OptionMode::Benchmarking),
        "seed of the random order in which engines take turns; must be\n\
         the same for all of them"),
    Row::part(&options::START_AT, Added(OptionMode::Benchmarking),
        "begin the load at this time, at most 60 s from now: Unix\n\
         seconds with decimals, or monotonic:SECONDS of this machine's\n\
         monotonic clock; with \"-\" the time is read as a line from\n\
         standard input when all clients are connected"),
    Row::part(&options::TASKS, Added(OptionMode::Benchmarking),
        "number of tasks of each application; each is one transaction"),
    Row::switch("--time-after-connecting", Added(OptionMode::Benchmarking),
        "begin the time of -T when all clients are connected, instead of\n\
         before they connect; --warmup and --start-at imply this",
        |o| &mut o.run.time_after_connecting),
    Row::value("--values=VARNAME=FILE", Added(OptionMode::Benchmarking),
        "at the beginning of each transaction, set the variable to a\nrandom line of FILE",
        |o, v| Ok(scripts::add_values(&mut o.sources, v.text)?)),
    Row::part(&options::WAIT_FOR_SERVER, Added(OptionMode::Benchmarking),
        "a client that loses its connection tries to connect again for\n\
         this time; its current transaction counts as failed"),
    Row::part(&options::WARMUP, Added(OptionMode::Benchmarking),
        "run the load for this time before the measured part; the\nwarm-up is reported separately"),

    Row::switch("--debug", Common, "print debugging output",
        |o| &mut o.run.script.notes.steps),
    Row::text("-d, --dbname=DBNAME", Common, "database name to connect to", |o| &mut o.run.server.dbname),
    Row::text("-h, --host=HOSTNAME", Common, "database server host or socket directory", |o| &mut o.run.server.host),
    Row::text("-p, --port=PORT", Common, "database server port number", |o| &mut o.run.server.port),
    Row::text("-U, --username=USERNAME", Common, "connect as specified database user", |o| &mut o.run.server.user),
];
