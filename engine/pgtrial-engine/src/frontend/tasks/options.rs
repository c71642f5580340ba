//! The command line of the tasks front end: pgbench's options of pools with preset values, and options of its own for the
//! table and for what is written.

use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::options::fields::Options;
use crate::frontend::pgbench::options::pooling::{MAX_CONNECTIONS, Pooling, count, invalid};
use crate::frontend::pgbench::options::settle::{settle_database, settle_share};
use crate::frontend::pgbench::options::table::row_of;
use crate::frontend::pgbench::options::values::{named_mode, seed_of_time};
use crate::frontend::sharing;
use ground::getopt;
use ground::options::{OptionRow, Stop, set};
use ground::shard::Shard;
use tables::tasks::{NAME, STEPS, Shape, are_steps};

/// The published application's numbers: three applications of 5000 tasks, and the default pool size of its driver.
const PUBLISHED: Pooling =
    Pooling { apps: Some(3), tasks: Some(5000), size: Some(100), arrival: None, timeout: None, lifetime: None };

/// The most rows of a thread in the table, and the most threads.
const MAX_ROWS: u32 = 100_000_000;
const MAX_THREADS: u32 = 10_000;

/// All options.
#[derive(Debug, Default)]
pub struct TasksOptions {
    /// Those that pgbench has too.
    pub load: Options,
    /// `--initialize` makes the table and runs the tasks, `--initialize-only` does not run them.
    pub initialize: bool,
    pub initialize_only: bool,
    /// Letters of [`STEPS`].
    pub init_steps: String,
    pub threads_in_table: Option<u32>,
    pub rows: Option<u32>,
    /// Whose rows of the table are made.
    pub table_shard: Shard,
    /// Where the lines of the tasks go, if not to standard output.
    pub log: Option<String>,
    /// Whether there are no lines on standard output.
    pub quiet: bool,
    pub csv: Option<String>,
}

impl TasksOptions {
    /// The table as the options describe it.
    pub fn shape(&self) -> Shape {
        Shape::published_but(self.threads_in_table, self.rows)
    }
}

impl AsMut<Options> for TasksOptions {
    fn as_mut(&mut self) -> &mut Options {
        &mut self.load
    }
}

/// The heading of the help under which an option is listed.
type Row = OptionRow<TasksOptions, Failure, &'static str>;

const TABLE: &str = "Table:";
const LOAD: &str = "Load; numbers are of each application:";
const OUTPUT: &str = "Output:";
const CONNECTION: &str = "Connection:";

#[rustfmt::skip]
fn options() -> Vec<Row> {
    vec![
        Row::switch("-i, --initialize", TABLE, "make table_a and its index, then run the tasks", |o| &mut o.initialize),
        Row::switch("-I, --initialize-only", TABLE, "make table_a and its index, and stop", |o| &mut o.initialize_only),
        Row::value("--init-steps=[tgv]+", TABLE,
            "with -I: make only these steps (default: tgv)\n\
             t: the table and its index; g: its rows; v: VACUUM ANALYZE",
            |o, v| {
                let steps = Some(v.text).filter(|text| are_steps(text));
                set(&mut o.init_steps, steps.ok_or_else(|| invalid(v, "letters of tgv, each once and in this order")))
            }),
        Row::value("--threads-in-table=NUM", TABLE, "values of thread_id (default: 10)",
            |o, v| set(&mut o.threads_in_table, count(v, MAX_THREADS))),
        Row::value("--rows=NUM", TABLE, "rows of each thread_id (default: 100000)",
            |o, v| set(&mut o.rows, count(v, MAX_ROWS))),

        row_of("apps", LOAD, "number of applications (default: 3)"),
        row_of("arrival", LOAD, "when tasks arrive, rates in tasks per second\n(default: at-once)"),
        Row::value("-j, --jobs=NUM", LOAD, "number of threads, at most one for each application\n(default: 1)",
            |o, v| set(&mut o.load.jobs, count(v, MAX_CONNECTIONS).map(|jobs| jobs as usize))),
        Row::value("-M, --protocol=simple|extended|prepared", LOAD, "protocol for submitting queries (default: simple)",
            |o, v| set(&mut o.load.mode,
                named_mode(v.text).ok_or_else(|| invalid(v, "simple, extended or prepared")))),
        row_of("pool", LOAD, "most connections of the pool (default: 100)"),
        row_of("pool-lifetime", LOAD, "replace connections that are older"),
        row_of("pool-timeout", LOAD, "a task that got no connection in this time has failed\n(default: 15)"),
        Row::value("--random-seed=NUM", LOAD, "whole number (default: from the time)",
            |o, v| {
                o.load.is_seeded = true;
                let seed = v.text.trim().parse::<u64>();
                set(&mut o.load.seed, seed.map_err(|_| invalid(v, &format!("a whole number from 0 to {}", u64::MAX))))
            }),
        row_of("shard", LOAD,
            "run part I of N (from 1) of the run that the other options say,\n\
             which N engines share; -j is each engine's own; with\n\
             -I --init-steps=g make part I of N of the rows"),
        row_of("start-at", LOAD,
            "begin at this time, Unix seconds with decimals or\n\
             monotonic:SECONDS of this machine's clock, at most 60 s\n\
             ahead; with \"-\" at the one that is read as a line from\n\
             standard input when everything is ready"),
        row_of("tasks", LOAD, "number of tasks (default: 5000)"),

        Row::text("--csv=FILE", OUTPUT, "write a line for each task to FILE, with its time in the queue\nand on the server apart",
            |o| &mut o.csv),
        row_of("events", OUTPUT,
            "write what happens as JSON Lines to FILE; with \"-\" to standard\noutput, in place of the lines and the summary"),
        Row::text("--log=FILE", OUTPUT,
            "write the lines \"ApplicationId | Running Tasks | Task Duration |\n\
             EndTime\" to FILE instead of standard output",
            |o| &mut o.log),
        Row::switch("-q, --quiet", OUTPUT, "no such lines on standard output", |o| &mut o.quiet),

        row_of("dbname", CONNECTION, "database name or connection string"),
        row_of("host", CONNECTION, "database server host or socket directory"),
        row_of("port", CONNECTION, "database server port number"),
        row_of("username", CONNECTION, "connect as specified database user"),

        Row::action("-V, --version", "", "output version information, then exit",
            |_| Err(Stop::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))))),
        Row::action("-?, --help", "", "show this help, then exit", |_| Err(Stop::Print(help()))),
    ]
}

fn help() -> String {
    let listed = ground::options::help(&options(), |title| title);
    format!(
        "\
pgtrial-engine tasks runs an application's tasks on bounded pools of connections.

Usage:
  pgtrial-engine tasks [OPTION]... [DBNAME]

A few applications, each with a pool of connections of its own. Each task is one SELECT
and one UPDATE of a random record of table_a; it waits for a connection of its
application's pool, runs, and gives the connection back.
{listed}
The exit status is 0 when the run is complete, whatever became of the tasks; 3 for what is
refused or could not be written; 130 after an interrupt.
"
    )
}

/// A failure in one sentence.
pub fn describe(failure: &Failure) -> String {
    failure.told_by(NAME)
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<TasksOptions, Stop<Failure>> {
    let load = Options { pooling: PUBLISHED, ..Options::new(seed_of_time()) };
    let mut options = TasksOptions { load, init_steps: STEPS.to_owned(), ..TasksOptions::default() };
    let positional = getopt::read(&self::options(), args, &mut options)?;
    settle_database(&mut options.load, positional)?;
    check_initialization(&options)?;
    if options.initialize_only {
        // Engines share the making of the table and no load.
        options.table_shard = std::mem::take(&mut options.load.shard);
    }
    settle_share(&mut options.load, &[])?;
    Ok(options)
}

/// Rejects to run on a table that this very command leaves unfinished, to make a step of nothing, and what several engines
/// cannot share.
fn check_initialization(options: &TasksOptions) -> Result<(), Failure> {
    if options.init_steps != STEPS && !options.initialize_only {
        return Err(Failure::error("--init-steps is for --initialize-only"));
    }
    let shard = options.load.shard;
    if !shard.is_part() {
        return Ok(());
    }
    if options.initialize_only {
        if options.init_steps != "g" {
            return Err(Failure::error(
                "--shard with --initialize-only is for the rows alone (--init-steps=g): make the table once before \
                 (--init-steps=t) and finish it once after (--init-steps=v)",
            ));
        }
        let threads = options.shape().threads as usize;
        sharing::check_enough(shard, threads, "values of thread_id (--threads-in-table)")?;
        return Ok(());
    }
    if options.initialize {
        let advice = "make the table before, with --initialize-only, and then run the tasks";
        return Err(Failure::error(format!("--shard cannot be combined with --initialize: {advice}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Events;
    use crate::frontend::lines::parsed;
    use drive::plan::{Arrival, PoolPlan};

    fn options(line: &str) -> TasksOptions {
        parsed(line, parse, describe).unwrap()
    }

    fn rejected(line: &str) -> String {
        parsed(line, parse, describe).unwrap_err()
    }

    #[test]
    fn without_options_it_is_the_published_application() {
        let options = options("");
        let PoolPlan { apps, tasks, arrival, size, timeout, lifetime, .. } = options.load.pools.unwrap();
        assert_eq!((apps, tasks, arrival, size), (3, 5000, Arrival::AtOnce, 100));
        assert_eq!((timeout.as_secs(), lifetime), (15, None));
        assert_eq!((options.shape(), options.initialize, options.initialize_only), (Shape::PUBLISHED, false, false));
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options = options("--tasks 7 bench -I --arrival=poisson:5 -j9 --apps 2 --rows 10 --events - -M prepared");
        assert_eq!((options.load.pools.unwrap().all_tasks(), options.load.jobs), (14, 2));
        assert_eq!((options.initialize_only, options.shape().rows), (true, 10));
        assert_eq!(
            (options.load.output.events, options.load.server.dbname.as_deref()),
            (Some(Events::Stdout), Some("bench"))
        );
    }

    #[test]
    fn a_shard_has_a_part_of_each_pool_and_of_its_tasks() {
        let options = options("--shard 2/3 --random-seed 5 --tasks 10 --pool 4 --apps 2");
        let PoolPlan { apps, tasks, size, deal, .. } = options.load.pools.unwrap();
        assert_eq!((apps, tasks, size), (2, 3, 1));
        assert_eq!((deal.tasks, deal.size, options.load.part.clients()), (10, 4, 2));
    }

    #[test]
    fn rows_of_the_table_are_shared_out_among_more_engines_than_a_pool_has_connections() {
        let options = options("-I --init-steps=g --shard 200/300 --threads-in-table 1000");
        assert_eq!((options.init_steps.as_str(), options.table_shard.of), ("g", 300));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        for (line, message) in [
            ("--tasks 0", "invalid value \"0\" for option --tasks: it takes a whole number from 1 to 10000000"),
            ("--pool none", "invalid value \"none\" for option --pool"),
            ("--arrival poisson:", "invalid value \"poisson:\" for option --arrival"),
            ("--shard 3/2", "invalid value \"3/2\" for option --shard: it takes I/N"),
            ("--shard 1/2", "--shard needs --random-seed with a number"),
            ("--shard 1/2 --random-seed 1 -i", "--shard cannot be combined with --initialize"),
            ("--shard 1/2 -I", "--shard with --initialize-only is for the rows alone (--init-steps=g)"),
            ("--shard 1/2 -I --init-steps=tg", "--shard with --initialize-only is for the rows alone"),
            (
                "--shard 1/11 -I --init-steps=g",
                "--shard=1/11: 10 values of thread_id (--threads-in-table) cannot be shared out among 11 shards",
            ),
            ("-I --init-steps=vt", "invalid value \"vt\" for option --init-steps: it takes letters of tgv"),
            ("-i --init-steps=t", "--init-steps is for --initialize-only"),
            ("--init-steps=t", "--init-steps is for --initialize-only"),
            (
                "--shard 1/3 --random-seed 1 --pool 2",
                "--shard=1/3: 2 connections of a pool (--pool) cannot be shared out",
            ),
            ("--start-at soon", "\"soon\" is no time to start at: it takes Unix seconds"),
            ("--bogus", "unrecognized option '--bogus'; try \"pgtrial-engine tasks --help\""),
            ("a b", "too many command-line arguments (first is \"b\")"),
            ("-M none", "invalid value \"none\" for option -M/--protocol"),
            ("--apps 50000 --pool 50000", "all pools together (--apps x --pool) may have at most 100000 connections"),
        ] {
            let found = rejected(line);
            assert!(
                found.starts_with(&format!("pgtrial-engine tasks: error: {message}")) && !found.contains('\n'),
                "{line}: {found}"
            );
        }
    }
}
