//! The table of pgbench's options. Each row is one option, with a function that checks its value and stores it.

use super::arguments::Arguments;
use super::sections::HelpSection::{self, Added, Benchmarking, Common, Initialization as Init, Scripts};
use super::sections::OptionMode;
use super::values::{definition, init_steps, partition_method, query_mode, random_seed};
use crate::frontend::common::failure::Failure;
use crate::frontend::common::rows;
use crate::frontend::common::values::{count, integer, sampling_rate};
use crate::frontend::pgbench::scripts;
use ground::options::{OptionRow, Stop, set};
use workload::pgbench::builtin;

/// An option of pgbench.
pub type PgbenchOption = OptionRow<Arguments, Failure, HelpSection>;

const fn no_vacuum(group: HelpSection, help: &'static str) -> PgbenchOption {
    PgbenchOption::switch("-n, --no-vacuum", group, help, |o| &mut o.no_vacuum)
}

const fn scale(group: HelpSection, help: &'static str) -> PgbenchOption {
    PgbenchOption::value("-s, --scale=NUM", group, help, |o, v| set(&mut o.scale, count(v)))
}

/// The rows, in the order of the help. `-n` and `-s` have two rows each, since the help lists them in two sections.
#[rustfmt::skip]
pub const OPTIONS: &[PgbenchOption] = &[
    PgbenchOption::switch("-i, --initialize", Init, "invokes initialization mode",
        |o| &mut o.init.is_asked_for),
    PgbenchOption::value("-I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")", Init,
        "run selected initialization steps, in the specified order\n\
         d: drop any existing pgbench tables\n\
         t: create the tables used by the standard pgbench scenario\n\
         g: generate data, client-side\n\
         G: generate data, server-side\n\
         v: invoke VACUUM on the standard tables\n\
         p: create primary key indexes on the standard tables\n\
         f: create foreign keys between the standard tables",
        |o, v| set(&mut o.init.steps, init_steps(v.text))),
    PgbenchOption::value("-F, --fillfactor=NUM", Init, "set fill factor",
        |o, v| set(&mut o.init.tables.fillfactor, integer(v, 10, 100))),
    no_vacuum(Init, "do not run VACUUM during initialization"),
    PgbenchOption::switch("-q, --quiet", Init, "quiet logging (one message each 5 seconds)",
        |o| &mut o.init.tables.quiet),
    scale(Init, "scaling factor"),
    PgbenchOption::switch("--foreign-keys", Init, "create foreign key constraints between tables",
        |o| &mut o.init.foreign_keys),
    PgbenchOption::text("--index-tablespace=TABLESPACE", Init, "create indexes in the specified tablespace",
        |o| &mut o.init.tables.index_tablespace),
    PgbenchOption::value("--partition-method=(range|hash)", Init,
        "partition pgbench_accounts with this method (default: range)",
        |o, v| set(&mut o.init.partition_method, partition_method(v.text))),
    PgbenchOption::value("--partitions=NUM", Init, "partition pgbench_accounts into NUM parts (default: 0)",
        |o, v| set(&mut o.init.tables.partitions, integer(v, 0, i32::MAX as u32))),
    PgbenchOption::text("--tablespace=TABLESPACE", Init, "create tables in the specified tablespace",
        |o| &mut o.init.tables.tablespace),
    PgbenchOption::switch("--unlogged-tables", Init, "create tables as unlogged tables",
        |o| &mut o.init.tables.unlogged),

    PgbenchOption::value("-b, --builtin=NAME[@W]", Scripts,
        "add builtin script NAME weighted at W (default: 1)\n(use \"-b list\" to list available scripts)",
        |o, v| match v.text {
            "list" => Err(Stop::List(builtin::listing())),
            name => Ok(scripts::add_builtin(o, name)?),
        }),
    PgbenchOption::value("-f, --file=FILENAME[@W]", Scripts, "add script FILENAME weighted at W (default: 1)",
        |o, v| Ok(scripts::add_file(o, v.text)?)),
    PgbenchOption::action("-N, --skip-some-updates", Scripts,
        "skip updates of pgbench_tellers and pgbench_branches\n(same as \"-b simple-update\")",
        |o| Ok(scripts::add_builtin(o, "simple-update")?)),
    PgbenchOption::action("-S, --select-only", Scripts,
        "perform SELECT-only transactions\n(same as \"-b select-only\")",
        |o| Ok(scripts::add_builtin(o, "select-only")?)),

    PgbenchOption::value("-c, --client=NUM", Benchmarking, "number of concurrent database clients (default: 1)",
        |o, v| set(&mut o.run.load.clients, count(v).map(|clients| clients as usize))),
    PgbenchOption::switch("-C, --connect", Benchmarking, "establish new connection for each transaction",
        |o| &mut o.run.load.settings.reconnect),
    PgbenchOption::value("-D, --define=VARNAME=VALUE", Benchmarking, "define variable for use by custom script",
        |o, v| {
            let (name, value) = definition(v.text)?;
            o.sources.variables.retain(|(known, _)| *known != name);
            o.sources.variables.push((name, value));
            Ok(())
        }),
    PgbenchOption::value("-j, --jobs=NUM", Benchmarking, "number of threads (default: 1)",
        |o, v| set(&mut o.run.load.jobs, count(v).map(|jobs| jobs as usize))),
    PgbenchOption::switch("-l, --log", Benchmarking, "write transaction times to log file",
        |o| &mut o.run.log.is_on),
    PgbenchOption::part(&rows::LATENCY_LIMIT, Benchmarking, "count transactions lasting more than NUM ms as late"),
    PgbenchOption::value("-M, --protocol=simple|extended|prepared", Benchmarking,
        "protocol for submitting queries (default: simple)",
        |o, v| set(&mut o.run.load.settings.mode, query_mode(v.text))),
    no_vacuum(Benchmarking, "do not run VACUUM before tests"),
    PgbenchOption::part(&rows::PROGRESS, Benchmarking, "show thread progress report every NUM seconds"),
    PgbenchOption::switch("-r, --report-per-command", Benchmarking,
        "report latencies, failures, and retries per command",
        |o| &mut o.run.load.settings.script.timed_commands),
    PgbenchOption::part(&rows::RATE, Benchmarking, "target rate in transactions per second"),
    scale(Benchmarking, "report this scale factor in output"),
    PgbenchOption::part(&rows::TRANSACTIONS, Benchmarking, "number of transactions each client runs (default: 10)"),
    PgbenchOption::value("-T, --time=NUM", Benchmarking, "duration of benchmark test in seconds",
        |o, v| set(&mut o.run.load.duration, count(v))),
    PgbenchOption::switch("-v, --vacuum-all", Benchmarking, "vacuum all four standard tables before tests",
        |o| &mut o.vacuum_all),
    PgbenchOption::value("--aggregate-interval=NUM", Benchmarking, "aggregate data over NUM seconds",
        |o, v| set(&mut o.run.log.aggregate_interval, count(v))),
    PgbenchOption::part(&rows::EXIT_ON_ABORT, Benchmarking, "exit when any client is aborted"),
    PgbenchOption::switch("--failures-detailed", Benchmarking, "report the failures grouped by basic types",
        |o| &mut o.run.output.failures_detailed),
    PgbenchOption::text("--log-prefix=PREFIX", Benchmarking,
        "prefix for transaction time log file\n(default: \"pgbench_log\")",
        |o| &mut o.run.log.prefix),
    PgbenchOption::part(&rows::MAX_TRIES, Benchmarking, "max number of tries to run transaction (default: 1)"),
    PgbenchOption::switch("--progress-timestamp", Benchmarking, "use Unix epoch timestamps for progress",
        |o| &mut o.run.output.progress_timestamp),
    PgbenchOption::value("--random-seed=SEED", Benchmarking, "set random seed (\"time\", \"rand\", integer)",
        |o, v| {
            let named = |failure: Failure| failure.and("error while setting random seed from --random-seed option");
            set(&mut o.run.load.seed, random_seed(v.text).map_err(named))
        }),
    PgbenchOption::value("--sampling-rate=NUM", Benchmarking, "fraction of transactions to log (e.g., 0.01 for 1%)",
        |o, v| set(&mut o.run.log.sampling_rate, sampling_rate(v.text))),
    PgbenchOption::value("--show-script=NAME", Benchmarking, "show builtin script code, then exit",
        |_, v| {
            let script = scripts::named(v.text)?;
            Err(Stop::List(format!("-- {}: {}\n{}\n", script.name, script.description, script.text)))
        }),
    PgbenchOption::part(&rows::VERBOSE_ERRORS, Benchmarking, "print messages of all errors"),

    PgbenchOption::part(&rows::APPS, Added(OptionMode::Benchmarking),
        "run the tasks of NUM applications, each with its own pool of\nconnections, instead of clients (default: 1)"),
    PgbenchOption::part(&rows::ARRIVAL, Added(OptionMode::Benchmarking),
        "when the tasks of each application arrive: all at once, or at a\nrate in tasks per second (default: at-once)"),
    PgbenchOption::part(&rows::CONTINUE_ON_ERROR, Added(OptionMode::Benchmarking),
        "go on after any SQL error; the transaction counts as failed\n(an option of pgbench 19)"),
    PgbenchOption::part(&rows::EVENTS, Added(OptionMode::Benchmarking),
        "write the events of the run as JSON Lines to FILE, or with \"-\"\nto standard output instead of the report"),
    PgbenchOption::value("--histogram=FILE", Added(OptionMode::Benchmarking),
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
    PgbenchOption::switch("--list-commands", Added(OptionMode::Benchmarking),
        "list the commands of the scripts as JSON Lines, each statement\n\
         with the parameter values of six transactions, then exit",
        |o| &mut o.lists_commands),
    PgbenchOption::part(&rows::LIST_STATEMENTS, Added(OptionMode::Benchmarking),
        "write the statements that clients send to FILE as JSON Lines,\n\
         each with the values of its first six executions"),
    PgbenchOption::value("--load-jobs=NUM", Added(OptionMode::Initialization),
        "number of connections that load partitions in initialization\nmode, 1 to 1000 (default: 1)",
        |o, v| set(&mut o.init.tables.jobs, integer(v, 1, 1000).map(|jobs| jobs as usize))),
    PgbenchOption::text("--mark-by=QUERY", Added(OptionMode::Initialization),
        "make the tables in one transaction, and run QUERY in it; QUERY\n\
         must return one value, SQL that marks the tables, which is then\n\
         run before the commit",
        |o| &mut o.init.tables.mark_by),
    PgbenchOption::switch("--no-describe", Added(OptionMode::Benchmarking),
        "in extended and prepared mode, do not ask for the columns of\n\
         results (Describe), unlike libpq; the server then has less to do",
        |o| &mut o.run.load.settings.no_describe),
    PgbenchOption::switch("--percentiles", Added(OptionMode::Benchmarking), "report latency percentiles",
        |o| &mut o.run.output.percentiles),
    PgbenchOption::part(&rows::POOL, Added(OptionMode::Benchmarking),
        "greatest number of connections in an application's pool; needs\n--tasks"),
    PgbenchOption::part(&rows::POOL_LIFETIME, Added(OptionMode::Benchmarking),
        "replace a pool's connections that are older than this"),
    PgbenchOption::part(&rows::POOL_TIMEOUT, Added(OptionMode::Benchmarking),
        "a task that gets no connection within this time fails\n(default: 15)"),
    PgbenchOption::switch("--require-values", Added(OptionMode::Benchmarking),
        "abort a client if a variable in its statement has no value;\n\
         without this option, the value in extended and prepared mode is\n\
         NULL",
        |o| &mut o.sources.needs_values),
    PgbenchOption::part(&rows::SHARD, Added(OptionMode::Both),
        "run only shard I (from 1 to N) of the load that the other\n\
         options describe and that N engines share; -j is the number\n\
         of threads of this engine alone; with -i -I g: load only\n\
         shard I of the rows, into existing tables"),
    PgbenchOption::part(&rows::SLICE, Added(OptionMode::Benchmarking),
        "take turns with other engines in slices of this length, such\n\
         as 250ms; needs --slice-of, --slice-seed and --start-at"),
    PgbenchOption::part(&rows::SLICE_OF, Added(OptionMode::Benchmarking),
        "number I (from 1 to N) of this engine among the N engines that\ntake turns"),
    PgbenchOption::part(&rows::SLICE_SEED, Added(OptionMode::Benchmarking),
        "seed of the random order in which engines take turns; must be\n\
         the same for all of them"),
    PgbenchOption::part(&rows::START_AT, Added(OptionMode::Benchmarking),
        "begin the load at this time, at most 60 s from now: Unix\n\
         seconds with decimals, or monotonic:SECONDS of this machine's\n\
         monotonic clock; with \"-\" the time is read as a line from\n\
         standard input when all clients are connected"),
    PgbenchOption::part(&rows::TASKS, Added(OptionMode::Benchmarking),
        "number of tasks of each application; each is one transaction"),
    PgbenchOption::switch("--time-after-connecting", Added(OptionMode::Benchmarking),
        "begin the time of -T when all clients are connected, instead of\n\
         before they connect; --warmup and --start-at imply this",
        |o| &mut o.time_after_connecting),
    PgbenchOption::value("--values=VARNAME=FILE", Added(OptionMode::Benchmarking),
        "at the beginning of each transaction, set the variable to a\nrandom line of FILE",
        |o, v| Ok(scripts::add_values(o, v.text)?)),
    PgbenchOption::part(&rows::WAIT_FOR_SERVER, Added(OptionMode::Benchmarking),
        "a client that loses its connection tries to connect again for\n\
         this time; its current transaction counts as failed"),
    PgbenchOption::part(&rows::WARMUP, Added(OptionMode::Benchmarking),
        "run the load for this time before the measured part; the\nwarm-up is reported separately"),

    PgbenchOption::switch("--debug", Common, "print debugging output",
        |o| &mut o.run.load.settings.script.notes.steps),
    PgbenchOption::part(&rows::DBNAME, Common, "database name to connect to"),
    PgbenchOption::part(&rows::HOST, Common, "database server host or socket directory"),
    PgbenchOption::part(&rows::PORT, Common, "database server port number"),
    PgbenchOption::part(&rows::USERNAME, Common, "connect as specified database user"),
];
