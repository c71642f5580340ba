//! The command line of `pgtrial-engine tasks`. The options for pools of connections are those of pgbench with other
//! defaults; the options for the table and the output exist only here.

use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::options::{self, EngineShare, RunOptions, Seed};
use crate::frontend::common::pooling::{self, PoolOptions};
use crate::frontend::common::rows::{CONNECTION, OUTPUT, about_rows, connection_rows};
use crate::frontend::common::sharing::check_enough;
use crate::frontend::common::values::{ValueError, count_to, query_mode, seed, seed_of_time};
use ground::getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop, set};
use tables::tasks::{NAME, STEPS, Shape, are_steps};

/// The defaults, which are the numbers of the published benchmark: three applications with 5000 tasks each, and the
/// default pool size of its database driver.
const PUBLISHED: PoolOptions =
    PoolOptions { apps: Some(3), tasks: Some(5000), size: Some(100), arrival: None, timeout: None, lifetime: None };

/// The greatest number of rows of the table for each value of its column thread_id.
const MAX_ROWS: u32 = 100_000_000;

/// The greatest number of different values in the table's column thread_id.
const MAX_THREADS: u32 = 10_000;

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const TASKS: FrontEnd = FrontEnd::new(NAME);

/// The work that the command line asks for.
#[derive(Debug)]
pub enum TasksCommand {
    /// Only makes the table.
    Initialize(Box<TasksOptions>),
    /// Runs this engine's share of the tasks. If the options ask for it, the table is made before.
    Run(Box<TasksOptions>, EngineShare),
}

/// The options of the command line.
#[derive(Debug, Default)]
pub struct TasksOptions {
    pub run: RunOptions,
    /// True with `--initialize`, which makes the table and then runs the tasks. The next field is true with
    /// `--initialize-only`, which makes the table and runs no tasks.
    pub initialize: bool,
    initialize_only: bool,
    /// The steps that make the table, as letters of [`STEPS`]: `t` makes the table, `g` generates its rows, and `v`
    /// vacuums it.
    pub init_steps: String,
    /// The number of different values of the table's column thread_id.
    pub threads_in_table: Option<u32>,
    /// The number of rows of the table for each value of thread_id.
    pub rows: Option<u32>,
    pub lines: LineOptions,
}

/// The options for the lines that are written about each task (one transaction of an application).
#[derive(Debug, Default)]
pub struct LineOptions {
    /// The file to which the text lines are written. `None`: they are written to standard output.
    pub log: Option<String>,
    /// True if the text lines are not written to standard output.
    pub quiet: bool,
    pub csv: Option<String>,
}

impl AsMut<RunOptions> for TasksOptions {
    fn as_mut(&mut self) -> &mut RunOptions {
        &mut self.run
    }
}

/// A row of the table of options. The third type parameter is the type of the headings under which the help lists
/// options.
type Row = OptionRow<TasksOptions, Failure, &'static str>;

const TABLE: &str = "Table:";
const LOAD: &str = "Load (numbers apply to each application):";

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
    Row::switch("-i, --initialize", TABLE, "make table_a and its index, then run the tasks", |o| &mut o.initialize),
    Row::switch("-I, --initialize-only", TABLE,
        "make table_a and its index, and run no tasks", |o| &mut o.initialize_only),
    Row::value("--init-steps=[tgv]+", TABLE,
        "with -I: make only these steps (default: tgv)\n\
         t: the table and its index; g: its rows; v: VACUUM ANALYZE",
        |o, v| {
            let steps = Some(v.text).filter(|text| are_steps(text));
            set(&mut o.init_steps, steps.ok_or_else(|| ValueError::unexpected(v, "letters of tgv, each at most once, in this order")))
        }),
    Row::value("--threads-in-table=NUM", TABLE, "number of different values of thread_id (default: 10)",
        |o, v| set(&mut o.threads_in_table, count_to(v, MAX_THREADS))),
    Row::value("--rows=NUM", TABLE, "number of rows for each value of thread_id (default: 100000)",
        |o, v| set(&mut o.rows, count_to(v, MAX_ROWS))),

    Row::part(&options::APPS, LOAD, "number of applications (default: 3)"),
    Row::part(&options::ARRIVAL, LOAD,
        "when tasks arrive: all at once, or at a rate in tasks per second\n(default: at-once)"),
    Row::value("-j, --jobs=NUM", LOAD, "number of threads, at most one for each application\n(default: 1)",
        |o, v| set(&mut o.run.jobs, pooling::connections(v))),
    Row::value("-M, --protocol=simple|extended|prepared", LOAD, "protocol for submitting queries (default: simple)",
        |o, v| set(&mut o.run.mode, query_mode(v))),
    Row::part(&options::POOL, LOAD, "greatest number of connections in the pool (default: 100)"),
    Row::part(&options::POOL_LIFETIME, LOAD, "replace connections that are older than this"),
    Row::part(&options::POOL_TIMEOUT, LOAD, "a task that gets no connection within this time fails\n(default: 15)"),
    Row::value("--random-seed=NUM", LOAD, "random seed, a whole number (default: the current time)",
        |o, v| set(&mut o.run.seed, seed(v).map(Seed::given))),
    Row::part(&options::SHARD, LOAD,
        "run only shard I (from 1 to N) of the load that the other\n\
         options describe and that N engines share; -j is the number of\n\
         threads of this engine alone; with -I --init-steps=g: make only\n\
         shard I of the rows"),
    Row::part(&options::START_AT, LOAD,
        "begin the load at this time, at most 60 s from now: Unix\n\
         seconds with decimals, or monotonic:SECONDS of this machine's\n\
         monotonic clock; with \"-\" the time is read as a line from\n\
         standard input when everything is ready"),
    Row::part(&options::TASKS, LOAD, "number of tasks (default: 5000)"),

    Row::text("--csv=FILE", OUTPUT,
        "write a line for each task to FILE, with separate times for\n\
         waiting in the queue and for the work on the server",
        |o| &mut o.lines.csv),
    Row::part(&options::EVENTS, OUTPUT,
        "write the events of the run as JSON Lines to FILE, or with \"-\"\n\
         to standard output instead of the lines and the summary"),
    Row::part(&options::LIST_STATEMENTS, OUTPUT,
        "write the statements that clients send to FILE as JSON Lines,\n\
         each with the values of its first six executions"),
    Row::text("--log=FILE", OUTPUT,
        "write the lines \"ApplicationId | Running Tasks | Task Duration |\n\
         EndTime\" to FILE instead of standard output",
        |o| &mut o.lines.log),
    Row::switch("-q, --quiet", OUTPUT, "write no lines about tasks to standard output", |o| &mut o.lines.quiet),
], &connection_rows!(CONNECTION, run.server), &about_rows!("")];

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    Manual {
        about: "pgtrial-engine tasks runs an application's tasks on bounded pools of connections.",
        usage: &["pgtrial-engine tasks [OPTION]... [DBNAME]"],
        description: "\
A few applications each have a pool of connections and a number of tasks. A task waits for a
connection of its application's pool, runs one SELECT and one UPDATE of a random row of table_a,
and gives the connection back.",
        options: entries(OPTIONS, |title| title),
        notes: "\
The exit status is 0 if the run is complete, even if tasks failed; 3 if an option is invalid or a
file cannot be written; 130 after an interrupt."
            .to_owned(),
    }
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<TasksCommand, Stop<Failure>> {
    let run = RunOptions { pooling: PUBLISHED, time_after_connecting: true, ..RunOptions::new(seed_of_time()) };
    let mut options = Box::new(TasksOptions { run, init_steps: STEPS.to_owned(), ..TasksOptions::default() });
    let positional = getopt::read(OPTIONS, args, &mut *options)?;
    with_database(&mut options.run.server, positional)?;
    options.check_initialization()?;
    if options.initialize_only {
        // With `--initialize-only` several engines may share the rows of the table (`--shard`), but they run no load.
        // The check of the options of the load is therefore left out.
        return Ok(TasksCommand::Initialize(options));
    }
    let share = options.run.share()?;
    options.run.check()?;
    Ok(TasksCommand::Run(options, share))
}

impl TasksOptions {
    /// Returns the shape of the table that the options ask for.
    pub fn shape(&self) -> Shape {
        Shape::published_but(self.threads_in_table, self.rows)
    }

    /// Rejects combinations of options for making the table that make no sense: single steps together with a run, and
    /// steps that several engines cannot share.
    fn check_initialization(&self) -> Result<(), Failure> {
        if self.init_steps != STEPS && !self.initialize_only {
            return Err(Failure::error("--init-steps can be used only with --initialize-only"));
        }
        let shard = self.run.shard;
        if !shard.is_part() {
            return Ok(());
        }
        if self.initialize_only {
            if self.init_steps != "g" {
                return Err(Failure::error(
                    "--shard with --initialize-only divides only the making of rows (--init-steps=g) among engines: \
                     make the table once before (--init-steps=t), and finish it once afterwards (--init-steps=v)",
                ));
            }
            check_enough(shard, self.shape().threads as usize, "values of thread_id (--threads-in-table)")?;
            return Ok(());
        }
        if self.initialize {
            let advice = "make the table first, with --initialize-only, and then run the tasks";
            return Err(Failure::error(format!("--shard cannot be combined with --initialize: {advice}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Events;
    use crate::frontend::lines::{all_refused, parsed};
    use drive::plan::{Arrival, PoolPlan};

    fn command(line: &str) -> TasksCommand {
        parsed(line, parse).unwrap()
    }

    fn run(line: &str) -> (TasksOptions, EngineShare) {
        match command(line) {
            TasksCommand::Run(options, share) => (*options, share),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn table(line: &str) -> TasksOptions {
        match command(line) {
            TasksCommand::Initialize(options) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn without_options_it_is_the_published_application() {
        let (options, share) = run("");
        let PoolPlan { apps, tasks, arrival, size, timeout, lifetime, .. } = share.pools.unwrap();
        assert_eq!((apps, tasks, arrival, size), (3, 5000, Arrival::AtOnce, 100));
        assert_eq!((timeout.as_secs(), lifetime), (15, None));
        assert_eq!([options.initialize, run("-i").0.initialize], [false, true]);
        assert_eq!([options.shape(), table("-I").shape()], [Shape::PUBLISHED; 2]);
    }

    #[test]
    fn options_are_read_in_any_order() {
        let (TasksOptions { run, rows, .. }, share) =
            self::run("--tasks 7 bench --arrival=poisson:5 -j9 --apps 2 --rows 10 --events - -M prepared");
        assert_eq!((share.pools.unwrap().all_tasks(), share.jobs), (14, 2));
        assert_eq!((rows, table("--rows 10 bench -I").shape().rows), (Some(10), 10));
        assert_eq!((run.output.events, run.server.dbname.as_deref()), (Some(Events::Stdout), Some("bench")));
    }

    #[test]
    fn a_shard_has_a_part_of_each_pool_and_of_its_tasks() {
        let (_, share) = run("--shard 2/3 --random-seed 5 --tasks 10 --pool 4 --apps 2");
        let PoolPlan { apps, tasks, size, task_share, .. } = share.pools.unwrap();
        assert_eq!((apps, tasks, size), (2, 3, 1));
        assert_eq!((task_share.tasks, task_share.size, share.part.clients()), (10, 4, 2));
    }

    #[test]
    fn rows_of_the_table_are_shared_out_among_more_engines_than_a_pool_has_connections() {
        let options = table("-I --init-steps=g --shard 200/300 --threads-in-table 1000");
        assert_eq!((options.init_steps.as_str(), options.run.shard.of), ("g", 300));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        let lines = [
            ("--tasks 0", "invalid value \"0\" for option --tasks: it must be a whole number from 1 to 10000000"),
            ("--pool none", "invalid value \"none\" for option --pool"),
            ("--arrival poisson:", "invalid value \"poisson:\" for option --arrival"),
            ("--shard 3/2", "invalid value \"3/2\" for option --shard: it must be I/N"),
            ("--shard 1/2", "--shard needs --random-seed with a number"),
            ("--shard 1/2 --random-seed 1 -i", "--shard cannot be combined with --initialize"),
            (
                "--shard 1/2 -I",
                "--shard with --initialize-only divides only the making of rows (--init-steps=g) among engines",
            ),
            ("--shard 1/2 -I --init-steps=tg", "--shard with --initialize-only divides only the making of rows"),
            (
                "--shard 1/11 -I --init-steps=g",
                "--shard=1/11: 10 values of thread_id (--threads-in-table) cannot be shared out among 11 shards",
            ),
            ("-I --init-steps=vt", "invalid value \"vt\" for option --init-steps: it must be letters of tgv"),
            ("-i --init-steps=t", "--init-steps can be used only with --initialize-only"),
            ("--init-steps=t", "--init-steps can be used only with --initialize-only"),
            (
                "--shard 1/3 --random-seed 1 --pool 2",
                "--shard=1/3: 2 connections of a pool (--pool) cannot be shared out",
            ),
            ("--start-at soon", "\"soon\" is not a time to start at: give Unix seconds"),
            ("--bogus", "unrecognized option '--bogus'; try \"pgtrial-engine tasks --help\""),
            ("a b", "too many command-line arguments (first is \"b\")"),
            ("-M none", "invalid value \"none\" for option -M/--protocol"),
            ("--apps 50000 --pool 50000", "all pools together (--apps x --pool) may have at most 100000 connections"),
        ];
        all_refused(TASKS, parse, &lines);
    }
}
